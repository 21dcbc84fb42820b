"""
Preparation of the tokenizer and ids before training: `heedful data prepare`.

`heedful.preparation.prepared_text` describes the resulting folder. Torch is not needed and is not
loaded.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heedful._version import __version__
from heedful.arguments import Files
from heedful.config.load import load_config
from heedful.data.cleaning.filter import CleaningReport
from heedful.data.encoded.dataset import EncodedPairs
from heedful.errors import RunFolderError
from heedful.files import writing
from heedful.preparation.find_training_data import find_text
from heedful.preparation.held_out import held_out_files, read_held_out
from heedful.preparation.prepared_text import (
    FORMAT,
    HELD_OUT,
    RECORD,
    data_settings,
    read_record,
)
from heedful.preparation.raw_text import RawText
from heedful.preparation.tokenizer import check_given_tokenizer
from heedful.preparation.training_data import (
    Preparation,
    Say,
    file_records,
    has_subwords,
    without_keys,
)
from heedful.runs.folder import RunFolder, write_json
from heedful.runs.lock import only_writer, refuse_if_written
from heedful.tokenization.tokenizer import Tokenizer


def prepare(
    recipe: str,
    *,
    out: str | Path,
    source: Files | None = None,
    target: Files | None = None,
    corpora: str | Path | None = None,
    tokenizer: str | Path | None = None,
    settings: Sequence[str] = (),
    exclude: Files | None = None,
    valid_source: Files | None = None,
    valid_target: Files | None = None,
    processes: int = 0,
    say: Say = lambda text: None,
) -> CleaningReport:
    """
    Train a tokenizer and encode text before training.

    `valid_source`, `valid_target`: held-out text; its repetitions in the training text are
    reported. `processes`: number of worker processes; 0 for one per core.

    Resumes an interrupted preparation; does nothing if the preparation is complete. Raises
    `RunFolderError` if `out` has other files, or a preparation with different settings or text.
    """
    text = find_text(source, target, exclude, corpora, tokenizer)
    config = text.configure(load_config(recipe, settings))
    folder = RunFolder(Path(out))
    corpus, held_out = text.fingerprint(), None
    if (valid := held_out_files(valid_source, valid_target)) is not None:
        held_out, _ = read_held_out(valid)
        sides = zip(HELD_OUT, (valid.source, valid.target), strict=True)
        corpus |= {side: file_records(texts) for side, texts in sides}
    record = {
        "format": FORMAT,
        "heedful": __version__,
        "complete": False,
        "settings": data_settings(config),
        "corpus": corpus,
    }
    refuse_if_written(folder.path)
    check_given_tokenizer(folder, tokenizer, config, "--out")
    done = _is_complete(folder.path, record) and all(ids.exists() for ids in text.ids(folder))
    if done and has_subwords(folder):
        say("the text is already encoded")
        pairs = _open(folder, text)
    else:
        pairs = _fill(text, Preparation(folder, config, processes, say, held_out), record)
    for line in text.report(pairs, Tokenizer.load(folder.path)):
        say(line)
    return CleaningReport.merged([part.report for part in pairs])


def _fill(text: RawText, job: Preparation, record: dict[str, Any]) -> list[EncodedPairs]:
    """Train the tokenizer and encode the missing text."""
    folder, subwords = job.folder, None
    if not has_subwords(folder):
        job.say("making subwords")
        subwords = text.learn(job.config, job.say)
    with writing(folder.path):
        folder.path.mkdir(parents=True, exist_ok=True)
    with only_writer(folder.path, "data prepare"):
        _is_complete(folder.path, record)  # another process may have filled it in the meantime
        if subwords is not None and not has_subwords(folder):
            write_json(folder.path / RECORD, record)
            subwords.save(folder.path)
        job.say("encoding")
        text.encode(job)
        pairs = _open(folder, text)
        done = {
            "complete": True,
            "pairs": sum(map(len, pairs)),
            "digest": " ".join(part.digest for part in pairs),
        }
        write_json(folder.path / RECORD, {**record, **done})
    return pairs


def _open(folder: RunFolder, text: RawText) -> list[EncodedPairs]:
    """Open the encoded pairs of each corpus."""
    tokenizer = Tokenizer.load(folder.path)
    return [EncodedPairs.open(ids, tokenizer) for ids in text.ids(folder)]


def _is_complete(path: Path, record: dict[str, Any]) -> bool:
    """Return whether the same preparation is complete; refuse a folder with other content."""
    if not (path / RECORD).is_file():
        strangers = _strangers(path)
        if strangers:
            raise RunFolderError(
                "--out must be a new or empty folder, or one that the same command wrote, but "
                f"{path} has other files: {', '.join(strangers[:3])}; name another folder."
            )
        return False
    begun = read_record(path)
    old, new = begun["settings"], record["settings"]
    differences = [
        f"{key} was {old.get(key)!r} and is now {new.get(key)!r}"
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    ]
    # Names are not compared, because files may be moved or renamed.
    differences += [
        f"the files of --{side.replace('_', '-')} now differ in number, size, column, tag or weight"
        for side in sorted(record["corpus"].keys() | begun["corpus"].keys())
        if without_keys(record["corpus"].get(side, []), "file")
        != without_keys(begun["corpus"].get(side, []), "file")
    ]
    if differences:
        raise RunFolderError(
            f"--out must continue the preparation that was started in {path}, but "
            f"{'; '.join(differences)}. Use the same settings and text, or name another folder."
        )
    return begun["complete"] is True


def _strangers(path: Path) -> list[str]:
    """List unexpected files; hidden files are ignored."""
    if not path.exists():
        return []
    if not path.is_dir():
        return [path.name]
    return sorted(entry.name for entry in path.iterdir() if not entry.name.startswith("."))
