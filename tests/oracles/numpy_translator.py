"""A model in NumPy as a side of a parity check: its toolkit's ids and search."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from heedful.exchange.parity import Ids
from heedful.tokenization.id_mapping import IdMapping
from heedful.tokenization.tokenizer import Tokenizer
from tests.oracles.numpy_convs2s import NumpyConvS2S
from tests.oracles.numpy_recurrent import NumpyRecurrent
from tests.oracles.numpy_transformer import NumpyTransformer, Past


@dataclass(frozen=True)
class ForeignVocabulary:
    """The vocabulary of one side in the toolkit's order."""

    id_mapping: IdMapping
    """Between their ids and ours."""
    numbers: Mapping[str, int]
    """Their ids by piece."""
    unknown: int
    end: int
    """Their ids; `end` is -1 where they have none."""


@dataclass(frozen=True)
class NumpySearch:
    """
    How a toolkit searches.

    With ``when-beam-finished`` an end counts among the best `beam` of a step, and at the limit the
    end is forced with its own probability. With ``as-joey`` and ``as-opennmt`` a hypothesis without
    an end at the limit counts as it is.
    """

    beam: int
    """Hypotheses kept."""
    divisor: Callable[[int], float]
    """Maps a length, the end included, to the divisor of a score."""
    limit: Callable[[int], int]
    """
    Maps the source's length, its end included, to the maximum number of tokens before the end.
    """
    least: int
    """Minimum number of tokens before the end."""
    start: int
    """The decoder's first input."""
    forbidden: tuple[int, ...]
    """Forbidden ids."""
    stop: str = "when-beam-finished"
    """When the search is over (`heedful.search.stopping`)."""


class _OpenBeam(NamedTuple):
    """The open hypotheses of a sentence."""

    tokens: list[list[int]]
    scores: np.ndarray
    past: Past


class NumpyTranslator:
    """The NumPy reference as a side of a parity check, with inputs and outputs in our ids."""

    def __init__(
        self,
        name: str,
        model: NumpyTransformer | NumpyRecurrent | NumpyConvS2S,
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
        """Create a copy in double precision; sinusoids stay rounded, as in every toolkit."""
        wide = {name: tensor.astype(np.float64) for name, tensor in self._model.tensors.items()}
        side = copy(self)
        side._model = replace(self._model, tensors=wide)
        return side

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """Tokenize and look tokens up by their ids, so that a wrong order of rows shows."""
        words = self._source
        rows = self._tokenizer.encode_source(sentences)
        spelled = [self._tokenizer.pieces_source(row) for row in rows]
        return [
            words.id_mapping.to_ours([words.numbers.get(piece, words.unknown) for piece in pieces])
            for pieces in spelled
        ]

    def log_probabilities(self, source: Ids, target: Ids) -> np.ndarray:
        """Compute log-probabilities in our order, minus infinity for symbols that they lack."""
        words = self._target
        memory = self._memory(source)
        tokens = [self._rule.start, *words.id_mapping.to_theirs(target)]
        past: Past = []
        origins = words.id_mapping.origins
        scores = np.full((len(tokens), len(origins)), -np.inf, dtype=np.float64)
        known = [ours for ours, theirs in enumerate(origins) if theirs is not None]
        theirs = [number for number in origins if number is not None]
        for at, token in enumerate(tokens):
            row, past = self._model.step(memory, past, [token], at)
            scores[at, known] = row[0, theirs]
        return scores

    def outputs(self, sentences: Sequence[str]) -> list[list[int]]:
        """Translate with the toolkit's search."""
        rows = self.encode(sentences)
        is_plain = self._rule.stop == "when-beam-finished"
        search = self._search if is_plain else self._search_places
        return [self._target.id_mapping.to_ours(search(row)) for row in rows]

    def _memory(self, source: Ids) -> list[tuple[np.ndarray, np.ndarray]]:
        """Encode a source."""
        theirs = [*self._source.id_mapping.to_theirs(source), *self._tail]
        return self._model.offer_memory(self._model.encode(theirs))

    def _search(self, source: Ids) -> list[int]:
        """Search the best translation of one sentence."""
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
            open_ends = []
            for place, (parent, token) in enumerate(zip(parents, tokens, strict=True)):
                score = float(scores[parent, token])
                if token != end:
                    open_ends.append((int(parent), int(token), score))
                elif place < rule.beam and np.isfinite(score):
                    done.append((score / rule.divisor(at + 1), still.tokens[parent][1:]))
            open_ends = [candidate for candidate in open_ends if np.isfinite(candidate[2])][
                : rule.beam
            ]
            if len(done) >= rule.beam or not open_ends:
                break
            chosen = [parent for parent, _, _ in open_ends]
            still = _OpenBeam(
                [[*still.tokens[parent], token] for parent, token, _ in open_ends],
                np.array([score for _, _, score in open_ends]),
                [(keys[chosen], values[chosen]) for keys, values in past],
            )
        return max(done, key=lambda candidate: candidate[0])[1] if done else []

    def _search_places(self, source: Ids) -> list[int]:
        """Search the best translation by a rule where ended hypotheses keep their place."""
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
            ordered = [(keys[parents], values[parents]) for keys, values in past]
            still = _OpenBeam(texts, totals, ordered)
        return max(done, key=lambda candidate: candidate[0])[1] if done else []
