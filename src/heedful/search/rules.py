"""
What may come next: rules that every search applies to the log-probabilities of each step.

A rule is a function. It sees the log-probabilities, the tokens of each open row so far, and whose
row it is. It puts minus infinity where a token must not come and leaves the rest as the model said
it, so the scores of a hypothesis stay log-probabilities of the model; only the last two, which
other toolkits have, change them. Rules are applied one after the other (those about the end are in
`heedful.search.rules`):

::

    Allowed        ids that are no subwords are never written
    MinLength    a translation does not end before it has some tokens
    ForcedPrefix   a translation begins with given tokens
    AvoidPhrases   some phrases must not occur
    NoRepeatNgram       no n tokens occur twice in a row anywhere
    ForcedEos      a translation at its limit ends
    Renormalised   the probabilities of what is left add up to one

AvoidPhrases and NoRepeatNgram give way where they would leave nothing: a given prefix may repeat
itself.

Rules about the end symbol: when a translation may end, and when it must.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@runtime_checkable
class DecodingRule(Protocol):
    """
    Forbid some next tokens.

    Notes
    -----
    All open rows of a search are equally long, which lets rules work on tensors.
    """

    def __call__(
        self,
        scores: Float[Tensor, "rows vocabulary"],
        written: Int[Tensor, "rows length"],
        sentences: Int[Tensor, " rows"],
    ) -> Float[Tensor, "rows vocabulary"]:
        """
        Put minus infinity where a token must not come.

        Parameters
        ----------
        scores : Tensor of float, shape (rows, vocabulary)
            Log-probabilities of the next token; may be changed in place.
        written : Tensor of int, shape (rows, length)
            The tokens of each row so far, without the start symbol.
        sentences : Tensor of int, shape (rows,)
            Which sentence of the batch each row translates.

        Returns
        -------
        Tensor of float, shape (rows, vocabulary)
            The scores, fewer of them finite.

        Notes
        -----
        Nothing is normalised again.
        """
        ...


@dataclass(frozen=True)
class AllowedTokens:
    """
    Allow the subwords of the vocabulary and the end symbol only.

    Attributes
    ----------
    vocabulary : int or None, default None
        Ids from here on fill the output table up to a round size; None if there are none.
    forbidden : tuple of int, default ()
        Ids that are never generated, such as padding and the start symbol.

    Notes
    -----
    A model gives such ids a little probability, however well it was trained.
    """

    vocabulary: int | None = None
    forbidden: tuple[int, ...] = ()

    def __call__(
        self,
        scores: Float[Tensor, "rows vocabulary"],
        written: Int[Tensor, "rows length"],
        sentences: Int[Tensor, " rows"],
    ) -> Float[Tensor, "rows vocabulary"]:
        """Forbid what is no subword; the scores are changed in place."""
        del written, sentences
        for token in self.forbidden:
            scores[:, token] = float("-inf")
        if self.vocabulary is not None:
            scores[:, self.vocabulary :] = float("-inf")
        return scores


class ForcedPrefix:
    """
    Begin each translation with given tokens.

    Parameters
    ----------
    prefixes : sequence of sequence of int
        The first tokens of each sentence; empty where there are none.
    device : torch.device, optional
        Where the scores are; the processor when absent.

    Notes
    -----
    The tokens' own log-probabilities stay, so a forced translation is scored like any other. A
    prefix that is longer than the limit of its sentence is cut there like any other translation.
    """

    def __init__(
        self, prefixes: Sequence[Sequence[int]], device: torch.device | None = None
    ) -> None:
        longest = max(map(len, prefixes), default=0)
        table = [[*prefix, *[0] * (longest - len(prefix))] for prefix in prefixes]
        self.longest = longest
        self.tokens = torch.tensor(table, dtype=torch.long, device=device)
        self.lengths = torch.tensor([len(prefix) for prefix in prefixes], device=device)

    def __call__(
        self,
        scores: Float[Tensor, "rows vocabulary"],
        written: Int[Tensor, "rows length"],
        sentences: Int[Tensor, " rows"],
    ) -> Float[Tensor, "rows vocabulary"]:
        """Forbid everything but the next token of the prefix, while there is one."""
        position = written.size(1)  # what stands there can only be the prefix, as far as it goes
        if position >= self.longest:
            return scores
        wanted = self.tokens[sentences, position].unsqueeze(1)
        only = torch.full_like(scores, float("-inf"))
        only.scatter_(1, wanted, scores.gather(1, wanted))
        free = self.lengths[sentences] <= position
        return torch.where(free.unsqueeze(1), scores, only)


class AvoidPhrases:
    """
    Never write some phrases.

    Parameters
    ----------
    phrases : sequence of sequence of sequence of int
        For each sentence the token sequences that must not occur.
    device : torch.device, optional
        Where the scores are; the processor when absent.

    Notes
    -----
    Only these very tokens are kept out; the same letters cut into other subwords are another
    phrase.
    """

    def __init__(
        self, phrases: Sequence[Sequence[Sequence[int]]], device: torch.device | None = None
    ) -> None:
        by_length: dict[int, list[tuple[int, Sequence[int]]]] = {}
        for sentence, some in enumerate(phrases):
            for phrase in filter(len, some):
                by_length.setdefault(len(phrase), []).append((sentence, phrase))
        self.tables = [
            (
                torch.tensor([sentence for sentence, _ in group], device=device),
                torch.tensor([list(phrase) for _, phrase in group], device=device),
            )
            for group in by_length.values()
        ]

    def __call__(
        self,
        scores: Float[Tensor, "rows vocabulary"],
        written: Int[Tensor, "rows length"],
        sentences: Int[Tensor, " rows"],
    ) -> Float[Tensor, "rows vocabulary"]:
        """Forbid the last token of a phrase where the others have just been written."""
        for owners, phrases in self.tables:
            start = written.size(1) - (phrases.size(1) - 1)
            if start >= 0:
                same = (written[:, None, start:] == phrases[None, :, :-1]).all(dim=2)
                match = same & (sentences[:, None] == owners[None])
                scores = _forbid(scores, phrases[:, -1].expand(len(scores), -1), match)
        return scores


@dataclass(frozen=True)
class NoRepeatNgram:
    """
    Write no n-gram twice.

    Attributes
    ----------
    size : int
        Tokens of an n-gram, at least 1.

    Notes
    -----
    Paulus, Xiong and Socher 2017 forbid repeated trigrams in summaries; in translation it is a
    stop for models that fall into a loop. The end symbol is exempt.
    """

    size: int

    def __call__(
        self,
        scores: Float[Tensor, "rows vocabulary"],
        written: Int[Tensor, "rows length"],
        sentences: Int[Tensor, " rows"],
    ) -> Float[Tensor, "rows vocabulary"]:
        """Forbid what followed the last n - 1 tokens when they were written before."""
        del sentences
        start = written.size(1) - (self.size - 1)
        if start <= 0:
            return scores
        grams = written.unfold(1, self.size, 1)
        match = (grams[:, :, :-1] == written[:, None, start:]).all(dim=2)
        return _forbid(scores, grams[:, :, -1], match)


@dataclass(frozen=True)
class Renormalization:
    """
    Let the probabilities of what is left add up to one.

    Notes
    -----
    ``renormalize_logits`` of Hugging Face, which the models of OPUS-MT ask for. Comes last.
    """

    def __call__(
        self,
        scores: Float[Tensor, "rows vocabulary"],
        written: Int[Tensor, "rows length"],
        sentences: Int[Tensor, " rows"],
    ) -> Float[Tensor, "rows vocabulary"]:
        """Give what a rule took away to all others of the row, in proportion."""
        del written, sentences
        return torch.log_softmax(scores, dim=-1)


def apply_all(
    rules: Sequence[DecodingRule],
    scores: Float[Tensor, "rows vocabulary"],
    written: Int[Tensor, "rows length"],
    sentences: Int[Tensor, " rows"],
) -> Float[Tensor, "rows vocabulary"]:
    """
    Apply rules one after the other.

    Parameters
    ----------
    rules : sequence of DecodingRule
        In this order.
    scores : Tensor of float, shape (rows, vocabulary)
        Log-probabilities of the next token; may be changed in place.
    written : Tensor of int, shape (rows, length)
        The tokens of each row so far.
    sentences : Tensor of int, shape (rows,)
        Which sentence of the batch each row translates.

    Returns
    -------
    Tensor of float, shape (rows, vocabulary)
        Minus infinity where a rule forbids a token.

    Notes
    -----
    Greedy search, sampling and every kind of beam search call this at each step.
    """
    for rule in rules:
        scores = rule(scores, written, sentences)
    return scores


def _forbid(
    scores: Float[Tensor, "rows vocabulary"],
    tokens: Int[Tensor, "rows some"],
    where: Bool[Tensor, "rows some"],
) -> Float[Tensor, "rows vocabulary"]:
    """Forbid tokens where told, but leave a row as it is that would have nothing left."""
    bans = torch.zeros_like(where, dtype=scores.dtype).masked_fill_(where, float("-inf"))
    fewer = scores.scatter_add(1, tokens, bans)
    hopeless = fewer.isneginf().all(dim=1, keepdim=True)
    return torch.where(hopeless, scores, fewer)


@dataclass(frozen=True)
class MinLength:
    """
    Let no translation end before it has some tokens.

    Attributes
    ----------
    tokens : int
        How many, the end symbol not counted.
    end_token : int
        The end symbol.

    Notes
    -----
    fairseq and Joey NMT ask for one token unless told otherwise, so they never give an empty line.
    """

    tokens: int
    end_token: int

    def __call__(
        self,
        scores: Float[Tensor, "rows vocabulary"],
        written: Int[Tensor, "rows length"],
        sentences: Int[Tensor, " rows"],
    ) -> Float[Tensor, "rows vocabulary"]:
        """Forbid the end while a translation is too short; the scores are changed in place."""
        del sentences
        if written.size(1) < self.tokens:
            scores[:, self.end_token] = float("-inf")
        return scores


class ForcedEos:
    """
    End each translation at its limit, at no cost or at the end's own probability.

    Parameters
    ----------
    limits : sequence of int
        Most tokens of each sentence, the end symbol not counted.
    end_token : int
        The end symbol.
    device : torch.device, optional
        Where the scores are; the processor when absent.
    is_free : bool, default True
        Whether the end has the log-probability zero.

    Notes
    -----
    ``forced_eos_token_id`` of Hugging Face is free, so the score of such a translation is better
    than what the model says. fairseq counts what the model says; an end that another rule forbids
    is free there too.
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

    def __call__(
        self,
        scores: Float[Tensor, "rows vocabulary"],
        written: Int[Tensor, "rows length"],
        sentences: Int[Tensor, " rows"],
    ) -> Float[Tensor, "rows vocabulary"]:
        """Allow the end alone in rows that are at their limit."""
        if written.size(1) < self.first:
            return scores
        only = torch.full_like(scores, float("-inf"))
        end = scores[:, self.end_token]
        is_free = end.isneginf() | self.is_free
        only[:, self.end_token] = end.masked_fill(is_free, 0.0)
        full = self.limits[sentences] <= written.size(1)
        return torch.where(full.unsqueeze(1), only, scores)
