"""What a model is trained on, raw or prepared, and how it is known again."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from heedful.config.schema import RunConfig
from heedful.data.encoded.dataset import EncodedPairs
from heedful.runs.folder import RunFolder
from heedful.text.file_formats import TextSource
from heedful.tokenization.tokenizer import Tokenizer

# A file, a pattern, or several.
Files = str | Path | Sequence[str | Path]
# Told a line for the person at the terminal.
Say = Callable[[str], object]
# For each side of a text the names of its files and what else tells them apart.
Sizes = dict[str, list[dict[str, Any]]]


@runtime_checkable
class TrainingData(Protocol):
    """What a model is trained on: raw text, or a folder that was prepared from it."""

    def configure(self, config: RunConfig) -> RunConfig:
        """
        Fill in the settings that the material decides.

        Parameters
        ----------
        config : RunConfig
            Settings.

        Returns
        -------
        RunConfig
            With languages, and with whatever else is settled already.

        Notes
        -----
        The files' endings tell the languages of raw text.
        """
        ...

    def fingerprint(self) -> Sizes:
        """
        List the files and their sizes.

        Returns
        -------
        dict of str to list of dict
            For each side of the text what is needed to know it again.

        Notes
        -----
        What a resumed run is checked against.
        """
        ...

    def describe(self) -> str:
        """
        Say how much there is.

        Returns
        -------
        str
            A few words.

        Notes
        -----
        Finds out what is wrong with it, if anything is.
        """
        ...

    def prepare(self, folder: RunFolder, config: RunConfig, processes: int, say: Say) -> None:
        """
        See to it that a run has its subwords and its ids.

        Parameters
        ----------
        folder : RunFolder
            The run.
        config : RunConfig
            Its settings.
        processes : int
            Processes that may work; 0 for one on each core.
        say : callable
            Told how far it is, if it takes long.

        Returns
        -------
        None
            Nothing.

        Notes
        -----
        What is there already is not made again.
        """
        ...

    def ids(self, folder: RunFolder) -> list[Path]:
        """
        Tell where the ids of a run lie.

        Parameters
        ----------
        folder : RunFolder
            The run.

        Returns
        -------
        list of Path
            For each corpus a folder for `EncodedPairs.open`.

        Notes
        -----
        In the run itself or in the prepared folder.
        """
        ...

    def weights(self) -> list[float] | None:
        """
        List the weights of several corpora.

        Returns
        -------
        list of float or None
            In any unit; None if their sizes decide.

        Notes
        -----
        In the order of `ids`.
        """
        ...

    def report(self, pairs: Sequence[EncodedPairs], tokenizer: Tokenizer) -> Iterable[str]:
        """
        Say what became of the text.

        Parameters
        ----------
        pairs : sequence of EncodedPairs
            Of each corpus.
        tokenizer : Tokenizer
            What they were encoded with.

        Returns
        -------
        iterable of str
            Lines for the person at the terminal.

        Notes
        -----
        How many pairs were kept and dropped, and what is remarkable.
        """
        ...


def as_list(files: Files) -> Sequence[str | Path]:
    """
    Accept one file or several.

    Parameters
    ----------
    files : path, glob, or sequence of them
        What a user gave.

    Returns
    -------
    sequence of path
        Always several.

    Notes
    -----
    A text is a sequence too, of letters, which nobody means.
    """
    return [files] if isinstance(files, str | Path) else files


def file_records(texts: Iterable[TextSource]) -> list[dict[str, Any]]:
    """
    List what tells some texts apart.

    Parameters
    ----------
    texts : iterable of TextSource
        One side of a corpus.

    Returns
    -------
    list of dict
        Name and bytes of each file, and where it applies the part that is read and its tag.

    Notes
    -----
    Names without folders: a corpus that was moved is the same corpus.
    """
    return [
        {"file": text.path.name, "bytes": text.path.stat().st_size}
        | ({"part": text.part} if text.part else {})
        | ({"tag": text.tag} if text.tag else {})
        for text in texts
    ]


def has_subwords(folder: RunFolder) -> bool:
    """
    Tell whether subwords have been learned.

    Parameters
    ----------
    folder : RunFolder
        A run, or a prepared folder.

    Returns
    -------
    bool
        True if they are there whole.

    Notes
    -----
    `Tokenizer.save` writes this file last.
    """
    return (folder.path / "tokenizer.json").exists()
