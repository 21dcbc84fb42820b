"""
Compressed text of every sort: by its first bytes, whole, or named with what is wrong.

What holds for every kind alike: tests/unit/text/test_compression.py.
"""

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


def test_zeros_behind_the_last_member_are_no_text(tmp_path):
    path = tmp_path / "padded.en.gz"
    path.write_bytes(gzip.compress(TEXT) + bytes(512))
    assert list(read_lines(path)) == LINES


def test_a_frame_without_content_is_no_end(tmp_path):
    path = tmp_path / "empty-frame.en.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd\x04\x00" + bytes(60))
    with pytest.raises(TextError, match="cut off or damaged") as caught:
        list(read_lines(path))
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
