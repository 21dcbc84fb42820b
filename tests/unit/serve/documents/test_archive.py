"""The zip archives of documents: written as they were read, within bounds."""

import io
import zipfile

import pytest

from heedful.errors import TextError
from heedful.serve.documents.archive import Archive


def packed(members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


@pytest.mark.parametrize(
    "compression",
    [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA],
)
def test_what_is_not_changed_is_written_as_it_was_read(compression: int) -> None:
    members = {"mimetype": b"a/b", "b/a.xml": b"<a>x</a>", "b/": b"", "c.bin": bytes(9_000)}
    archive = Archive(packed(members, compression), "a file")
    tree = archive.xml("b/a.xml")
    tree.getroot().text = "é"
    with zipfile.ZipFile(io.BytesIO(archive.write({"b/a.xml": tree}))) as written:
        assert written.namelist() == list(members)
        assert "é" in written.read("b/a.xml").decode()
        assert all(written.read(name) == members[name] for name in ("mimetype", "b/", "c.bin"))


def test_a_damaged_member_is_named_as_damage() -> None:
    content = bytearray(packed({"a.xml": b"<a>some words</a>" * 90}))
    content[60] ^= 0xFF
    with pytest.raises(TextError, match="a file must be a complete zip archive"):
        Archive(bytes(content), "a file")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_refused() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for content in ("a", "b"):
            archive.writestr("a.xml", content)
    with pytest.raises(TextError, match="with distinct names"):
        Archive(stream.getvalue(), "a file")
