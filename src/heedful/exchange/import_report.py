"""
The checks of an import, with and without the other toolkit.

The key map must contain every tensor of the original and every weight of our model
(`heedful.families.keymap`). No two of our ids may map to the same row of an original table
(`heedful.tokenization.id_mapping`). The report counts the sentences whose subwords do not change
when they are joined and split again. If the toolkit itself can run, both models translate the same
sentences, and their log-probabilities are compared (`heedful.exchange.parity`).
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
    """The results of the checks of an import."""

    tensors: TensorUse
    """How the import used the tensors of the original."""
    sentences: int
    """Number of sentences that were split into subwords."""
    round_trips: int
    """Number of sentences whose subwords do not change when they are joined and split again."""
    parity: Parity | None
    """The comparison with the toolkit itself; None if there was no comparison."""
    why_alone: str = ""
    """Reason why there was no comparison."""

    def check_outputs(self, folder: Path) -> None:
        """Call `Parity.check_outputs`, if translations were compared."""
        if self.parity is not None:
            self.parity.check_outputs(folder)

    def __str__(self) -> str:
        """Format as one line."""
        return (
            f"{self.tensors}; {self.round_trips} of {self.sentences} sentences have the same "
            "subwords after decoding to text and encoding again; "
            f"{self.parity or self.why_alone}"
        )


def count_round_trips(tokenizer: Tokenizer, sentences: Sequence[str]) -> int:
    """Count the sentences whose subwords do not change when they are joined and split again."""
    rows = tokenizer.encode_source(sentences)
    joined = [tokenizer.decode_source(row) for row in rows]
    return sum(map(eq, rows, tokenizer.encode_source(joined)))
