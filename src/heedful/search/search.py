"""From what is asked for to the search that does it."""

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.model.seq2seq import Seq2Seq
from heedful.search.beam import PLAIN, beam_search
from heedful.search.constrained import constrained_beam_search
from heedful.search.diverse import diverse_beam_search
from heedful.search.greedy import greedy_search
from heedful.search.hypothesis import Hypothesis
from heedful.search.length import LengthPenalty
from heedful.search.observer import Watch
from heedful.search.options import Demands, SearchOptions
from heedful.search.rules import (
    Allowed,
    AvoidPhrases,
    ForcedEnd,
    ForcedPrefix,
    LeastLength,
    NoRepeat,
    Renormalised,
    Rule,
)
from heedful.search.sampling import sample
from heedful.search.stopping import Manner


def find(
    model: Seq2Seq,
    source: Int[Tensor, "sentences source"],
    limits: Sequence[int],
    *,
    options: SearchOptions,
    beam: int,
    penalty: LengthPenalty,
    manner: Manner = PLAIN,
    allowed: Allowed,
    demands: Sequence[Demands],
    lines: Sequence[int],
    constrained: bool = False,
    watch: Watch | None = None,
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
    manner : Manner, optional
        How the search ends.
    allowed : Allowed
        Which ids are subwords.
    demands : sequence of Demands
        What the translation of each sentence must be like.
    lines : sequence of int
        Number of each sentence in its text; samples depend on it.
    constrained : bool, default False
        Whether there are constraints anywhere in the text.
    watch : callable, optional
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
    manner = manner.under(penalty)
    least = LeastLength(manner.min_length, model.end_token)
    rules = rules_for(options, [allowed, least], demands, source.device)
    if manner.length_limit_policy in ("end", "force"):
        is_free = manner.length_limit_policy == "end"
        rules.append(ForcedEnd(limits, model.end_token, source.device, is_free=is_free))
    if manner.renormalise:
        rules.append(Renormalised())
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
            watch=watch,
        )
    if beam == 1 and not constrained:
        greedy = greedy_search(model, source, limits, penalty=penalty, rules=rules, watch=watch)
        return [[hypothesis] for hypothesis in greedy]
    among = beam // options.diverse_groups * (2 if manner.among_twice else 1)
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
            eos_candidates=among,
            manner=manner.in_groups(),
            rules=rules,
            watch=watch,
        )
    if any(demand.contains for demand in demands):
        return constrained_beam_search(
            model,
            source,
            limits,
            phrases=[demand.contains for demand in demands],
            beam=beam,
            penalty=penalty,
            n_best=options.n_best,
            eos_candidates=among,
            manner=manner.in_groups(),
            rules=rules,
            watch=watch,
        )
    return beam_search(
        model,
        source,
        limits,
        beam=beam,
        penalty=penalty,
        n_best=options.n_best,
        eos_candidates=among,
        manner=manner,
        rules=rules,
        watch=watch,
    )


def rules_for(
    options: SearchOptions,
    always: Sequence[Rule],
    demands: Sequence[Demands],
    device: torch.device,
) -> list[Rule]:
    """
    Collect the rules that a batch needs.

    Parameters
    ----------
    options : SearchOptions
        For all sentences alike.
    always : sequence of Rule
        Those that hold for every text.
    demands : sequence of Demands
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
    if any(demand.prefix for demand in demands):
        rules.append(ForcedPrefix([demand.prefix for demand in demands], device))
    if any(demand.avoids for demand in demands):
        rules.append(AvoidPhrases([demand.avoids for demand in demands], device))
    if options.no_repeat_ngram:
        rules.append(NoRepeat(options.no_repeat_ngram))
    return rules
