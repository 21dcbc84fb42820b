"""
Rules for the next token, applied by every search to the log-probabilities of a step.

A rule is a function of the log-probabilities, the tokens of each row so far and the sentence of
each row. It sets forbidden tokens to minus infinity and leaves the other log-probabilities
unchanged. So the scores of a hypothesis stay log-probabilities of the model. Only three rules,
which come from other toolkits, change log-probabilities: FirstToken, ForcedEos and Renormalization.
Rules are applied one after the other:

::

    AllowedTokens    only subwords and the end symbol are generated
    FirstToken       a translation begins with one token, such as the tag of its language
    MinLength        a translation has a minimum number of tokens
    ForcedPrefix     a translation begins with given tokens
    AvoidPhrases     some phrases must not occur
    NoRepeatNgram    no n-gram occurs twice
    ForcedEos        a translation at its limit ends
    Renormalization  the probabilities of the remaining tokens add up to one

AvoidPhrases and NoRepeatNgram do not apply to a row in which they would forbid every token: a given
prefix may contain a repeated n-gram or an avoided phrase.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Scores = Float[Tensor, "rows vocabulary"]
Written = Int[Tensor, "rows length"]
Sentences = Int[Tensor, " rows"]


@runtime_checkable
class DecodingRule(Protocol):
    """
    The interface of a rule, which forbids some next tokens.

    All open rows of a search have the same length, so rules work on tensors.
    """

    def __call__(self, scores: Scores, written: Written, sentences: Sentences) -> Scores:
        """
        Set the log-probabilities of forbidden tokens to minus infinity.

        Parameters
        ----------
        scores : Tensor
            Log-probabilities of the next token; may be changed in place.
        written : Tensor
            The tokens of each row so far, without the start symbol.
        sentences : Tensor
            For each row, the index of its sentence in the batch, from 0. A sentence may have any
            number of rows, in any order.

        Returns
        -------
        Tensor
            The log-probabilities for the search.
        """


@dataclass(frozen=True)
class AllowedTokens:
    """
    Only subwords and the end symbol are allowed.

    Other ids must be forbidden, because label smoothing gives all ids a probability.
    """

    vocabulary: int | None = None
    """The first id that is padding of the output matrix; None if no id is padding."""
    forbidden: tuple[int, ...] = ()
    """Ids that are never generated, such as padding and the start symbol."""

    def __call__(self, scores: Scores, written: Written, sentences: Sentences) -> Scores:
        """Forbid other ids; change the scores in place."""
        del written, sentences
        others = _others(self.forbidden, self.vocabulary, scores.size(1), scores.device)
        return scores.index_fill_(1, others, float("-inf"))


@lru_cache
def _others(
    forbidden: tuple[int, ...], vocabulary: int | None, width: int, device: torch.device
) -> Int[Tensor, " others"]:
    """List the forbidden ids, and the ids that are only padding of the output matrix."""
    padding = range(width if vocabulary is None else vocabulary, width)
    with torch.inference_mode(False):  # also cached for callers that compute gradients
        return torch.tensor([*forbidden, *padding], dtype=torch.long, device=device)


@dataclass(frozen=True)
class FirstToken:
    """Each translation begins with a given token at no cost (Hugging Face: forced_bos_token_id)."""

    token: int

    def __call__(self, scores: Scores, written: Written, sentences: Sentences) -> Scores:
        """Allow only the token in the first step; change the scores in place."""
        del sentences
        if written.size(1) == 0:
            scores.fill_(float("-inf"))
            scores[:, self.token] = 0.0
        return scores


class ForcedPrefix:
    """
    Each translation begins with given tokens, which keep their log-probabilities.

    A prefix longer than the limit of its sentence is cut at the limit.
    """

    def __init__(
        self, prefixes: Sequence[Sequence[int]], device: torch.device | None = None
    ) -> None:
        longest = max(map(len, prefixes), default=0)
        table = [[*prefix, *[0] * (longest - len(prefix))] for prefix in prefixes]
        self.longest = longest
        self.tokens = torch.tensor(table, dtype=torch.long, device=device)
        self.lengths = torch.tensor([len(prefix) for prefix in prefixes], device=device)

    def __call__(self, scores: Scores, written: Written, sentences: Sentences) -> Scores:
        """Forbid all tokens except the next token of the prefix, until the prefix is complete."""
        position = written.size(1)  # these tokens can only be the beginning of the prefix
        if position >= self.longest:
            return scores
        wanted = self.tokens[sentences, position].unsqueeze(1)  # (rows, 1)
        only = torch.full_like(scores, float("-inf"))
        only.scatter_(1, wanted, scores.gather(1, wanted))
        free = self.lengths[sentences] <= position  # (rows,)
        return torch.where(free.unsqueeze(1), scores, only)


class AvoidPhrases:
    """Given token sequences never occur; other subwords with the same letters are allowed."""

    def __init__(
        self, phrases: Sequence[Sequence[Sequence[int]]], device: torch.device | None = None
    ) -> None:
        by_length: dict[int, list[tuple[int, Sequence[int]]]] = {}
        for sentence, sentence_phrases in enumerate(phrases):
            for phrase in filter(len, sentence_phrases):
                by_length.setdefault(len(phrase), []).append((sentence, phrase))
        self.tables = [
            (
                torch.tensor([sentence for sentence, _ in group], device=device),
                torch.tensor([list(phrase) for _, phrase in group], device=device),
            )
            for group in by_length.values()
        ]

    def __call__(self, scores: Scores, written: Written, sentences: Sentences) -> Scores:
        """Forbid the last token of a phrase if its other tokens have just been generated."""
        for owners, phrases in self.tables:
            start = written.size(1) - (phrases.size(1) - 1)
            if start >= 0:
                same = (written[:, None, start:] == phrases[None, :, :-1]).all(dim=2)
                match = same & (sentences[:, None] == owners[None])  # (rows, phrases)
                scores = _forbid(scores, phrases[:, -1].expand(len(scores), -1), match)
        return scores


@dataclass(frozen=True)
class NoRepeatNgram:
    """
    No n-gram occurs twice.

    Paulus, Xiong and Socher 2017 forbid repeated trigrams in summaries; in translation the rule
    prevents endless repetition. The end symbol is exempt.
    """

    size: int
    """Number of tokens of an n-gram, at least 1."""

    def __call__(self, scores: Scores, written: Written, sentences: Sentences) -> Scores:
        """Forbid the tokens that followed an earlier occurrence of the last n - 1 tokens."""
        del sentences
        start = written.size(1) - (self.size - 1)
        if start <= 0:
            return scores
        grams = written.unfold(1, self.size, 1)  # (rows, n-grams, size)
        match = (grams[:, :, :-1] == written[:, None, start:]).all(dim=2)  # (rows, n-grams)
        return _forbid(scores, grams[:, :, -1], match)


@dataclass(frozen=True)
class Renormalization:
    """
    The probabilities of the remaining tokens are renormalized to a sum of one; applied last.

    Hugging Face calls this rule ``renormalize_logits``; the models of OPUS-MT use it.
    """

    def __call__(self, scores: Scores, written: Written, sentences: Sentences) -> Scores:
        """Apply the rule."""
        del written, sentences
        return self.normalized(scores)

    def normalized(self, scores: Scores) -> Scores:
        """Distribute the probability of forbidden tokens proportionally over the other tokens."""
        return torch.log_softmax(scores, dim=-1)


def apply_all(
    rules: Sequence[DecodingRule],
    scores: Scores,
    written: Written,
    sentences: Sentences,
) -> Scores:
    """Apply rules one after the other."""
    for rule in rules:
        scores = rule(scores, written, sentences)
    return scores


def _forbid(
    scores: Scores,
    tokens: Int[Tensor, "rows some"],
    where: Bool[Tensor, "rows some"],
) -> Scores:
    """Mask the tokens, unless this would mask the complete row."""
    bans = torch.zeros_like(where, dtype=scores.dtype).masked_fill_(where, float("-inf"))
    fewer = scores.scatter_add(1, tokens, bans)
    hopeless = fewer.isneginf().all(dim=1, keepdim=True)  # (rows, 1)
    return torch.where(hopeless, scores, fewer)


@dataclass(frozen=True)
class MinLength:
    """No translation is shorter than a minimum, by default 1 token in fairseq and Joey NMT."""

    tokens: int
    """Number of tokens, not counting the end symbol."""
    end_token: int
    """The end symbol."""

    def __call__(self, scores: Scores, written: Written, sentences: Sentences) -> Scores:
        """Forbid the end symbol while a translation is too short; change the scores in place."""
        del sentences
        if written.size(1) < self.tokens:
            scores[:, self.end_token] = float("-inf")
        return scores


class ForcedEos:
    """
    Each translation ends at its limit, at no cost or with the end symbol's probability.

    `limits`: maximum number of tokens of each sentence, not counting the end symbol.

    The end symbol has no cost with Hugging Face's ``forced_eos_token_id``, so the score is better
    than the model's. In fairseq the model's probability counts. An end symbol that another rule
    forbids has no cost at the limit in either case.
    """

    def __init__(
        self,
        limits: Sequence[int],
        end_token: int,
        device: torch.device | None = None,
        *,
        is_free: bool = True,
    ) -> None:
        self.limits = torch.tensor(list(limits), device=device)
        self.first, self.end_token, self.is_free = min(limits), end_token, is_free

    def __call__(self, scores: Scores, written: Written, sentences: Sentences) -> Scores:
        """Allow only the end symbol in rows at their limit."""
        if written.size(1) < self.first:
            return scores
        full = self.limits[sentences] <= written.size(1)  # (rows,)
        return torch.where(full.unsqueeze(1), self.forced(scores), scores)

    def forced(self, scores: Scores) -> Scores:
        """Allow only the end symbol."""
        only = torch.full_like(scores, float("-inf"))
        end = scores[:, self.end_token]
        is_free = end.isneginf() | self.is_free
        only[:, self.end_token] = end.masked_fill(is_free, 0.0)
        return only
