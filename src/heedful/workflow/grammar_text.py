"""The text of the embedded grammar as files: a corpus that needs no download."""

from pathlib import Path

from heedful.data.files import write_whole, writing
from heedful.data.grammar import split_aligned
from heedful.errors import TextError
from heedful.search.links import Gold, write_gold

NAME = "grammar"
SIZES = (15_000, 500, 1_000)
"""Pairs to train on, to validate with and to test on."""
_SEED = 1


def write_grammar_text(folder: Path, sizes: tuple[int, int, int] = SIZES) -> None:
    """Write training, validation and test text, and the word alignment of the test."""
    train_pairs, valid_pairs, test_pairs = sizes
    pairs, aligned = split_aligned(train_pairs, valid_pairs + test_pairs, _SEED)
    held_out = [(pair.source, pair.target) for pair in aligned]
    parts = {"train": pairs, "valid": held_out[test_pairs:], "test": held_out[:test_pairs]}
    lines = {
        f"{name}.{language}": [pair[side] for pair in part]
        for name, part in parts.items()
        for side, language in enumerate(("en", "fr"))
    }
    links = [write_gold(Gold(pair.sure, pair.possible)) for pair in aligned[:test_pairs]]
    files = {
        folder / name: "".join(f"{line}\n" for line in part).encode()
        for name, part in (lines | {"test.links": links}).items()
    }
    for path, content in files.items():
        if path.exists() and (not path.is_file() or path.read_bytes() != content):
            raise TextError(
                f"{path} would be overwritten, but is not the text of the grammar; name another "
                "folder, or move it away."
            )
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for path, content in files.items():
            write_whole(path, content)
