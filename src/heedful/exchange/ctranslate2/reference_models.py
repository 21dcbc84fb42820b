"""Reference models of a parity check in our ids: CTranslate2's engine and a NumPy computation."""

import sys
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from heedful.exchange.ctranslate2.engine import Engine
from heedful.exchange.ctranslate2.reference import NumpyCTranslate2
from heedful.exchange.formats import ModelBundle
from heedful.exchange.parity import Ids
from heedful.search.settings import SearchSettings
from heedful.tokenization.imported_model import ImportedModel
from heedful.tokenization.subword_model import SubwordModel
from heedful.tokenization.tokenizer import END, UNKNOWN


class CTranslate2Reference:
    """CTranslate2 as the reference model of a parity check."""

    def __init__(
        self,
        engine: Engine,
        source: Mapping[int, str],
        target: Mapping[int, str],
        model: ModelBundle,
        positions: int | None = None,
    ) -> None:
        self.name = engine.name
        self._most = sys.maxsize if positions is None else positions - 1
        self._engine, self._search = engine, model.config.search
        self._tokenizer = model.tokenizer
        self._source, self._target = source, target
        self._numbers = {token: number for number, token in target.items()}

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """Tokenize source sentences; tokens that CTranslate2 lacks become unknown."""
        ids = self._tokenizer.encode_source(sentences)
        return [[number if number in self._source else UNKNOWN for number in row] for row in ids]

    def log_probabilities(self, source: Ids, target: Ids) -> Float[np.ndarray, "places 1"]:
        """Compute the log-probability of each given token; CTranslate2 gives no others."""
        found = self._engine.score([self._tokens(source)], [[self._target[n] for n in target]])
        return np.array(found[0], np.float32)[:, None]

    def outputs(self, sentences: Sequence[str]) -> list[list[int]]:
        """Translate by the settings of the run, up to the length of the position table."""
        sources = self.encode(sentences)
        settings = SearchSettings.of(self._search)
        limits = [min(settings.limit.tokens(len(row)), self._most) for row in sources]
        found = self._engine.search([self._tokens(row) for row in sources], limits, settings)
        number = self._numbers.get
        return [[number(token, UNKNOWN) for token in one[0].tokens] for one in found]

    def _tokens(self, ids: Ids) -> list[str]:
        """Convert source ids to tokens."""
        return [self._source[number] for number in ids]


class NumpyCTranslate2Reference:
    """The NumPy reference for parity where CTranslate2 is not installed; it searches greedily."""

    name = "a plain computation with NumPy"
    """The engine."""

    def __init__(
        self,
        plain: NumpyCTranslate2,
        source: Mapping[int, int],
        target: Mapping[int, int],
        never: Sequence[int],
        model: ModelBundle,
    ) -> None:
        self._plain, self._search = plain, model.config.search
        self._tokenizer, self._never = model.tokenizer, list(never)
        self._source, self._target = source, target

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """Tokenize source sentences with the run's tokenizer."""
        return self._tokenizer.encode_source(sentences)

    def log_probabilities(self, source: Ids, target: Ids) -> Float[np.ndarray, "places rows"]:
        """Compute log-probabilities, minus infinity for symbols that CTranslate2 does not have."""
        found = self._plain.log_probabilities(
            [self._source[number] for number in source], [self._target[n] for n in target]
        )
        ours = np.full((len(found), 1 + max(self._target)), -np.inf, np.float32)
        for mine, theirs in self._target.items():
            ours[:, mine] = found[:, theirs]
        return ours

    def outputs(self, sentences: Sequence[str]) -> list[list[int]]:
        """Translate greedily, step by step, without a cache."""
        limit = SearchSettings.of(self._search).limit
        found = []
        for row in self.encode(sentences):
            target: list[int] = []
            while len(target) < min(limit.tokens(len(row)), 3 * len(row) + 10):
                last = self.log_probabilities(row, target)[-1]
                last[self._never] = -np.inf
                if len(target) < self._search.min_length:
                    last[END] = -np.inf
                best = int(last.argmax())
                if best == END:
                    break
                target.append(best)
            found.append(target)
        return found


def original_ids(model: SubwordModel, rows: int) -> dict[int, int]:
    """List their id for each of ours; ids are theirs unless the model was imported."""
    if not isinstance(model, ImportedModel):
        return {number: number for number in range(rows)}
    origins = enumerate(model.id_mapping.origins)
    return {ours: theirs for ours, theirs in origins if theirs is not None}
