"""Compressed text of every sort: by its first bytes, whole, or named with what is wrong."""

import bz2
import gzip
import lzma

import pytest
from backports import zstd

from heedful.errors import TextError
from heedful.text.corpus import read_lines
from heedful.text.lines import decode_lines

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
    "plain.en.gz": (TEXT, "rename it to plain.en if it is plain text"),
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


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz", "zst"])
def test_a_compressed_stream_is_answered_with_the_command_that_unpacks_it(kind):
    command = {"gz": "gzip -dc", "bz2": "bzip2 -dc", "xz": "xz -dc", "zst": "zstd -dc"}[kind]
    content = {"gz": gzip, "bz2": bz2, "xz": lzma, "zst": zstd}[kind].compress(TEXT)
    with pytest.raises(TextError) as caught:
        list(decode_lines(content.splitlines(keepends=True), "stdin"))
    assert "stdin must be text" in str(caught.value)
    assert command in str(caught.value)
    assert "iconv" not in str(caught.value)
    with pytest.raises(TextError, match="iconv"):
        list(decode_lines(["Un café\n".encode("latin-1")], "stdin"))


@pytest.mark.parametrize("name", ["out.fr.gz", "out.fr.ZST"])
def test_an_output_with_the_name_of_a_compressed_file_is_refused(heedful_cli, tmp_path, name):
    # Plain text of this name would be refused as input.
    text = tmp_path / "a.en"
    text.write_text("a cat\n", encoding="utf-8")
    out = tmp_path / name
    done = heedful_cli("translate", tmp_path, "--input", text, "--output", out)
    assert done.returncode == 2
    assert f"must not end in {out.suffix}" in done.stderr
    assert not out.exists()
