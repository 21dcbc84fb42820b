"""The two ways to ask a folder of CTranslate2 for a comparison, in our ids."""

import sys
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from heedful.exchange.ctranslate2.engine import Engine
from heedful.exchange.ctranslate2.reference import NumpyCTranslate2
from heedful.exchange.formats import ModelBundle
from heedful.exchange.parity import Ids
from heedful.search.length import LengthLimit, LengthPenalty
from heedful.tokenization.imported_model import ImportedModel
from heedful.tokenization.subword_model import SubwordModel
from heedful.tokenization.tokenizer import END, UNKNOWN


class CTranslate2Reference:
    """
    Ask CTranslate2 itself.

    Parameters
    ----------
    engine : Engine
        With the folder open.
    source : mapping of int to str
        Its tokens by our ids.
    target : mapping of int to str
        The same of the target.
    model : ModelBundle
        What became of it here, or what it was written from.
    positions : int, optional
        Rows of its table of positions, where the settings of the search do not keep to it.

    Attributes
    ----------
    name : str
        With its version.

    Notes
    -----
    It searches as the run's settings say.
    """

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
        """
        Cut source sentences.

        Parameters
        ----------
        sentences : sequence of str
            Text.

        Returns
        -------
        list of list of int
            Our ids of the tokens that the engine reads.

        Notes
        -----
        CTranslate2 has no tokenizer: what it does not know is unknown.
        """
        ids = self._tokenizer.encode_source(sentences)
        return [[number if number in self._source else UNKNOWN for number in row] for row in ids]

    def log_probabilities(self, source: Ids, target: Ids) -> Float[np.ndarray, "places 1"]:
        """
        Compute what the model thinks of a translation.

        Parameters
        ----------
        source : sequence of int
            A source sentence.
        target : sequence of int
            A translation of it.

        Returns
        -------
        ndarray of float, shape (places, 1)
            Of each symbol, the end's last.

        Notes
        -----
        CTranslate2 tells no whole distribution.
        """
        found = self._engine.score([self._tokens(source)], [[self._target[n] for n in target]])
        return np.array(found[0], np.float32)[:, None]

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
            Our ids.

        Notes
        -----
        By the settings of the run, as far as the table of positions goes.
        """
        sources = self.encode(sentences)
        limit = LengthLimit.parse(self._search.max_length)
        found = self._engine.search(
            [self._tokens(row) for row in sources],
            [min(limit.tokens(len(row)), self._most) for row in sources],
            beam=self._search.beam,
            penalty=LengthPenalty.parse(self._search.length_penalty),
            least=self._search.min_length,
        )
        number = self._numbers.get
        return [[number(token, UNKNOWN) for token in one[0].tokens] for one in found]

    def _tokens(self, ids: Ids) -> list[str]:
        """Spell source ids."""
        return [self._source[number] for number in ids]


class NumpyCTranslate2Reference:
    """
    Ask the plain computation.

    Parameters
    ----------
    plain : NumpyCTranslate2
        The original variables.
    source : mapping of int to int
        Their ids by ours.
    target : mapping of int to int
        The same of the target.
    never : sequence of int
        Our ids that no translation may hold.
    model : ModelBundle
        What became of them.

    Attributes
    ----------
    name : str
        What computes.

    Notes
    -----
    Where CTranslate2 is not installed. It searches greedily.
    """

    name = "a plain computation with NumPy"

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
        """
        Cut source sentences.

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
        As the run's tokenizer does.
        """
        return self._tokenizer.encode_source(sentences)

    def log_probabilities(self, source: Ids, target: Ids) -> Float[np.ndarray, "places rows"]:
        """
        Compute what the model thinks of a translation.

        Parameters
        ----------
        source : sequence of int
            A source sentence.
        target : sequence of int
            A translation of it.

        Returns
        -------
        ndarray of float, shape (places, rows)
            Of every symbol at every place, in our order.

        Notes
        -----
        Minus infinity for symbols that they do not have.
        """
        found = self._plain.log_probabilities(
            [self._source[number] for number in source], [self._target[n] for n in target]
        )
        ours = np.full((len(found), 1 + max(self._target)), -np.inf, np.float32)
        for mine, theirs in self._target.items():
            ours[:, mine] = found[:, theirs]
        return ours

    def outputs(self, sentences: Sequence[str]) -> list[list[int]]:
        """
        Translate greedily.

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
        One step after the other, everything computed anew.
        """
        limit = LengthLimit.parse(self._search.max_length)
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
    """
    List their id of each of ours.

    Parameters
    ----------
    model : SubwordModel
        Subwords of one side.
    rows : int
        Of their table.

    Returns
    -------
    dict of int to int
        Without our ids that they do not have.

    Notes
    -----
    Ids are theirs unless the model was imported.
    """
    if not isinstance(model, ImportedModel):
        return {number: number for number in range(rows)}
    origins = enumerate(model.id_mapping.origins)
    return {ours: theirs for ours, theirs in origins if theirs is not None}
