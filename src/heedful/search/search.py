"""From what is asked for to the search that does it."""

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
    Translate a batch of sentences in the way that the options name.

    Parameters
    ----------
    model : Seq2Seq
        In evaluation mode.
    source : Tensor of int, shape (sentences, source)
        Padded ids, on the model's device.
    limits : sequence of int
        Most target tokens of each sentence, the end symbol not counted.
    options : SearchOptions
        How.
    beam : int
        Open hypotheses a sentence, from `SearchOptions.width`.
    penalty : LengthPenalty
        Orders complete hypotheses of different lengths.
    stopping : StoppingPolicy, optional
        How the search ends.
    allowed : AllowedTokens
        Which ids are subwords.
    line_constraints : sequence of LineConstraints
        What the translation of each sentence must be like.
    lines : sequence of int
        Number of each sentence in its text; samples depend on it.
    constrained : bool, default False
        Whether there are constraints anywhere in the text.
    observer : callable, optional
        Shown every sentence after every step; it is named by its row here.

    Returns
    -------
    list of list of Hypothesis
        For each sentence its hypotheses: samples as they were drawn, all others best first.

    Notes
    -----
    How a sentence is searched does not depend on its batch: without constraints of its own a
    constrained beam is a plain one. (Its probabilities may: in bf16 products of another shape are
    rounded otherwise.) A beam of 1 is greedy search, but for a text with constraints it is a beam.
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

    Parameters
    ----------
    options : SearchOptions
        For all sentences alike.
    always : sequence of DecodingRule
        Those that hold for every text.
    line_constraints : sequence of LineConstraints
        Of each sentence.
    device : torch.device
        Where the scores are.

    Returns
    -------
    list of Rule
        In the order in which they are to be applied.

    Notes
    -----
    Without wishes it is `always` alone, so nobody pays for what nobody asked for.
    """
    rules = [*always]
    if any(constraint.prefix for constraint in line_constraints):
        rules.append(ForcedPrefix([constraint.prefix for constraint in line_constraints], device))
    if any(constraint.avoided for constraint in line_constraints):
        rules.append(AvoidPhrases([constraint.avoided for constraint in line_constraints], device))
    if options.no_repeat_ngram:
        rules.append(NoRepeatNgram(options.no_repeat_ngram))
    return rules
