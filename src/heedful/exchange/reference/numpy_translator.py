"""The plain Transformer as a side of a comparison: its toolkit's ids, its toolkit's search."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from heedful.exchange.parity import Ids
from heedful.exchange.reference.numpy_transformer import NumpyTransformer, Past
from heedful.tokenization.id_mapping import IdMapping
from heedful.tokenization.tokenizer import Tokenizer


@dataclass(frozen=True)
class ForeignVocabulary:
    """
    Hold the vocabulary of one side as the toolkit has it.

    Attributes
    ----------
    id_mapping : IdMapping
        Between their ids and ours.
    numbers : mapping of str to int
        Their ids by piece.
    unknown, end : int
        Their ids; `end` is -1 where they have none.

    Notes
    -----
    Of the source, or of the target.
    """

    id_mapping: IdMapping
    numbers: Mapping[str, int]
    unknown: int
    end: int


@dataclass(frozen=True)
class NumpySearch:
    """
    Say how a toolkit searches.

    Attributes
    ----------
    beam : int
        Hypotheses kept.
    divisor : callable
        From a length, the end included, to what a score is divided by.
    limit : callable
        From the source's length, its end included, to the most tokens before the end.
    least : int
        The fewest tokens before the end.
    start : int
        What the decoder reads first.
    forbidden : tuple of int
        Ids that are never written.
    stop : {'when-beam-finished', 'as-joey', 'as-opennmt'}
        When the search is over (`heedful.search.stopping`).

    Notes
    -----
    With ``when-beam-finished`` an end counts among the best `beam` of a step, and at the limit the
    end is forced with its own probability. With ``as-joey`` and ``as-opennmt`` what has no end at
    the limit counts as it is.
    """

    beam: int
    divisor: Callable[[int], float]
    limit: Callable[[int], int]
    least: int
    start: int
    forbidden: tuple[int, ...]
    stop: str = "when-beam-finished"


class _OpenBeam(NamedTuple):
    """The open hypotheses of a sentence."""

    tokens: list[list[int]]
    scores: np.ndarray
    past: Past


class NumpyTranslator:
    """
    Answer in our ids with a plain computation on their tensors.

    Parameters
    ----------
    name : str
        What is computed, for people.
    model : NumpyTransformer
        Their model.
    tokenizer : Tokenizer
        Cuts text; the ids are looked up in their vocabulary.
    source, target : ForeignVocabulary
        Their vocabularies.
    source_ends : bool
        Whether a source ends in their end symbol.
    rule : NumpySearch
        Their search.

    Notes
    -----
    Fulfils `heedful.exchange.parity.ReferenceModel`.
    """

    def __init__(
        self,
        name: str,
        model: NumpyTransformer,
        tokenizer: Tokenizer,
        source: ForeignVocabulary,
        target: ForeignVocabulary,
        source_ends: bool,
        rule: NumpySearch,
    ) -> None:
        self.name = name
        self._model, self._tokenizer, self._rule = model, tokenizer, rule
        self._source, self._target = source, target
        self._tail = [source.end] if source_ends else []

    def in_double(self) -> "NumpyTranslator":
        """
        Make the same side once more, computing in double precision.

        Returns
        -------
        NumpyTranslator
            The same tensors.

        Notes
        -----
        Sinusoids stay rounded to single precision, as they are in every toolkit.
        """
        wide = {name: tensor.astype(np.float64) for name, tensor in self._model.tensors.items()}
        side = copy(self)
        side._model = replace(self._model, tensors=wide)
        return side

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """
        Cut source sentences and look the pieces up in their vocabulary.

        Parameters
        ----------
        sentences : sequence of str
            Text.

        Returns
        -------
        list of list of int
            Our ids.

        Notes
        -----
        Pieces go through their ids, so a wrong order of rows shows.
        """
        words = self._source
        rows = self._tokenizer.encode_source(sentences)
        spelled = [self._tokenizer.pieces_source(row) for row in rows]
        return [
            words.id_mapping.to_ours([words.numbers.get(piece, words.unknown) for piece in pieces])
            for pieces in spelled
        ]

    def log_probabilities(self, source: Ids, target: Ids) -> np.ndarray:
        """
        Compute what the model thinks of a translation.

        Parameters
        ----------
        source : sequence of int
            Our ids.
        target : sequence of int
            Our ids.

        Returns
        -------
        ndarray of float, shape (target + 1, vocabulary)
            In the order of our ids, minus infinity for what they do not have.

        Notes
        -----
        Token by token, as a search would.
        """
        words = self._target
        memory = self._memory(source)
        tokens = [self._rule.start, *words.id_mapping.to_theirs(target)]
        past: Past = []
        origins = words.id_mapping.origins
        found = np.full((len(tokens), len(origins)), -np.inf, dtype=np.float64)
        known = [ours for ours, theirs in enumerate(origins) if theirs is not None]
        theirs = [number for number in origins if number is not None]
        for at, token in enumerate(tokens):
            row, past = self._model.step(memory, past, [token], at)
            found[at, known] = row[0, theirs]
        return found

    def outputs(self, sentences: Sequence[str]) -> list[list[int]]:
        """
        Translate.

        Parameters
        ----------
        sentences : sequence of str
            Text.

        Returns
        -------
        list of list of int
            Our ids, without the end.

        Notes
        -----
        By their rule.
        """
        rows = self.encode(sentences)
        is_plain = self._rule.stop == "when-beam-finished"
        search = self._search if is_plain else self._search_places
        return [self._target.id_mapping.to_ours(search(row)) for row in rows]

    def _memory(self, source: Ids) -> list[tuple[np.ndarray, np.ndarray]]:
        """Read a source."""
        theirs = [*self._source.id_mapping.to_theirs(source), *self._tail]
        return self._model.offer_memory(self._model.encode(theirs))

    def _search(self, source: Ids) -> list[int]:
        """Find the best translation of one sentence."""
        rule, end = self._rule, self._target.end
        memory = self._memory(source)
        limit = rule.limit(len(source) + len(self._tail))
        still = _OpenBeam([[rule.start]], np.zeros(1), [])
        done: list[tuple[float, list[int]]] = []
        for at in range(limit + 1):
            newest = [tokens[-1] for tokens in still.tokens]
            rows, past = self._model.step(memory, still.past, newest, at)
            rows = rows.astype(np.float64)
            rows[:, list(rule.forbidden)] = -np.inf
            if at < rule.least:
                rows[:, end] = -np.inf
            if at == limit:
                rows[:, :end] = rows[:, end + 1 :] = -np.inf
            scores = still.scores[:, None] + rows
            best = np.argsort(-scores, axis=None, kind="stable")[: 2 * rule.beam]
            parents, tokens = np.unravel_index(best, scores.shape)
            kept = []
            for place, (parent, token) in enumerate(zip(parents, tokens, strict=True)):
                score = float(scores[parent, token])
                if token != end:
                    kept.append((int(parent), int(token), score))
                elif place < rule.beam and np.isfinite(score):
                    done.append((score / rule.divisor(at + 1), still.tokens[parent][1:]))
            kept = [one for one in kept if np.isfinite(one[2])][: rule.beam]
            if len(done) >= rule.beam or not kept:
                break
            chosen = [parent for parent, _, _ in kept]
            still = _OpenBeam(
                [[*still.tokens[parent], token] for parent, token, _ in kept],
                np.array([score for _, _, score in kept]),
                [(keys[chosen], values[chosen]) for keys, values in past],
            )
        return max(done, key=lambda one: one[0])[1] if done else []

    def _search_places(self, source: Ids) -> list[int]:
        """Find the best translation where what has ended is among the `beam` best of its step."""
        rule, end = self._rule, self._target.end
        memory = self._memory(source)
        limit = rule.limit(len(source) + len(self._tail))
        still = _OpenBeam([[rule.start]], np.zeros(1), [])
        done: list[tuple[float, list[int]]] = []
        have_ended = np.zeros(rule.beam, dtype=bool)
        for at in range(limit):
            newest = [tokens[-1] for tokens in still.tokens]
            rows, past = self._model.step(memory, still.past, newest, at)
            rows = rows.astype(np.float64)
            rows[:, list(rule.forbidden)] = -np.inf
            if at < rule.least:
                rows[:, end] = -np.inf
            scores = still.scores[:, None] + rows
            best = np.argsort(-scores, axis=None, kind="stable")[: rule.beam]
            parents, chosen = np.unravel_index(best, scores.shape)
            totals = scores[parents, chosen]
            texts = [[*still.tokens[p], int(t)] for p, t in zip(parents, chosen, strict=True)]
            for text, total in zip(texts, totals, strict=True):
                has_ended = text.index(end) == len(text) - 1 if end in text else at + 1 == limit
                if has_ended and np.isfinite(total):
                    tokens = text[1:-1] if text[-1] == end else text[1:]
                    done.append((float(total) / rule.divisor(at + 1), tokens))
            if rule.stop == "as-opennmt":  # BeamSearchBase.update_finished of version 3.5.1
                if chosen[0] == end:
                    break
                totals = np.where(chosen == end, -np.inf, totals)
            have_ended[: len(best)] |= (chosen == end) | ~np.isfinite(totals)
            if rule.stop == "as-joey" and have_ended.all():
                break
            kept = [(keys[parents], values[parents]) for keys, values in past]
            still = _OpenBeam(texts, totals, kept)
        return max(done, key=lambda one: one[0])[1] if done else []
