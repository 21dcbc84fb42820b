"""Compressed text: by its first bytes, whatever it is called; and what is refused."""

import bz2
import gzip
import lzma
import sys
import tracemalloc
from pathlib import Path

import pytest
from backports import zstd

from heedful.errors import TextError
from heedful.text.compression import SUFFIXES
from heedful.text.corpus import Corpus, language_of, read_lines
from heedful.text.lines import LONGEST_LINE

PACKERS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda text: zstd.compress(
        text, options={zstd.CompressionParameter.checksum_flag: True}
    ),
}
LINES = [f"line {number} é" for number in range(2000)]
TEXT = "".join(f"{line}\n" for line in LINES).encode()


def refusal(path: Path) -> str:
    with pytest.raises(TextError) as caught:
        list(read_lines(path))
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    assert "iconv" not in str(caught.value)
    return str(caught.value)


def test_every_kind_is_tried() -> None:
    assert set(SUFFIXES) == set(PACKERS)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_first_bytes_decide_and_not_the_name(tmp_path: Path, suffix: str) -> None:
    packed = PACKERS[suffix](TEXT)
    for name in (f"a.en{suffix}", f"a.en{suffix.upper()}", "a.en", "a.en.gz", "a.en.xz"):
        path = tmp_path / name
        path.write_bytes(packed)
        assert list(read_lines(path)) == LINES
        assert language_of(path) == "en"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_member_is_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.en{suffix}"
    pack = PACKERS[suffix]
    path.write_bytes(pack(TEXT[:5000]) + pack(b"") + pack(TEXT[5000:]))
    assert list(read_lines(path)) == LINES


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_cut_or_changed_file_is_named_and_never_ends_early(tmp_path: Path, suffix: str) -> None:
    path, packed = tmp_path / f"a.en{suffix}", PACKERS[suffix](TEXT)
    for size in (0, 1, 5, len(packed) // 2, len(packed) - 1):
        path.write_bytes(packed[:size])
        assert "cut off or damaged" in refusal(path)
    changed = bytearray(packed)
    changed[len(changed) // 2] ^= 0xFF
    path.write_bytes(changed)
    assert "cut off or damaged" in refusal(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_plain_text_under_the_name_of_a_compressed_file_is_told_apart(tmp_path, suffix) -> None:
    path = tmp_path / f"a.en{suffix}"
    path.write_bytes(b"<html><h1>404 Not Found</h1>")
    assert "rename it to a.en if it is plain text, or download it again" in refusal(path)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"PK\x03\x04" + bytes(30), "a zip archive or an office document; convert it (unzip "),
        (b"7z\xbc\xaf\x27\x1c" + bytes(30), "7z x "),
        (b"\x04\x22\x4d\x18" + bytes(30), "lz4 -d "),
        (b"%PDF-1.7\n", "pdftotext "),
    ],
)
def test_archives_are_named_with_what_unpacks_them(tmp_path, content: bytes, told: str) -> None:
    path = tmp_path / "a.en"
    path.write_bytes(content)
    assert told in refusal(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_small_file_with_an_endless_line_takes_no_memory(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.en{suffix}"
    path.write_bytes(PACKERS[suffix](b"a\n" + b" " * (6 * LONGEST_LINE)))
    assert path.stat().st_size < 100_000
    tracemalloc.start()
    try:
        assert "line 2 is longer" in refusal(path)
        assert tracemalloc.get_traced_memory()[1] < 3 * LONGEST_LINE
    finally:
        tracemalloc.stop()


def test_a_missing_package_is_named_with_the_way_out(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "a.en.zst"
    path.write_bytes(zstd.compress(TEXT))
    for module in ("backports", "compression"):
        monkeypatch.setitem(sys.modules, module, None)
    told = refusal(path)
    assert "pip install 'heedful[zstd]', or unpack the file: zstd -d" in told


def test_both_sides_may_be_packed_differently(tmp_path: Path) -> None:
    source, target = tmp_path / "a.en.zst", tmp_path / "a.fr"
    source.write_bytes(zstd.compress(TEXT))
    target.write_bytes(bz2.compress(TEXT))
    assert list(Corpus([source], [target]).pairs()) == [(line, line) for line in LINES]
