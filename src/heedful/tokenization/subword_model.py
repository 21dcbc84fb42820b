"""What a tokenizer asks of the subword model of one side, and how the two sides get theirs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Protocol, runtime_checkable

from heedful.text.file_formats import TextSource


@runtime_checkable
class SubwordModel(Protocol):
    """
    Cuts the text of one side and numbers what comes out.

    Attributes
    ----------
    kind : str
        How text is cut: one of `heedful.tokenization.serialization.KINDS`.
    tags : mapping of str to int
        The ids of language tags, which text never produces.

    Notes
    -----
    Special ids are those of `heedful.tokenization.special_symbols` in every model.
    """

    kind: str
    tags: Mapping[str, int]

    @property
    def size(self) -> int:
        """Ids there are, special ones included."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """
        Turn lines into ids.

        Parameters
        ----------
        texts : sequence of str
            Lines of text.

        Returns
        -------
        list of list of int
            The ids of each line.

        Notes
        -----
        No special symbols are added, and language tags are taken for text.
        """

    def sample(self, texts: Sequence[str], rate: float, generator: Random) -> list[list[int]]:
        """
        Turn lines into ids that are other ones each time.

        Parameters
        ----------
        texts : sequence of str
            Lines of text.
        rate : float
            How much is left to chance; what it means depends on the kind.
        generator : Random
            Where chance comes from.

        Returns
        -------
        list of list of int
            The ids of each line.

        Notes
        -----
        The same generator in the same state gives the same ids.
        """

    def decode(self, ids: Sequence[int]) -> str:
        """
        Turn ids into text.

        Parameters
        ----------
        ids : sequence of int
            Ids of this model, without special ones but `UNKNOWN`.

        Returns
        -------
        str
            The text.

        Notes
        -----
        The inverse of `encode` and of `sample`.
        """

    def piece(self, number: int) -> str:
        """
        Spell one id.

        Parameters
        ----------
        number : int
            An id of this model.

        Returns
        -------
        str
            What it stands for.

        Notes
        -----
        For people.
        """

    def files(self) -> dict[str, bytes]:
        """
        Give what has to be saved.

        Returns
        -------
        dict of str to bytes
            Content by the ending of the file.

        Notes
        -----
        Enough to make the model again.
        """


@runtime_checkable
class SubwordLearner(Protocol):
    """
    Makes the subword model of some text.

    Notes
    -----
    Called with the files, what to call their text in messages, and how many of them, from the
    first, may have language tags before their lines.
    """

    def __call__(
        self, files: Sequence[TextSource | Path], text: str, tagged: int = 0
    ) -> SubwordModel:
        """Make it."""


def models_of_sides(
    learn: SubwordLearner,
    source_files: Sequence[TextSource | Path],
    target_files: Sequence[TextSource | Path],
    shared: bool,
    languages: tuple[str, str],
) -> list[SubwordModel]:
    """
    Make one model of both sides together, or one of each.

    Parameters
    ----------
    learn : callable
        Makes the model of some files.
    source_files : sequence of Path
        Text of the source side.
    target_files : sequence of Path
        Text of the target side.
    shared : bool
        Whether the sides have one model.
    languages : tuple of str and str
        Codes of the source and the target language, for messages.

    Returns
    -------
    list of SubwordModel
        One for both sides, or that of the source and that of the target.

    Notes
    -----
    Only source lines have language tags.
    """
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
    """
    Tell whether both sides have the same ids.

    Parameters
    ----------
    models : sequence of SubwordModel
        One for both sides, or one for each.

    Returns
    -------
    bool
        True for one model, and for two that spell every id alike.

    Notes
    -----
    OPUS-MT cuts the two sides by different sentencepiece models into pieces of one vocabulary.
    """
    first, last = models[0], models[-1]
    if first is last:
        return True
    return first.size == last.size and all(
        first.piece(number) == last.piece(number) for number in range(first.size)
    )
