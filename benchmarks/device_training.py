"""
A training of a few minutes on a machine with a GPU: half a million Europarl pairs.

    python -m benchmarks.device_training prepare FOLDER     subwords, ids, held-out text
    python -m benchmarks.device_training pack FOLDER        FOLDER to build/device-data
    python -m benchmarks.device_training unpack FOLDER      build/device-data to FOLDER (machine)
    python -m benchmarks.device_training train FOLDER --until MINUTES --out OUT

`train` unpacks missing files, trains or resumes the base model until all sessions together have
taken MINUTES, and scores it. The run folder stays on the machine, since its weights are large. OUT
receives settings, log, machine, curve, scores and 200 translations.

Packed ids take 28 MiB. They are compressed as two-byte numbers, and offsets are replaced by the
lengths of the sentences.
"""

import argparse
import hashlib
import json
import lzma
import shutil
import sys
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.device_wheels import DATA, require_room, traveling_bytes
from benchmarks.report import ROOT, data_folder, heedful
from benchmarks.training import chosen
from heedful.experiments.record import describe_this_machine

PACKED = ROOT / DATA
SUMS = "SHA256SUMS"
RUN = ROOT / "runs" / "device"
HELD_OUT = 2000
SAMPLES = 200

DATA_SETTINGS = (
    "data.source_language=fr",
    "data.target_language=en",
    "data.max_length_ratio=3",
    "data.drop_duplicates=true",
)
# A session trains for about thirty epochs on half a million pairs, so dropout is higher than in the
# base model.
SETTINGS = (
    "model.dropout=0.2",
    "train.steps=1000000",
    "train.checkpoint_steps=2000",
    "train.validate_steps=2000",
    "train.validation_samples=0",
)


class Form(NamedTuple):
    """Functions and options to pack the files with one suffix."""

    pack: Callable[[bytes], bytes]
    unpack: Callable[[bytes], bytes]
    filters: dict[str, int]
    """Options of LZMA2."""


def main() -> None:
    """Run the named step."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("step", choices=("prepare", "pack", "unpack", "train"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--until", type=float, default=6.5, help="total minutes of all sessions")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "device-out")
    parser.add_argument("--unscored", action="store_true", help="train without scoring")
    parser.add_argument("--set", action="append", default=[], help="a setting of the training")
    options = parser.parse_args()
    if options.step == "prepare":
        prepare(options.folder)
    elif options.step == "pack":
        pack(options.folder, PACKED)
        sizes = traveling_bytes(ROOT)
        print("\n".join(f"{size / (1 << 20):6.1f} MiB  {name}" for name, size in sizes.items()))
        require_room(sizes)
    elif options.step == "unpack":
        unpack(PACKED, options.folder)
    else:
        train(options.folder, options.until, options.out, options.set, scored=not options.unscored)


def prepare(folder: Path) -> None:
    """Hold out lines, learn subwords, and encode half a million pairs without these lines."""
    raw = data_folder() / "europarl-fr-en"
    folder.mkdir(parents=True)
    held_out = []
    for language in ("fr", "en"):
        with lzma.open(raw / f"dev.{language}.xz", "rt", encoding="utf-8", newline="\n") as file:
            held_out.append(_write(folder / f"test.{language}", islice(file, HELD_OUT)))
        with lzma.open(
            raw / f"train.09.{language}.xz", "rt", encoding="utf-8", newline="\n"
        ) as file:
            held_out.append(_write(folder / f"valid.{language}", [*file][-HELD_OUT:]))
    text = ("--source", raw / "train.0[0-4].fr.xz", "--target", raw / "train.0[0-4].en.xz")
    excluded = [word for path in held_out for word in ("--exclude", path)]
    place = ("--out", folder / "prepared", *chosen(DATA_SETTINGS))
    heedful("data", "prepare", "paper-base", *text, *excluded, *place)


def _write(path: Path, lines: Sequence[str]) -> Path:
    """Write lines of text."""
    path.write_text("".join(lines), encoding="utf-8")
    return path


def pack(folder: Path, packed: Path) -> None:
    """Compress every file of a folder, and write the checksums of the originals."""
    if packed.exists():
        shutil.rmtree(packed)
    sums = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name, content = path.relative_to(folder), path.read_bytes()
        form = _form(path)
        place = packed / f"{name}.xz"
        place.parent.mkdir(parents=True, exist_ok=True)
        options = {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, **form.filters}
        place.write_bytes(lzma.compress(form.pack(content), filters=[options]))
        sums.append(f"{_digest(content)}  {name}\n")
    (packed / SUMS).write_text("".join(sums), encoding="utf-8")


def unpack(packed: Path, folder: Path) -> None:
    """Restore a folder, which appears once it is complete; refuse changed files."""
    temporary_folder = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(temporary_folder, ignore_errors=True)
    for line in (packed / SUMS).read_text(encoding="utf-8").splitlines():
        digest, _, name = line.partition("  ")
        path = temporary_folder / name
        content = _form(path).unpack(lzma.decompress((packed / f"{name}.xz").read_bytes()))
        if _digest(content) != digest:
            raise SystemExit(
                f"{name} must be what was packed, but its SHA-256 differs; pack the folder again."
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    temporary_folder.rename(folder)


def lengths_of(offsets: bytes) -> bytes:
    """Replace eight-byte offsets with their differences, which fit into two bytes."""
    values = np.frombuffer(offsets, "<u8")
    steps = np.diff(values, prepend=np.zeros(1, "<u8"))
    if len(steps) and steps.max() > 0xFFFF:
        raise SystemExit("a sentence must have fewer than 65,536 tokens to be packed.")
    return steps.astype("<u2").tobytes()


def offsets_of(lengths: bytes) -> bytes:
    """Replace two-byte lengths with eight-byte offsets."""
    return np.cumsum(np.frombuffer(lengths, "<u2"), dtype="<u8").tobytes()


_WORDS = {"lp": 1, "pb": 1}  # LZMA2 options for two-byte numbers
_FORMS = {
    ".ids": Form(bytes, bytes, {**_WORDS, "dict_size": 1 << 26}),
    ".offsets": Form(lengths_of, offsets_of, _WORDS),
}


def _form(path: Path) -> Form:
    """Choose how a file is packed, by its suffix."""
    return _FORMS.get(path.suffix, Form(bytes, bytes, {}))


def _digest(content: bytes) -> str:
    """Compute the SHA-256 of a file."""
    return hashlib.sha256(content).hexdigest()


def train(
    folder: Path,
    until: float,
    out: Path,
    settings: Sequence[str] = (),
    run: Path = RUN,
    scored: bool = True,
) -> None:
    """Train until the minutes are spent, score, and write the results to `out`."""
    if not folder.exists():
        unpack(PACKED, folder)
    out.mkdir(parents=True, exist_ok=True)
    text = [
        word
        for side, language in (("source", "fr"), ("target", "en"))
        for word in (f"--valid-{side}", folder / f"valid.{language}")
    ]
    wanted = chosen((*SETTINGS, f"train.minutes={until}", *settings))
    place = ["--data", folder / "prepared", "--out", run, *(["--resume"] if run.exists() else [])]
    print(heedful("train", "paper-base", *place, *text, *wanted), flush=True)
    for name in ("config.json", "log.jsonl"):
        shutil.copy(run / name, out / name)
    (out / "machine.txt").write_text(describe_this_machine(), encoding="utf-8")
    if not scored:
        return
    print(heedful("plot", run, "--out", out / "curve.svg"), flush=True)
    translation = out / "test.translated.en"
    heedful("translate", run, "--input", folder / "test.fr", "--output", translation)
    scores = heedful(
        *("evaluate", "--hypothesis", translation, "--reference", folder / "test.en", "--json")
    )
    (out / "scores.json").write_text(scores, encoding="utf-8")
    print(json.dumps(json.loads(scores), indent=1), flush=True)
    _write_samples(folder, translation, out / "samples.txt")
    translation.unlink()


def _write_samples(folder: Path, translation: Path, path: Path) -> None:
    """Write source, reference and translation of some lines from all parts of the test text."""
    texts = [
        file.read_text(encoding="utf-8").split("\n")[:-1]
        for file in (folder / "test.fr", folder / "test.en", translation)
    ]
    rows = [*zip(*texts, strict=True)]
    chosen_rows = rows[:: max(1, len(rows) // SAMPLES)][:SAMPLES]
    path.write_text("\n".join("\n".join(row) + "\n" for row in chosen_rows), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
