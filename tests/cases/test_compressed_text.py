"""Compressed text of every sort: by its first bytes, whole, or named with what is wrong."""

import bz2
import gzip
import lzma

import pytest
from backports import zstd

from heedful.errors import TextError
from heedful.text.corpus import read_lines

LINES = [f"sentence number {number}" for number in range(600)]
TEXT = "".join(f"{line}\n" for line in LINES).encode()
HALF = TEXT.index(b"sentence number 300")
READ = {
    "members.en.gz": gzip.compress(TEXT[:HALF]) + gzip.compress(TEXT[HALF:]),
    "members.en.xz": lzma.compress(TEXT[:HALF]) + lzma.compress(TEXT[HALF:]),
    "members.en.zst": zstd.compress(TEXT[:HALF]) + zstd.compress(TEXT[HALF:]),
    "padded.en.gz": gzip.compress(TEXT) + bytes(512),
    "bare.en": gzip.compress(TEXT),
    "bare-xz.en": lzma.compress(TEXT),
    "old.en.bz2": bz2.compress(TEXT),
    "new.en.zst": zstd.compress(TEXT),
    "CAPITALS.EN.GZ": gzip.compress(TEXT),
    "wrong.en.gz": bz2.compress(TEXT),
}
NAMED = {
    "cut.en.gz": (gzip.compress(TEXT)[:-9], "cut off or damaged"),
    "cut.en.bz2": (bz2.compress(TEXT)[:-9], "cut off or damaged"),
    "cut.en.zst": (zstd.compress(TEXT)[:-9], "cut off or damaged"),
    "empty-frame.en.zst": (b"\x28\xb5\x2f\xfd\x04\x00" + bytes(60), "cut off or damaged"),
    "plain.en.gz": (TEXT, "if it is plain text, rename it to plain.en"),
    "zipped.en": (b"PK\x03\x04" + bytes(40), "a zip archive"),
}


@pytest.mark.parametrize("name", READ)
def test_all_of_it_is_read(tmp_path, name):
    (tmp_path / name).write_bytes(READ[name])
    assert list(read_lines(tmp_path / name)) == LINES


@pytest.mark.parametrize("name", NAMED)
def test_what_is_wrong_is_said_with_the_way_out(tmp_path, name):
    content, told = NAMED[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TextError) as caught:
        list(read_lines(tmp_path / name))
    assert told in str(caught.value)
    assert "iconv" not in str(caught.value)
