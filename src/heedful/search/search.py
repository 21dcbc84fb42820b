"""Selection of the search that the options ask for."""

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.model.seq2seq import Seq2Seq
from heedful.search.beam import PAPER_STOPPING, beam_search
from heedful.search.constrained import constrained_beam_search
from heedful.search.diverse import diverse_beam_search
from heedful.search.greedy import greedy_search
from heedful.search.hypothesis import Hypothesis
from heedful.search.length import LengthPenalty
from heedful.search.observer import SearchObserver
from heedful.search.options import LineConstraints, SearchOptions
from heedful.search.rules import (
    AllowedTokens,
    AvoidPhrases,
    DecodingRule,
    ForcedEos,
    ForcedPrefix,
    MinLength,
    NoRepeatNgram,
    Renormalization,
)
from heedful.search.sampling import sample
from heedful.search.stopping import StoppingPolicy


def run_search(
    model: Seq2Seq,
    source: Int[Tensor, "sentences source"],
    limits: Sequence[int],
    *,
    options: SearchOptions,
    beam: int,
    penalty: LengthPenalty,
    stopping: StoppingPolicy = PAPER_STOPPING,
    allowed: AllowedTokens,
    line_constraints: Sequence[LineConstraints],
    lines: Sequence[int],
    constrained: bool = False,
    observer: SearchObserver | None = None,
) -> list[list[Hypothesis]]:
    """
    Translate a batch of sentences with the search that the options name.

    `limits`: maximum number of target tokens of each sentence, the end symbol not counted. Returns
    for each sentence its hypotheses: samples as they were drawn, all others best first.

    The search of a sentence does not depend on its batch: without constraints of its own a
    constrained beam is a plain one. (Its probabilities may: in bf16 products of other shapes round
    differently.) A beam of 1 is greedy search, except with constraints.
    """
    stopping = stopping.under(penalty)
    least = MinLength(stopping.min_length, model.end_token)
    rules = rules_for(options, [allowed, least], line_constraints, source.device)
    if stopping.length_limit_policy in ("end", "force"):
        is_free = stopping.length_limit_policy == "end"
        rules.append(ForcedEos(limits, model.end_token, source.device, is_free=is_free))
    if stopping.renormalise:
        rules.append(Renormalization())
    if options.sample is not None:
        return sample(
            model,
            source,
            limits,
            sampling=options.sample,
            samples=options.n_best,
            lines=lines,
            penalty=penalty,
            rules=rules,
            observer=observer,
        )
    if beam == 1 and not constrained:
        greedy = greedy_search(
            model, source, limits, penalty=penalty, rules=rules, observer=observer
        )
        return [[hypothesis] for hypothesis in greedy]
    eos_candidates = beam // options.diverse_groups * (2 if stopping.among_twice else 1)
    if options.diverse_groups > 1:
        return diverse_beam_search(
            model,
            source,
            limits,
            beam=beam,
            groups=options.diverse_groups,
            diversity=options.diversity_cost,
            penalty=penalty,
            n_best=options.n_best,
            eos_candidates=eos_candidates,
            stopping=stopping.in_groups(),
            rules=rules,
            observer=observer,
        )
    if any(constraint.phrases for constraint in line_constraints):
        return constrained_beam_search(
            model,
            source,
            limits,
            phrases=[constraint.phrases for constraint in line_constraints],
            beam=beam,
            penalty=penalty,
            n_best=options.n_best,
            eos_candidates=eos_candidates,
            stopping=stopping.in_groups(),
            rules=rules,
            observer=observer,
        )
    return beam_search(
        model,
        source,
        limits,
        beam=beam,
        penalty=penalty,
        n_best=options.n_best,
        eos_candidates=eos_candidates,
        stopping=stopping,
        rules=rules,
        observer=observer,
    )


def rules_for(
    options: SearchOptions,
    always: Sequence[DecodingRule],
    line_constraints: Sequence[LineConstraints],
    device: torch.device,
) -> list[DecodingRule]:
    """
    Collect the rules that a batch needs.

    Without constraints it is `always` alone, so they cost nothing unless used.
    """
    rules = [*always]
    if any(constraint.prefix for constraint in line_constraints):
        rules.append(ForcedPrefix([constraint.prefix for constraint in line_constraints], device))
    if any(constraint.avoided for constraint in line_constraints):
        rules.append(AvoidPhrases([constraint.avoided for constraint in line_constraints], device))
    if options.no_repeat_ngram:
        rules.append(NoRepeatNgram(options.no_repeat_ngram))
    return rules
