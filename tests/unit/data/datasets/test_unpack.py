import gzip
import io
import lzma
import random
import subprocess
import sys
import tarfile
import zipfile
from xml.etree import ElementTree

import pytest

from heedful.data.datasets.spec import ArchiveMember, CorpusText
from heedful.data.datasets.unpack import unpack
from heedful.errors import TextError

ENGLISH = "a dog\n\nthe “big” cat\n".encode()
FRENCH = "un chien\n\nle « gros » chat".encode()  # no last line feed
LINES = {"x/train.en": ENGLISH, "x/train.fr": FRENCH}


def make_tar(path, members, mode="w:gz"):
    with tarfile.open(path, mode) as archive:
        for name, content in members:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


def make_zip(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)


def make(path, members):
    modes = {"x.tgz": "w:gz", "x.tar.gz": "w:gz", "x.tar.xz": "w:xz", "x.tar": "w"}
    if path.name.endswith(".zip"):
        make_zip(path, members)
    else:
        make_tar(path, members, modes[path.name])
    return path


def texts_of(archive):
    return [
        CorpusText(f"train.{language}", (ArchiveMember(archive, f"x/train.{language}"),))
        for language in ("en", "fr")
    ]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


ARCHIVES = ["x.tgz", "x.tar.gz", "x.tar.xz", "x.tar", "x.zip"]


@pytest.mark.parametrize("archive", ARCHIVES)
def test_an_archive_becomes_text(tmp_path, archive):
    others = [("x/README", b"read me"), ("x/train.en.old", b"old")]
    make(tmp_path / archive, [*others, *LINES.items()])
    unpack(tmp_path, texts_of(archive))
    assert names(tmp_path) == sorted([archive, "train.en", "train.fr"])
    assert (tmp_path / "train.en").read_bytes() == ENGLISH
    assert (tmp_path / "train.fr").read_bytes() == FRENCH + b"\n"


def test_names_that_begin_at_the_folder_itself_are_found(tmp_path):
    make_tar(tmp_path / "x.tgz", [(f"./{name}", content) for name, content in LINES.items()])
    unpack(tmp_path, texts_of("x.tgz"))
    assert (tmp_path / "train.en").read_bytes() == ENGLISH


@pytest.mark.parametrize(("ending", "packed"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_a_packed_file_becomes_text(tmp_path, ending, packed):
    (tmp_path / f"train.fr{ending}").write_bytes(packed(FRENCH))
    unpack(tmp_path, [CorpusText("train.fr", (ArchiveMember(f"train.fr{ending}"),))])
    assert (tmp_path / "train.fr").read_bytes() == FRENCH + b"\n"


def test_packed_files_in_an_archive_become_text(tmp_path):
    make_tar(tmp_path / "x.tar", [("giga.fr.gz", gzip.compress(FRENCH))], "w")
    unpack(tmp_path, [CorpusText("train.fr", (ArchiveMember("x.tar", "giga.fr.gz"),))])
    assert (tmp_path / "train.fr").read_bytes() == FRENCH + b"\n"


def test_parts_are_put_together_in_their_order(tmp_path):
    for number in range(3):
        (tmp_path / f"part.{number}").write_bytes(b"line %d" % number)
    make_tar(tmp_path / "x.tgz", [("b", b"of b\n"), ("a", b"of a\n")])
    parts = (
        ArchiveMember("part.2"),
        ArchiveMember("x.tgz", "a"),
        ArchiveMember("part.0"),
        ArchiveMember("x.tgz", "b"),
        ArchiveMember("part.1"),
    )
    unpack(tmp_path, [CorpusText("all.en", parts)])
    assert (tmp_path / "all.en").read_text() == "line 2\nof a\nline 0\nof b\nline 1\n"


def test_a_download_that_is_the_text_stays_as_it_is(tmp_path):
    (tmp_path / "train.fr").write_bytes(FRENCH)
    unpack(tmp_path, [CorpusText("train.fr", (ArchiveMember("train.fr"),))])
    assert (tmp_path / "train.fr").read_bytes() == FRENCH
    assert names(tmp_path) == ["train.fr"]


def test_unpacking_twice_changes_nothing_and_sweeps_what_a_kill_left(tmp_path):
    make(tmp_path / "x.tgz", LINES.items())
    (tmp_path / ".unpacking").mkdir()
    (tmp_path / ".unpacking" / "train.en.0").write_text("half a l")
    for _ in range(2):
        unpack(tmp_path, texts_of("x.tgz"))
    assert (tmp_path / "train.en").read_bytes() == ENGLISH
    assert names(tmp_path) == ["train.en", "train.fr", "x.tgz"]


def test_a_file_of_somebody_else_stays(tmp_path):
    make(tmp_path / "x.tgz", LINES.items())
    (tmp_path / "train.en").write_text("mine")
    with pytest.raises(TextError, match=r"train\.en must be a new file .* has other content"):
        unpack(tmp_path, texts_of("x.tgz"))
    assert (tmp_path / "train.en").read_text() == "mine"


# Marked-up text.


def test_segments_of_real_test_sets_are_what_an_xml_reader_finds(corpora, tmp_path):
    files = sorted((corpora / "ted-iwslt").glob("*/*.xml.xz"))
    assert len(files) >= 20
    texts = []
    for file in files:
        (tmp_path / file.name).write_bytes(file.read_bytes())
        texts.append(
            CorpusText(file.name.removesuffix(".xz"), (ArchiveMember(file.name, form="segments"),))
        )
    unpack(tmp_path, texts)
    total = 0
    for file in files:
        tree = ElementTree.fromstring(lzma.decompress(file.read_bytes()))
        expected = [" ".join(_words(segment.text)) for segment in tree.iter("seg")]
        found = (tmp_path / file.name.removesuffix(".xz")).read_text(encoding="utf-8")
        assert found.split("\n") == [*expected, ""], file.name
        total += len(expected)
    assert total > 20_000


def _words(text):
    return [word.decode() for word in text.encode().split()]


def test_segments_of_wmt_and_their_entities(tmp_path):
    (tmp_path / "x.sgm").write_text(
        '<srcset setid="newstest2014" srclang="any">\n<doc docid="a&amp;b">\n<hl>\n'
        '<seg id="1">S&amp;P  500 &lt;b&gt; &amp;lt; &quot;x&quot;</seg>\n</hl>\n<p>\n'
        '  <seg id="2"> a < b </seg>\n<seg id="3"></seg>\n</p>\n</doc>\n</srcset>\n'
    )
    unpack(tmp_path, [CorpusText("x.en", (ArchiveMember("x.sgm", form="segments"),))])
    assert (tmp_path / "x.en").read_text() == 'S&P 500 <b> &lt; "x"\na < b\n\n'


def test_talks_lose_what_is_about_them_and_nothing_else(tmp_path):
    (tmp_path / "x.tags").write_text(
        "<url>http://www.ted.com</url>\n<keywords>a, b</keywords>\n<title>Tall</title>\n"
        "<description>Long.</description>\n  It begins. \n\n5 < 6\n"
        ' <reviewer href="x">R</reviewer>\nIt ends.\n'
    )
    unpack(tmp_path, [CorpusText("x.en", (ArchiveMember("x.tags", form="talks"),))])
    assert (tmp_path / "x.en").read_text() == "It begins.\n\n5 < 6\nIt ends.\n"


# Archives that are damaged or mean harm.


def test_a_member_that_is_missing_is_named(tmp_path):
    make(tmp_path / "x.tgz", [("x/train.en", ENGLISH)])
    with pytest.raises(TextError, match=r"x\.tgz must contain x/train\.fr, but does not"):
        unpack(tmp_path, texts_of("x.tgz"))
    assert names(tmp_path) == ["x.tgz"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("archive", ARCHIVES)
def test_nothing_but_the_known_members_comes_out(tmp_path, archive):
    folder = tmp_path / "inner" / "folder"
    folder.mkdir(parents=True)
    outside = tmp_path / "outside"
    bad = [(name, b"bad") for name in ("../bad", "../../bad", str(outside), "bad", "x/../../bad")]
    make(folder / archive, [*bad, *LINES.items(), *bad])
    unpack(folder, texts_of(archive))
    assert names(folder) == sorted([archive, "train.en", "train.fr"])
    assert names(tmp_path) == ["inner"]
    assert names(folder.parent) == ["folder"]


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.CHRTYPE]
)
def test_a_member_that_is_no_file_is_refused(tmp_path, kind):
    secret = tmp_path / "secret"
    secret.write_text("secret\n")
    folder = tmp_path / "folder"
    folder.mkdir()
    with tarfile.open(folder / "x.tgz", "w:gz") as archive:
        entry = tarfile.TarInfo("x/train.en")
        entry.type, entry.linkname = kind, str(secret)
        archive.addfile(entry)
    with pytest.raises(TextError, match=r"x/train\.en exactly once, as an ordinary file"):
        unpack(folder, texts_of("x.tgz"))
    assert names(folder) == ["x.tgz"]


def test_a_link_in_a_zip_is_refused(tmp_path):
    entry = zipfile.ZipInfo("x/train.en")
    entry.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr(entry, "/etc/hostname")
    with pytest.raises(TextError, match="exactly once, as an ordinary file"):
        unpack(tmp_path, texts_of("x.zip"))


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("archive", ARCHIVES)
def test_a_member_that_is_there_twice_is_refused(tmp_path, archive):
    make(tmp_path / archive, [*LINES.items(), ("x/train.en", b"other")])
    with pytest.raises(TextError, match="twice"):
        unpack(tmp_path, texts_of(archive))
    assert names(tmp_path) == [archive]


def bombs(folder):
    zeros = bytes(48 << 20)
    name = "x/train.en"
    make_zip(folder / "member.zip", [(name, zeros)])
    make_tar(folder / "member.tgz", [(name, zeros)])
    make_tar(folder / "other.tgz", [("x/other", zeros), (name, b"a\n")])
    make_tar(folder / "inner.tar", [("x/train.en.gz", gzip.compress(zeros))], "w")
    (folder / "alone.gz").write_bytes(gzip.compress(zeros))
    with tarfile.open(folder / "header.tgz", "w:gz", format=tarfile.PAX_FORMAT) as archive:
        entry = tarfile.TarInfo(name)
        entry.pax_headers = {"comment": "x" * (48 << 20)}
        archive.addfile(entry)


def test_a_bomb_does_not_go_off(tmp_path):
    """Neither on the disk nor in memory; in a separate process, which can be measured."""
    bombs(tmp_path)
    program = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from heedful.data.datasets.spec import ArchiveMember, CorpusText\n"
        "from heedful.data.datasets.unpack import unpack\n"
        "from heedful.errors import TextError\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (16 << 20, 16 << 20))\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before = peak()\n"
        "for archive in sorted(Path(sys.argv[1]).iterdir()):\n"
        "    member = 'x/train.en.gz' if archive.name == 'inner.tar' else 'x/train.en'\n"
        "    form = 'segments' if archive.name == 'member.zip' else 'plain'\n"
        "    part = ArchiveMember(archive.name, '' if archive.suffix == '.gz' else member, form)\n"
        "    try:\n"
        "        unpack(archive.parent, [CorpusText('train.en', (part,))])\n"
        "    except TextError as error:\n"
        "        print(error)\n"
        "print(peak() - before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        capture_output=True,
        check=False,
        encoding="utf-8",
        env={"PYTHONPATH": "src"},
    )
    assert done.returncode == 0, done.stderr
    *told, kibibytes = done.stdout.splitlines()
    assert len(told) == 6
    for line in told:
        assert "more than 100 times its size" in line or "a line of more than" in line
    assert int(kibibytes) < 32 << 10
    assert not any(name.startswith((".", "train")) for name in names(tmp_path))


@pytest.mark.parametrize("archive", ["x.tgz", "x.tar.xz", "x.tar", "x.zip", "x.gz"])
def test_damage_anywhere_is_noticed_or_harmless(tmp_path, archive):
    """Every kind of archive but a bare tar carries a checksum of its content."""
    dice = random.Random(4)
    lines = "".join(f"{dice.random()} words and words\n" for _ in range(200)).encode()
    path = tmp_path / archive
    if archive == "x.gz":
        path.write_bytes(gzip.compress(lines))
        texts = [CorpusText("train.en", (ArchiveMember("x.gz"),))]
    else:
        make(path, [("x/train.en", lines), ("x/train.fr", lines)])
        texts = texts_of(archive)
    whole = path.read_bytes()
    noticed = 0
    for _ in range(60):
        damaged = bytearray(whole)
        if dice.random() < 0.5:
            damaged = damaged[: dice.randrange(len(whole))]
        else:
            damaged[dice.randrange(len(whole))] ^= 1 << dice.randrange(8)
        path.write_bytes(damaged)
        try:
            unpack(tmp_path, texts)
        except TextError as error:
            noticed += 1
            assert str(path) in str(error)
            assert "\n" not in str(error)
        else:
            if archive != "x.tar":
                assert (tmp_path / "train.en").read_bytes() == lines
        for text in texts:
            (tmp_path / text.name).unlink(missing_ok=True)
        assert names(tmp_path) == [archive]
    assert noticed > 20


def test_the_checksum_after_the_last_member_is_looked_at(tmp_path):
    """Also where the last member ends just where a megabyte does: 512 records are five of them."""
    path = tmp_path / "x.tgz"
    for records in (100, 510, 511, 512):
        other = random.Random(records).randbytes(records * tarfile.RECORDSIZE)
        make(path, [*LINES.items(), ("other", other)])
        content = bytearray(path.read_bytes())
        content[-8] ^= 1
        path.write_bytes(content)
        with pytest.raises(TextError, match="CRC"):
            unpack(tmp_path, texts_of("x.tgz"))
        assert names(tmp_path) == ["x.tgz"]


def test_a_password_is_reported(tmp_path):
    path = make(tmp_path / "x.zip", LINES.items())
    content = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        position = content.find(mark)
        while position >= 0:
            content[position + offset] |= 1  # “encrypted”
            position = content.find(mark, position + 1)
    path.write_bytes(content)
    with pytest.raises(TextError, match=r"x\.zip .* password"):
        unpack(tmp_path, texts_of("x.zip"))
    assert names(tmp_path) == ["x.zip"]
