"""Selection of the search that the settings request."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.model.contracts import Seq2Seq
from heedful.search.beam import beam_search
from heedful.search.constrained import constrained_beam_search
from heedful.search.diverse import diverse_beam_search
from heedful.search.greedy import greedy_search
from heedful.search.hypothesis import Hypothesis
from heedful.search.observer import SearchObserver
from heedful.search.on_device import search_on_device
from heedful.search.phrases import LineConstraints
from heedful.search.rules import (
    AvoidPhrases,
    DecodingRule,
    ForcedEos,
    ForcedPrefix,
    MinLength,
    NoRepeatNgram,
    Renormalization,
)
from heedful.search.sampling import sample
from heedful.search.settings import SearchOptions


def run_search(
    model: Seq2Seq,
    source: Int[Tensor, "sentences source"],
    limits: Sequence[int],
    settings: SearchOptions,
    *,
    rules: Sequence[DecodingRule] = (),
    line_constraints: Sequence[LineConstraints] = (),
    lines: Sequence[int] | None = None,
    constrained: bool = False,
    observer: SearchObserver | None = None,
) -> list[list[Hypothesis]]:
    """
    Translate a batch of sentences with the search that the settings request.

    `limits`: maximum number of target tokens of each sentence, not counting the end symbol.
    `rules`: rules to apply before those of the settings and constraints. `lines`: a number for
    each sentence, on which samples depend. `constrained`: whether any line of the text has
    phrases that must occur. Returns for each sentence its hypotheses: samples in the order of their
    draws, other hypotheses best first.

    Except with `as-joey` and `as-opennmt`, the search of a sentence does not depend on other
    sentences: without phrases, constrained search equals plain beam search. Probabilities may
    depend on the batch: in bf16 without compiled functions, matrix multiplications of different
    shapes round differently. A beam of 1 is greedy search, unless `constrained` is true.
    """
    rules = rules_for(settings, rules, line_constraints, limits, model.end_token, source.device)
    phrases = [constraint.phrases for constraint in line_constraints]
    is_greedy = settings.size == 1 and not constrained
    if settings.sample is None and observer is None and not any(phrases):
        on_device = search_on_device(model, source, limits, settings, rules, greedy=is_greedy)
        if on_device is not None:
            return on_device
    if settings.sample is not None:
        return sample(model, source, limits, settings, lines, rules, observer)
    if is_greedy:
        greedy = greedy_search(model, source, limits, settings, rules, observer)
        return [[hypothesis] for hypothesis in greedy]
    if settings.diverse_groups == 1 and not any(phrases):
        return beam_search(model, source, limits, settings, rules, observer)
    in_groups = replace(settings, stop=settings.stopping.without_places().stop)
    if settings.diverse_groups > 1:
        return diverse_beam_search(model, source, limits, in_groups, rules, observer)
    return constrained_beam_search(model, source, limits, in_groups, phrases, rules, observer)


def rules_for(
    settings: SearchOptions,
    always: Sequence[DecodingRule],
    line_constraints: Sequence[LineConstraints],
    limits: Sequence[int],
    end_token: int,
    device: torch.device,
) -> list[DecodingRule]:
    """Collect the rules that a batch needs."""
    # The order matters: ForcedEos overrules rules that forbid the end symbol, and Renormalization
    # comes after all rules that forbid tokens.
    rules = [*always]
    if settings.min_length:
        rules.append(MinLength(settings.min_length, end_token))
    if any(constraint.prefix for constraint in line_constraints):
        rules.append(ForcedPrefix([constraint.prefix for constraint in line_constraints], device))
    if any(constraint.avoided for constraint in line_constraints):
        rules.append(AvoidPhrases([constraint.avoided for constraint in line_constraints], device))
    if settings.no_repeat_ngram:
        rules.append(NoRepeatNgram(settings.no_repeat_ngram))
    if settings.stopping.length_limit_policy in ("end", "force"):
        is_free = settings.stopping.length_limit_policy == "end"
        rules.append(ForcedEos(limits, end_token, device, is_free=is_free))
    if settings.renormalise:
        rules.append(Renormalization())
    return rules
