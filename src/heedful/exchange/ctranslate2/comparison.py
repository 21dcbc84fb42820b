"""CTranslate2 as one side of a parity check; inputs and outputs are our token ids."""

import sys
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from heedful.exchange.ctranslate2.engine import Engine
from heedful.exchange.formats import ModelBundle
from heedful.exchange.parity import Ids
from heedful.search.settings import SearchOptions
from heedful.tokenization.tokenizer import UNKNOWN


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
        """Tokenize source sentences; tokens that CTranslate2 lacks become the unknown symbol."""
        ids = self._tokenizer.encode_source(sentences)
        return [[number if number in self._source else UNKNOWN for number in row] for row in ids]

    def log_probabilities(self, source: Ids, target: Ids) -> Float[np.ndarray, "places 1"]:
        """Compute only each target token's log-probability; CTranslate2 returns no others."""
        scores = self._engine.score([self._tokens(source)], [[self._target[n] for n in target]])
        return np.array(scores[0], np.float32)[:, None]

    def outputs(self, sentences: Sequence[str]) -> list[list[int]]:
        """Translate with the run's search settings; the position table limits the length."""
        sources = self.encode(sentences)
        settings = SearchOptions().over(self._search)
        limits = [min(settings.limit.tokens(len(row)), self._most) for row in sources]
        lines = self._engine.search([self._tokens(row) for row in sources], limits, settings)
        number = self._numbers.get
        return [[number(token, UNKNOWN) for token in hypotheses[0].tokens] for hypotheses in lines]

    def _tokens(self, ids: Ids) -> list[str]:
        """Convert source ids to tokens."""
        return [self._source[number] for number in ids]
