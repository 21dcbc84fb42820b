"""
The checks of an import, with and without the other toolkit.

The map of tensors accounts for every tensor of the original and for every weight here
(`heedful.families.keymap`). The ids of the vocabulary are a permutation of the rows of the tables
(`heedful.tokenization.id_mapping`). Text that is cut, joined and cut again has the same subwords.
If the toolkit itself can run, both models compute and translate the same sentences
(`heedful.exchange.parity`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import eq
from pathlib import Path

from heedful.exchange.parity import Parity
from heedful.families.keymap import TensorUse
from heedful.tokenization.tokenizer import Tokenizer


@dataclass(frozen=True)
class ImportReport:
    """The results of an import's checks; a failed import leaves nothing behind."""

    tensors: TensorUse
    """Use of the original's tensors."""
    sentences: int
    """Sentences that were cut into subwords."""
    round_trips: int
    """Sentences that keep their subwords when they are joined and split again."""
    parity: Parity | None
    """The comparison with the toolkit itself; None if it was not run."""
    why_alone: str = ""
    """Why the comparison was not run."""

    def check_outputs(self, folder: Path) -> None:
        """Call `Parity.check_outputs`, if translations were compared."""
        if self.parity is not None:
            self.parity.check_outputs(folder)

    def __str__(self) -> str:
        """Format as one line."""
        return (
            f"{self.tensors}; {self.round_trips} of {self.sentences} sentences keep their "
            f"subwords when they are joined and split again; {self.parity or self.why_alone}"
        )


def count_round_trips(tokenizer: Tokenizer, sentences: Sequence[str]) -> int:
    """Count the sentences that keep their subwords when they are joined and split again."""
    rows = tokenizer.encode_source(sentences)
    joined = [tokenizer.decode_source(row) for row in rows]
    return sum(map(eq, rows, tokenizer.encode_source(joined)))
