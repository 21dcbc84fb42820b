"""The interface of subword models, and their training for both sides."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Protocol, runtime_checkable

from heedful.text.file_formats import TextSource


@runtime_checkable
class SubwordModel(Protocol):
    """The interface of a subword model, which splits the text of one side and maps it to ids."""

    kind: str
    """Kind of segmentation: one of `heedful.tokenization.serialization.KINDS`."""
    tags: Mapping[str, int]
    """The ids of language tags, which text never produces."""

    @property
    def size(self) -> int:
        """Number of ids, special ones included."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Convert lines to ids; adds no special symbols, and treats language tags as text."""

    def sample(self, texts: Sequence[str], rate: float, generator: Random) -> list[list[int]]:
        """Convert lines to ids with random segmentations."""

    def decode(self, ids: Sequence[int]) -> str:
        """Convert ids to text."""

    def piece(self, number: int) -> str:
        """Return the text of one id."""

    def files(self) -> dict[str, bytes]:
        """Return the files to save."""


@runtime_checkable
class SubwordLearner(Protocol):
    """
    A function that trains the subword model of some text.

    Its arguments are the files, the name of their text in messages, and the number of files,
    counted from the first, that have language tags.
    """

    def __call__(
        self, files: Sequence[TextSource | Path], text: str, tagged: int = 0
    ) -> SubwordModel:
        """Train a subword model."""


def models_of_sides(
    learn: SubwordLearner,
    source_files: Sequence[TextSource | Path],
    target_files: Sequence[TextSource | Path],
    shared: bool,
    languages: tuple[str, str],
) -> list[SubwordModel]:
    """Train one model for both sides, or one model for each side."""
    source, target = languages[0] or "source", languages[1] or "target"
    tagged = len(source_files)
    if shared:
        text = f"{source} and {target} text together"
        return [learn([*source_files, *target_files], text, tagged=tagged)]
    return [
        learn(source_files, f"{source} text", tagged=tagged),
        learn(target_files, f"{target} text"),
    ]


def share_vocabulary(models: Sequence[SubwordModel]) -> bool:
    """Whether both sides have the same ids."""
    # OPUS-MT splits the two sides with different SentencePiece models into pieces of one
    # vocabulary.
    first, last = models[0], models[-1]
    if first is last:
        return True
    return first.size == last.size and all(
        first.piece(number) == last.piece(number) for number in range(first.size)
    )
