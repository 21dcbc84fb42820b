"""
Subwords and ids made ahead of training, in a folder of their own.

::

    DIR/prepared.json                     settings, files, whether all is done
    DIR/tokenizer.json, tokenizer*.model  subwords
    DIR/data/                             ids, and report.json: what each rule dropped

Several runs can be trained from one folder. Torch is not needed and is not loaded.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.checkpoint.rundir import RunFolder
from heedful.config.schema import RunConfig
from heedful.data.encoded import EncodedPairs
from heedful.data.tokenizer import Tokenizer
from heedful.errors import RunFolderError, SettingError
from heedful.workflow.material import Say, Sizes, has_subwords
from heedful.workflow.prepared_record import RECORD, data_settings, names_of, read_record


@dataclass(frozen=True)
class PreparedText:
    """
    Know a folder that `heedful data prepare` made.

    Attributes
    ----------
    folder : RunFolder
        Where it is.
    settings : dict of str to Any
        Settings by their dotted names, as they were when it was made.
    corpus : dict
        The files it was made from.
    digest : str
        Of the ids.
    asked : sequence of str, optional
        ``key=value`` strings that the user gave for the run, which must not contradict.

    Notes
    -----
    A `Material`.
    """

    folder: RunFolder
    settings: dict[str, Any]
    corpus: Sizes
    digest: str
    asked: Sequence[str] = ()

    @classmethod
    def open(cls, path: str | Path, asked: Sequence[str] = ()) -> "PreparedText":
        """
        Read what a prepared folder says of itself.

        Parameters
        ----------
        path : str or Path
            The folder.
        asked : sequence of str, optional
            ``key=value`` strings that the user gave for the run.

        Returns
        -------
        PreparedText
            Without its pairs.

        Notes
        -----
        Raises `RunFolderError` if it is no such folder, is not finished or is damaged.
        """
        folder = RunFolder(Path(path))
        if not (folder.path / RECORD).is_file():
            what = f"holds no {RECORD}" if folder.path.exists() else "is not there"
            raise RunFolderError(
                "--data must be a folder made by `heedful data prepare`, but "
                f"{folder.path} {what}; check the path."
            )
        record = read_record(folder.path)
        if record["complete"] is not True:
            raise RunFolderError(
                f"--data must be a finished folder, but {folder.path} is not: `heedful data "
                "prepare` was interrupted. Run it again with the same arguments; it goes on from "
                "there."
            )
        return cls(folder, record["settings"], record["corpus"], str(record.get("digest")), asked)

    def configure(self, config: RunConfig) -> RunConfig:
        """
        Take over the settings of data that the folder was made with.

        Parameters
        ----------
        config : RunConfig
            Settings of a recipe, changed by what the user asked for.

        Returns
        -------
        RunConfig
            The model's, the training's and the search's settings of `config`, the data's of the
            folder.

        Notes
        -----
        A recipe gives way silently, what the user asked for does not: raises `SettingError`.
        """
        given = data_settings(config)
        asked = {setting.partition("=")[0].strip() for setting in self.asked}
        data = {key: value for key, value in self.settings.items() if key.startswith("data.")}
        other = [
            f"{key} is {data[key]!r} there and {given[key]!r} was asked for"
            for key in sorted(asked & data.keys())
            if given[key] != data[key]
        ]
        if other:
            raise SettingError(
                f"--set must not contradict what {self.folder.path} was prepared with, but "
                f"{'; '.join(other)}. Leave it out, or prepare the text again into another folder."
            )
        return config.with_settings(data)

    def files(self) -> Sizes:
        """
        List the files that the folder was made from, and the folder.

        Returns
        -------
        dict of str to list of dict
            As for raw text, and under “prepared” the digest of the ids.

        Notes
        -----
        A run that began with prepared text goes on with the same.
        """
        return {**self.corpus, "prepared": [{"file": self.folder.path.name, "digest": self.digest}]}

    def describe(self) -> str:
        """
        Read all pairs once.

        Returns
        -------
        str
            How many there are, and where.

        Notes
        -----
        A damaged file or another folder's subwords show here.
        """
        pairs = self._open()
        for part in pairs:
            part.check()
        return f"{sum(map(len, pairs)):,} pairs, prepared in {self.folder.path}"

    def provide(self, folder: RunFolder, config: RunConfig, processes: int, say: Say) -> None:
        """
        Copy the subwords into a run.

        Parameters
        ----------
        folder : RunFolder
            The run.
        config : RunConfig
            Not needed here.
        processes : int
            Not needed here.
        say : callable
            Not needed here.

        Returns
        -------
        None
            Nothing.

        Notes
        -----
        The ids stay where they are: a model in use needs its subwords, but not its ids.
        """
        if not has_subwords(folder):
            Tokenizer.load(self.folder.path).save(folder.path)

    def ids(self, folder: RunFolder) -> list[Path]:
        """
        Tell where the ids lie.

        Parameters
        ----------
        folder : RunFolder
            The run, which has none.

        Returns
        -------
        list of Path
            In the prepared folder, one for each corpus.

        Notes
        -----
        `EncodedPairs.open` checks that they are of the run's subwords.
        """
        return [self.folder.data / name for name in self.names]

    def weights(self) -> list[float] | None:
        """
        List the weights that the corpora were described with.

        Returns
        -------
        list of float or None
            In any unit; None if their sizes decide.

        Notes
        -----
        In the order of `ids`.
        """
        found = [self.corpus.get(f"{name}.weight") for name in self.names]
        return [float(entry[0]["weight"]) for entry in found if entry] or None

    def report(self, pairs: Sequence[EncodedPairs], tokenizer: Tokenizer) -> Iterator[str]:
        """
        Say what there is.

        Parameters
        ----------
        pairs : sequence of EncodedPairs
            Of each corpus.
        tokenizer : Tokenizer
            Not needed here.

        Yields
        ------
        str
            A line for the person at the terminal.

        Notes
        -----
        `heedful data prepare` has told the rest.
        """
        for name, encoded in zip(self.names, pairs, strict=True):
            yield f"{name}: {encoded.report.summary()}" if name else encoded.report.summary()

    @property
    def names(self) -> list[str]:
        """Names of the corpora; one empty name if there is only one."""
        return names_of(self.corpus)

    def _open(self) -> list[EncodedPairs]:
        """Open the pairs with the folder's own subwords."""
        tokenizer = Tokenizer.load(self.folder.path)
        return [EncodedPairs.open(ids, tokenizer) for ids in self.ids(self.folder)]
