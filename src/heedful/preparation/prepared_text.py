"""
Subwords and ids made ahead of training, in a folder of their own.

::

    DIR/prepared.json                     settings, files, whether all is done
    DIR/tokenizer.json, tokenizer*.model  subwords
    DIR/data/                             ids, and report.json: what each rule dropped

Several runs can be trained from one folder. Torch is not needed and is not loaded.

``prepared.json``: what a folder of prepared text says of itself.

Its settings and files, so that preparing can go on and training knows what it takes over.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.config.renames import renamed_settings
from heedful.config.schema import RunConfig
from heedful.data.encoded.dataset import EncodedPairs
from heedful.errors import RunFolderError, SettingError
from heedful.preparation.training_data import Say, Sizes, has_subwords
from heedful.runs.folder import RunFolder, read_json
from heedful.tokenization.tokenizer import Tokenizer

RECORD = "prepared.json"
"""Settings, files, and what came of them."""
FORMAT = 1
"""Number of the format, in `RECORD`."""
_SOURCE = re.compile(r"([\w-]+\.)?source").fullmatch


def read_record(path: Path) -> dict[str, Any]:
    """
    Read and check ``prepared.json``.

    Parameters
    ----------
    path : Path
        A prepared folder.

    Returns
    -------
    dict of str to Any
        With the fields “complete”, “settings” and “corpus”.

    Notes
    -----
    Raises `RunFolderError` if it is something else. The values of settings are checked where they
    are used, as those of any other source are.
    """
    record = read_json(path / RECORD)
    corpus = record.get("corpus")
    expected = (
        record.get("format") == FORMAT
        and isinstance(record.get("complete"), bool)
        and isinstance(record.get("settings"), dict)
        and isinstance(corpus, dict)
        and all(isinstance(files, list) for files in corpus.values())
        and all(_is_entry(file) for files in corpus.values() for file in files)
    )
    if not expected:
        raise RunFolderError(
            f"{path / RECORD} must have the fields of format {FORMAT} (complete, settings, "
            "corpus), but it differs: it was changed, or a newer version wrote it; prepare the "
            "text again into another folder, or upgrade heedful."
        )
    record["settings"] = renamed_settings(record["settings"])
    return record


def names_of(corpus: Sizes) -> list[str]:
    """
    Read the names of the corpora off the list of their files.

    Parameters
    ----------
    corpus : dict
        As `Material.files` lists them.

    Returns
    -------
    list of str
        In order; one empty name if there is only one corpus.

    Notes
    -----
    A prepared folder may come from a stranger: a name that would lead out of it is none.
    """
    found = [side.removesuffix("source").removesuffix(".") for side in corpus if _SOURCE(side)]
    return found or [""]


def data_settings(config: RunConfig) -> dict[str, Any]:
    """
    List the settings that a prepared folder depends on.

    Parameters
    ----------
    config : RunConfig
        Settings.

    Returns
    -------
    dict of str to Any
        Those of the table ``data`` and the seed, by their dotted names.

    Notes
    -----
    The seed chooses the lines that subwords are learned from where there are very many.
    """
    data = {f"data.{key}": value for key, value in config.to_dict()["data"].items()}
    return {**data, "train.seed": config.train.seed}


def _is_entry(entry: object) -> bool:
    """Tell whether this is how a file, or the weight of a corpus, is listed."""
    if not isinstance(entry, dict):
        return False
    if entry.keys() == {"weight"}:
        return isinstance(entry["weight"], int | float) and entry["weight"] > 0
    return {"file", "bytes"} <= entry.keys() <= {"file", "bytes", "part", "tag"}


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
    user_settings : sequence of str, optional
        ``key=value`` strings that the user gave for the run, which must not contradict.

    Notes
    -----
    A `Material`.
    """

    folder: RunFolder
    settings: dict[str, Any]
    corpus: Sizes
    digest: str
    user_settings: Sequence[str] = ()

    @classmethod
    def open(cls, path: str | Path, user_settings: Sequence[str] = ()) -> "PreparedText":
        """
        Read what a prepared folder says of itself.

        Parameters
        ----------
        path : str or Path
            The folder.
        user_settings : sequence of str, optional
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
        return cls(
            folder, record["settings"], record["corpus"], str(record.get("digest")), user_settings
        )

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
        asked = {setting.partition("=")[0].strip() for setting in self.user_settings}
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

    def fingerprint(self) -> Sizes:
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

    def prepare(self, folder: RunFolder, config: RunConfig, processes: int, say: Say) -> None:
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
