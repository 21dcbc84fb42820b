"""Text that would fill the memory: small compressed files with endless lines, segments or tags."""

import gzip
import lzma
import tracemalloc
from pathlib import Path

import pytest

from heedful.errors import TextError
from heedful.text.corpus import read_lines
from heedful.text.file_formats import TextSource
from heedful.text.lines import LONGEST_LINE

PACKERS = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}
BOMB = b" " * (3 * LONGEST_LINE)
WRAPPED = {
    "memory.tmx:en": (
        b'<tmx><body><tu><tuv xml:lang="en"><seg>a</seg></tuv></tu>\n<tu><tuv xml:lang="en"><seg>',
        b'<tmx>\n<tu note="',
    ),
    "set.xml:src": (b'<dataset><doc><src><p><seg id="1">\n',),
    "set.en.sgm": (b'<seg id="1">a</seg>\n<seg id="2">', b'<seg id="1">a</seg>\n<seg id="'),
}


def refusal(text: TextSource, bound: int = 3 * LONGEST_LINE) -> str:
    """The message, after what was held in memory is compared with a bound."""
    tracemalloc.start()
    try:
        with pytest.raises(TextError) as caught:
            list(read_lines(text))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < bound
    return str(caught.value)


@pytest.mark.parametrize("packing", PACKERS)
def test_an_endless_line_is_refused_before_it_is_held(tmp_path: Path, packing: str) -> None:
    path = tmp_path / f"text.en{packing}"
    path.write_bytes(PACKERS[packing](b"a\nb\n" + BOMB))
    assert not packing or path.stat().st_size < 200_000
    assert refusal(TextSource(path)) == (
        f"{path} must have lines of at most 16,777,216 bytes, but line 3 is longer; write "
        "one sentence per line."
    )


def test_a_line_as_long_as_allowed_is_read(tmp_path: Path) -> None:
    path = tmp_path / "text.en.gz"
    longest = b"x" * (LONGEST_LINE - 1)
    path.write_bytes(gzip.compress(longest + b"\n" + b"y\n"))
    assert list(map(len, read_lines(path))) == [LONGEST_LINE - 1, 1]
    path.write_bytes(gzip.compress(longest + b"x\n"))
    assert "line 1 is longer" in refusal(TextSource(path))


@pytest.mark.parametrize(
    ("name", "beginning"), [(name, start) for name, all in WRAPPED.items() for start in all]
)
def test_endless_segments_tags_and_comments_are_refused(tmp_path, name, beginning) -> None:
    file, _, part = name.partition(":")
    path = tmp_path / f"{file}.gz"
    path.write_bytes(gzip.compress(beginning + BOMB))
    message = refusal(TextSource(path, part), 8 * LONGEST_LINE)
    assert "16,777,216" in message
    assert "line 2" in message


def test_an_endless_segment_of_short_lines_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "set.en.sgm.gz"
    path.write_bytes(
        gzip.compress(
            b'<seg id="1">\n'
            + b"word " * 2000
            + b"\n"
            + BOMB.replace(b" " * 8000, b" " * 7999 + b"\n")
        )
    )
    message = refusal(TextSource(path), 8 * LONGEST_LINE)
    assert "a segment that begins in line 1 is longer" in message
