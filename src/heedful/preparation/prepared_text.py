"""
Prepared text: a tokenizer and ids in a folder of their own, described by ``prepared.json``.

::

    DIR/prepared.json                     settings, files, whether it is complete
    DIR/tokenizer.json, tokenizer*.model  tokenizer
    DIR/data/                             ids, and report.json: what each rule dropped

Several runs can be trained from one folder. Torch is not needed and is not loaded.

The folder records settings and files, so preparation can resume and training can inherit them.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.config.schema import RunConfig
from heedful.data.encoded.dataset import EncodedPairs
from heedful.data.overlap.leaks import NOTE_BEGINS
from heedful.errors import RunFolderError, SettingError
from heedful.preparation.training_data import Preparation, Sizes, has_subwords, without_keys
from heedful.runs.folder import RunFolder, read_json
from heedful.runs.machine_settings import RecordedParts
from heedful.tokenization.tokenizer import Tokenizer

RECORD = "prepared.json"
"""File that records the settings, the input files and the number of pairs."""
FORMAT = 1
"""Version of the format, stored in `RECORD`."""
HELD_OUT = ("valid_source", "valid_target")
"""Names of the held-out sides in the record of files; training may use other held-out text."""
_SOURCE = re.compile(r"([\w-]+\.)?source").fullmatch


def read_record(path: Path) -> dict[str, Any]:
    """
    Read and check ``prepared.json``.

    Raises `RunFolderError` if the file is invalid. Settings are checked where they are used,
    like settings from any other source.
    """
    record = read_json(path / RECORD)
    expected = (
        record.get("format") == FORMAT
        and isinstance(record.get("complete"), bool)
        and isinstance(record.get("settings"), dict)
        and _is_corpus(record.get("corpus"))
    )
    if not expected:
        raise RunFolderError(
            f"{path / RECORD} must have the fields of format {FORMAT} (complete, settings, "
            "corpus), but does not: it was changed, or a newer version wrote it. Prepare the "
            "text again into another folder, or upgrade heedful."
        )
    return record


def data_settings(config: RunConfig) -> dict[str, Any]:
    """List the settings that a prepared folder depends on."""
    # The seed matters, because subwords of a very large text are trained on a sample of its lines,
    # which depends on the seed.
    data = {f"data.{key}": value for key, value in config.to_dict()["data"].items()}
    return {**data, "train.seed": config.train.seed}


def _is_corpus(corpus: Any) -> bool:
    """Return whether every entry of every side describes a file, or the weight of a corpus."""
    try:
        sides = RecordedParts.of({"corpus": corpus}).corpus
    except SettingError:
        return False
    entries = [entry.model_fields_set for side in sides.values() for entry in side]
    return all(
        fields == {"weight"} or {"file", "bytes"} <= fields <= {"file", "bytes", "part", "tag"}
        for fields in entries
    )


@dataclass(frozen=True)
class PreparedText:
    """Training data prepared by `heedful data prepare`."""

    folder: RunFolder
    settings: dict[str, Any]
    """Settings by their dotted names, from the time of preparation."""
    corpus: Sizes
    """The files from which the folder was made."""
    digest: str
    """Digest of the ids."""
    user_settings: Sequence[str] = ()
    """The user's ``key=value`` strings for the run, which must not contradict `settings`."""

    @classmethod
    def open(cls, path: str | Path, user_settings: Sequence[str] = ()) -> "PreparedText":
        """Open a prepared folder; raise `RunFolderError` if it is missing or unusable."""
        folder = RunFolder(Path(path))
        if not (folder.path / RECORD).is_file():
            what = f"holds no {RECORD}" if folder.path.exists() else "does not exist"
            raise RunFolderError(
                "--data must be a folder made by `heedful data prepare`, but "
                f"{folder.path} {what}; check the path."
            )
        record = read_record(folder.path)
        if record["complete"] is not True:
            raise RunFolderError(
                f"--data must be a finished folder, but {folder.path} is not: `heedful data "
                "prepare` was interrupted. Run it again with the same arguments; it continues from "
                "there."
            )
        return cls(
            folder, record["settings"], record["corpus"], str(record.get("digest")), user_settings
        )

    def configure(self, config: RunConfig) -> RunConfig:
        """Replace the data settings with the settings of the prepared folder."""
        # They override the recipe silently, but raise `SettingError` if they contradict the user's
        # settings.
        current = data_settings(config)
        explicit = {setting.partition("=")[0].strip() for setting in self.user_settings}
        data = {key: value for key, value in self.settings.items() if key.startswith("data.")}
        wrong = [
            f"{key} is {data[key]!r} in the folder and {current[key]!r} in the command"
            for key in sorted(explicit & data.keys())
            if current[key] != data[key]
        ]
        if wrong:
            raise SettingError(
                f"--set must not contradict the settings of {self.folder.path}, but "
                f"{'; '.join(wrong)}. Leave these settings out, or prepare the text again into "
                "another folder."
            )
        return config.with_settings(data)

    def fingerprint(self) -> Sizes:
        """List the files that the folder was made from, and the folder."""
        corpus = {side: files for side, files in self.corpus.items() if side not in HELD_OUT}
        return {**corpus, "prepared": [{"file": self.folder.path.name, "digest": self.digest}]}

    def describe(self, config: RunConfig) -> str:
        """Read all pairs once and describe them."""
        del config
        pairs = self.open_pairs()
        for part in pairs:
            part.check()
        return f"{sum(map(len, pairs)):,} pairs, prepared in {self.folder.path}"

    def prepare(self, job: Preparation) -> None:
        """Copy the tokenizer into a run, unless the run has one."""
        if not has_subwords(job.folder):
            Tokenizer.load(self.folder.path).save(job.folder.path)

    def ids(self, folder: RunFolder) -> list[Path]:
        """Return the folders of the ids."""
        return [self.folder.data / name for name in self.names]

    def weights(self) -> list[float] | None:
        """Return the relative weights of the corpora; None if their sizes decide."""
        entries = [self.corpus.get(f"{name}.weight") for name in self.names]
        return [float(entry[0]["weight"]) for entry in entries if entry] or None

    def report(self, pairs: Sequence[EncodedPairs], tokenizer: Tokenizer) -> Iterator[str]:
        """Describe the prepared text. `heedful data prepare` has reported the details."""
        for name, encoded in zip(self.names, pairs, strict=True):
            yield f"{name}: {encoded.report.summary()}" if name else encoded.report.summary()

    def held_out_notes(self, pairs: Sequence[EncodedPairs], files: Sizes) -> Iterator[str]:
        """
        Repeat what preparation found in this validation text, or say that it was not compared.

        `files`: files of the run.
        """
        # digests are not recorded here, so names and sizes are compared
        valid = [without_keys(files.get(side, ()), "digest") for side in HELD_OUT]
        if not all(valid):
            return
        if valid == [self.corpus.get(side) for side in HELD_OUT]:
            for part in pairs:
                yield from (note for note in part.report.notes if note.startswith(NOTE_BEGINS))
            return
        excluded = self.corpus.get("exclude", [])
        if not all(record in excluded for records in valid for record in records):
            yield (
                "note: the training text was not compared with this validation text; `heedful data "
                "prepare` with --valid-source and --valid-target does that"
            )

    @property
    def names(self) -> list[str]:
        """Names of the corpora; one empty name if there is only one."""
        # A prepared folder may be untrusted: a name that would lead out of it is left out.
        sides = filter(_SOURCE, self.corpus)
        return [side.removesuffix("source").removesuffix(".") for side in sides] or [""]

    def open_pairs(self) -> list[EncodedPairs]:
        """Open the pairs with the folder's own tokenizer."""
        tokenizer = Tokenizer.load(self.folder.path)
        return [EncodedPairs.open(ids, tokenizer) for ids in self.ids(self.folder)]
