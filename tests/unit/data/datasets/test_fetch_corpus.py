import fcntl
import gzip
import hashlib
import io
import os
import shlex
import subprocess
import tarfile
import zipfile
from dataclasses import replace

import pytest

from heedful.data.datasets.checksums import Checksums
from heedful.data.datasets.fetch_corpus import get_corpus, train_command
from heedful.data.datasets.registry import CORPORA, find_corpus
from heedful.data.datasets.spec import ArchiveMember, CorpusText, Download, KnownCorpus
from heedful.errors import DownloadError, RunStopped, TextError, UserError
from tests.support.web import Page, serving

ENGLISH = b"the dog\nthe cat\n" * 2000
FRENCH = b"le chien\nle chat\n" * 2000
EN, FR = (gzip.compress(text, mtime=0) for text in (ENGLISH, FRENCH))


def sha256(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def corpus_at(*addresses, sums=True):
    """Describe a corpus of two files at some servers."""
    downloads = tuple(
        Download(
            tuple(f"{address}/train.{language}.gz" for address in addresses),
            sha256=sha256(content) if sums else None,
        )
        for language, content in (("en", EN), ("fr", FR))
    )
    texts = tuple(
        CorpusText(f"train.{lang}", (ArchiveMember(f"train.{lang}.gz"),)) for lang in ("en", "fr")
    )
    return KnownCorpus("small", "", ("en", "fr"), None, "", downloads, texts)


def pages(en=EN, fr=FR, **behavior):
    return {"train__en__gz": Page(en, **behavior), "train__fr__gz": Page(fr)}


def get(corpus, folder, *mirrors):
    """Get a corpus without waiting; return its lines and the messages."""
    said = []
    waits = []
    lines = get_corpus(
        corpus, folder, mirrors=[str(m) for m in mirrors], say=said.append, wait=waits.append
    )
    return lines, "\n".join(said)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


WHOLE = ["SHA256SUMS", "train.en", "train.en.gz", "train.fr", "train.fr.gz"]


def test_a_corpus_from_its_server(tmp_path):
    folder = tmp_path / "new" / "folder"
    with serving(**pages()) as site:
        lines, said = get(corpus_at(site.address), folder)
    assert lines == {"train.en": 4000, "train.fr": 4000}
    assert (folder / "train.en").read_bytes() == ENGLISH
    assert (folder / "train.fr").read_bytes() == FRENCH
    assert names(folder) == WHOLE
    assert said.count("its SHA-256 is the expected value") == 2
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder, check=True
    )
    assert done.returncode == 0


def test_what_is_there_is_not_made_again(tmp_path):
    with serving(**pages()) as site:
        corpus = corpus_at(site.address)
        get(corpus, tmp_path)
        (tmp_path / "train.en.gz").unlink()  # whoever wants the space may delete the archives
        lines, said = get(corpus, tmp_path)
    assert len(site.asked) == 2
    assert lines == {"train.en": 4000, "train.fr": 4000}
    assert "already" in said


def test_a_text_that_was_lost_is_made_again_without_the_network(tmp_path):
    with serving(**pages()) as site:
        corpus = corpus_at(site.address)
        get(corpus, tmp_path)
    (tmp_path / "train.fr").unlink()
    _, said = get(corpus, tmp_path)
    assert (tmp_path / "train.fr").read_bytes() == FRENCH
    assert said.count("is already in the folder; its SHA-256 is the expected value") == 2


def test_a_text_that_was_changed_is_not_overwritten(tmp_path):
    with serving(**pages()) as site:
        corpus = corpus_at(site.address)
        get(corpus, tmp_path)
    (tmp_path / "train.fr").write_text("mine\n")
    with pytest.raises(TextError, match=r"train\.fr must be a new file"):
        get(corpus, tmp_path)
    assert (tmp_path / "train.fr").read_text() == "mine\n"


def test_a_wrong_file_never_gets_the_name(tmp_path):
    wrong = gzip.compress(b"something else\n")
    with serving(**pages(en=wrong)) as site, pytest.raises(DownloadError) as caught:
        get(corpus_at(site.address), tmp_path)
    for part in (
        sha256(EN),
        sha256(wrong),
        f"{site.address}/ does not provide train.en.gz",
        "run the command again",
    ):
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)
    assert names(tmp_path) == ["train.fr.gz"]  # what was right is kept


def test_after_one_mirror_comes_the_next(tmp_path):
    wrong = gzip.compress(b"something else\n")
    with (
        serving() as empty,
        serving(**pages(en=wrong, fr=wrong)) as old,
        serving(**pages()) as good,
    ):
        corpus = corpus_at(empty.address, old.address, good.address)
        _, said = get(corpus, tmp_path)
    assert names(tmp_path) == WHOLE
    assert "train.en.gz cannot be fetched from" in said
    assert "HTTP 404 Not Found" in said
    assert sha256(wrong) in said
    assert [len(site.asked) for site in (empty, old, good)] == [2, 2, 2]


def test_a_mirror_that_is_named_comes_first(tmp_path):
    with serving(**pages()) as known, serving(**pages()) as mirror:
        get(corpus_at(known.address), tmp_path, f"{mirror.address}/")
    assert [len(site.asked) for site in (mirror, known)] == [2, 0]


def test_when_nobody_has_it_every_address_is_named(tmp_path):
    gone = "http://127.0.0.1:9"  # the discard port: nobody listens
    folder = tmp_path / "folder"
    with serving(**pages(statuses=[403] * 9)) as site, pytest.raises(DownloadError) as caught:
        get(corpus_at(site.address, gone), folder, tmp_path, f"{site.address}/sub")
    message = str(caught.value)
    for part in (
        f"{tmp_path}/ does not provide train.en.gz (there is no such file)",
        f"{site.address}/sub/ does not provide train.en.gz (HTTP 404 Not Found)",
        f"{site.address}/ does not provide train.en.gz (HTTP 403 Forbidden)",
        f"{gone}/ does not provide train.en.gz (no answer: ",
        f"Put train.en.gz into {folder} and run the command again",
    ):
        assert part in message
    assert "\n" not in message
    assert (folder / "train.fr.gz").read_bytes() == FR


def test_a_host_without_an_answer_is_asked_once(tmp_path):
    corpus, said = corpus_at("http://127.0.0.1:9"), []
    missing = r"does not provide train\.en\.gz, train\.fr\.gz \(no answer: "
    with pytest.raises(DownloadError, match=missing):
        get_corpus(corpus, tmp_path, say=said.append)
    assert [line.split(" ")[0] for line in said] == ["train.en.gz", "train.en.gz"]


def test_a_cut_download_goes_on_in_the_next_run(tmp_path):
    half = len(EN) // 2
    with serving(**pages(cuts=[half, 0, 0, 0])) as site:
        with pytest.raises(DownloadError, match="lost after"):
            get(corpus_at(site.address), tmp_path)
        assert (tmp_path / "train.en.gz.partial").read_bytes() == EN[:half]
        assert "train.en.gz" not in names(tmp_path)
        get(corpus_at(site.address), tmp_path)
    assert site.ranges()[-1] == (f"bytes={half}-", '"one"')
    assert names(tmp_path) == WHOLE


def test_a_partial_file_that_was_spoilt_is_fetched_anew(tmp_path):
    with serving(**pages(cuts=[100, 0, 0, 0])) as site:
        with pytest.raises(DownloadError):
            get(corpus_at(site.address), tmp_path)
        (tmp_path / "train.en.gz.partial").write_bytes(b"x" * 100)
        get(corpus_at(site.address), tmp_path)
    assert site.ranges()[-2:] == [("bytes=100-", '"one"'), (None, None)]
    assert names(tmp_path) == WHOLE


def test_files_of_a_folder(tmp_path):
    mirror, folder = tmp_path / "mirror", tmp_path / "folder"
    mirror.mkdir()
    (mirror / "train.en.gz").write_bytes(EN)
    (mirror / "train.fr.gz").write_bytes(FR)
    get(corpus_at("http://127.0.0.1:9"), folder, mirror)
    assert names(folder) == WHOLE
    assert (folder / "train.en.gz").stat().st_ino != (mirror / "train.en.gz").stat().st_ino
    assert names(mirror) == ["train.en.gz", "train.fr.gz"]


def test_a_wrong_file_of_a_folder_is_passed_over(tmp_path):
    mirror, folder = tmp_path / "mirror", tmp_path / "folder"
    (mirror / "train.fr.gz").mkdir(parents=True)
    (mirror / "train.en.gz").write_bytes(FR)
    with serving(**pages()) as site:
        _, said = get(corpus_at(site.address), folder, mirror)
    assert f"train.en.gz cannot be fetched from {mirror / 'train.en.gz'}: it must have" in said
    assert f"train.fr.gz cannot be fetched from {mirror / 'train.fr.gz'}: there is no" in said
    assert names(folder) == WHOLE


def test_files_placed_by_hand(tmp_path):
    (tmp_path / "train.en.gz").write_bytes(EN)
    (tmp_path / "train.fr.gz").write_bytes(FR)
    _, said = get(corpus_at("http://127.0.0.1:9"), tmp_path)
    assert said.count("is already in the folder; its SHA-256 is the expected value") == 2
    assert names(tmp_path) == WHOLE


def test_a_wrong_file_placed_by_hand_is_reported_and_stays(tmp_path):
    (tmp_path / "train.en.gz").write_bytes(FR)
    with pytest.raises(TextError) as caught:
        get(corpus_at("http://127.0.0.1:9"), tmp_path)
    for part in (str(tmp_path / "train.en.gz"), sha256(EN), sha256(FR), "move it away"):
        assert part in str(caught.value)
    assert (tmp_path / "train.en.gz").read_bytes() == FR


def test_a_file_of_another_size_placed_by_hand_is_reported(tmp_path):
    (tmp_path / "train.en.gz").write_bytes(EN)
    corpus = corpus_at("http://127.0.0.1:9", sums=False)
    sized = replace(corpus.downloads[0], size=len(EN) + 1)
    with pytest.raises(TextError, match=rf"must have {len(EN) + 1:,} bytes, but has {len(EN):,}"):
        get(replace(corpus, downloads=(sized,)), tmp_path)


# Where no SHA-256 is known, the first one is recorded.


def test_an_unknown_sum_is_recorded_and_said_to_be(tmp_path):
    with serving(**pages()) as site:
        _, said = get(corpus_at(site.address, sums=False), tmp_path)
    assert said.count("recorded but not verified") == 2
    sums = Checksums.read(tmp_path)
    assert sums.title == "small"
    assert sums.by_name == {
        "train.en.gz": sha256(EN),
        "train.fr.gz": sha256(FR),
        "train.en": sha256(ENGLISH),
        "train.fr": sha256(FRENCH),
    }


def test_what_was_recorded_is_checked_elsewhere(tmp_path):
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    changed = gzip.compress(b"changed\n" * 4000)
    with serving(**pages()) as site:
        corpus = corpus_at(site.address, sums=False)
        get(corpus, first)
        site.pages["/train.en.gz"].content = changed
        second.mkdir()
        (second / "SHA256SUMS").write_text((first / "SHA256SUMS").read_text())
        with pytest.raises(DownloadError, match=f"{sha256(EN)} .the value recorded in {second}"):
            get(corpus, second)
        _, said = get(corpus, third, first)  # a folder with a list vouches for what it has
    assert said.count(f"its SHA-256 is the value recorded in {first / 'SHA256SUMS'}") == 2


def test_what_cannot_be_unpacked_is_not_recorded(tmp_path):
    with serving(**pages(en=EN[:-9])) as site:
        corpus = corpus_at(site.address, sums=False)
        with pytest.raises(TextError, match=r"train\.en\.gz .* cut off or damaged .* move it away"):
            get(corpus, tmp_path)
        (tmp_path / "train.en.gz").unlink()
        site.pages["/train.en.gz"].content = EN
        get(corpus, tmp_path)
    assert names(tmp_path) == WHOLE


def test_a_recorded_file_that_has_changed_is_reported(tmp_path):
    with serving(**pages()) as site:
        corpus = corpus_at(site.address, sums=False)
        get(corpus, tmp_path)
    (tmp_path / "train.en").unlink()
    (tmp_path / "train.en.gz").write_bytes(FR)
    with pytest.raises(TextError, match=f"{sha256(EN)} .* but has {sha256(FR)}"):
        get(corpus, tmp_path)


def test_a_list_with_foreign_lines_is_read_for_what_it_holds(tmp_path):
    good, bad = "a" * 64, "b" * 64
    (tmp_path / "SHA256SUMS").write_text(
        f"{good}  x.gz\n{good} *y.gz\n{bad}  ../z.gz\n{bad}  a/b.gz\nnonsense\n{'c' * 9}\n\xff"
    )
    assert Checksums.read(tmp_path).by_name == {"x.gz": good, "y.gz": good}


# Every entry of the catalogue, with text made up for it in the archives that it describes.


def made_up(part):
    """Write three lines that name their origin, with the markup of the part."""
    lines = [f"{part.download} {part.member} {number} & more" for number in range(3)]
    if part.form == "segments":
        marked = [
            f'<seg id="{n}"> {line.replace("&", "&amp;")} </seg>' for n, line in enumerate(lines)
        ]
        return lines, ["<doc>", *marked, "</doc>"]
    return lines, (["<url>x</url>", *lines] if part.form == "talks" else lines)


def made_up_download(name, parts):
    contents = {}
    for part in parts:
        content = "".join(f"{line}\n" for line in made_up(part)[1]).encode()
        contents[part.member] = gzip.compress(content) if part.member.endswith(".gz") else content
    if name.endswith(".zip"):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for member, content in contents.items():
                archive.writestr(member, content)
        return packed.getvalue()
    if name.endswith((".tgz", ".tar")):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w" if name.endswith(".tar") else "w:gz") as archive:
            for member, content in contents.items():
                entry = tarfile.TarInfo(member)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        return packed.getvalue()
    return gzip.compress(contents[""]) if name.endswith(".gz") else contents[""]


@pytest.mark.parametrize("name", [*CORPORA, "opus:TED2020/v1/de-en"])
def test_every_entry_becomes_the_text_it_describes(tmp_path, name):
    corpus = find_corpus(name)
    mirror, folder = tmp_path / "mirror", tmp_path / "folder"
    mirror.mkdir()
    for download in corpus.downloads:
        parts = [p for text in corpus.texts for p in text.parts if p.download == download.name]
        (mirror / download.name).write_bytes(made_up_download(download.name, parts))
    unknown = tuple(Download(download.addresses) for download in corpus.downloads)
    lines, _ = get(replace(corpus, downloads=unknown), folder, mirror)
    assert set(lines) == {text.name for text in corpus.texts}
    for text in corpus.texts:
        expected = [line for part in text.parts for line in made_up(part)[0]]
        assert (folder / text.name).read_text() == "".join(f"{line}\n" for line in expected)
        assert lines[text.name] == len(expected)


# The folder.


def test_a_folder_holds_one_corpus(tmp_path):
    with serving(**pages()) as site:
        corpus = corpus_at(site.address)
        get(corpus, tmp_path)
        with pytest.raises(UserError, match="folder or contain other, but it contains small"):
            get(replace(corpus, name="other"), tmp_path)


def test_two_processes_keep_out_of_each_others_way(tmp_path):
    descriptor = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    try:
        with pytest.raises(UserError, match="another process"):
            get(corpus_at("http://127.0.0.1:9"), tmp_path)
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("mirror", ["file:///etc", "ftp://127.0.0.1", "http://", "no/such/folder"])
def test_a_mirror_is_a_folder_or_an_address_of_the_web(tmp_path, mirror):
    with pytest.raises(UserError, match=r"--mirror must be a folder or an address"):
        get(corpus_at("http://127.0.0.1:9"), tmp_path / "x", mirror)
    assert not (tmp_path / "x").exists()


def test_sides_of_different_length_are_reported(tmp_path):
    shorter = gzip.compress(b"le chien\n")
    with (
        serving(**pages(fr=shorter)) as site,
        pytest.raises(TextError, match=r"train\.en and .*train\.fr .* 4,000 and 1"),
    ):
        get(corpus_at(site.address, sums=False), tmp_path)


def test_an_interrupt_keeps_what_has_arrived(tmp_path):
    def interrupt(_name, _done, _total):
        raise KeyboardInterrupt

    with serving(**pages()) as site:
        with pytest.raises(RunStopped, match="the same command continues"):
            get_corpus(corpus_at(site.address), tmp_path, say=lambda _: None, watch=interrupt)
        arrived = (tmp_path / "train.en.gz.partial").read_bytes()
        assert arrived
        assert EN.startswith(arrived)
        get(corpus_at(site.address), tmp_path)
    assert names(tmp_path) == WHOLE


# The command that is shown.


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        (
            "multi30k",
            "train multi30k --source D/train.en --target D/train.de --valid-source D/val.en",
        ),
        ("wmt14-en-fr", "train paper-base-en-fr --source D/train.*.en --target D/train.*.fr"),
        ("iwslt14-de-en", "train small --source D/train.de --target D/train.en --out"),
        ("opus:TED2020/v1/de-en", "--out runs/opus-TED2020-v1-de-en"),
    ],
)
def test_the_command_names_the_texts(tmp_path, name, parts):
    command = train_command(find_corpus(name), tmp_path / "my data")
    words = [word.replace(str(tmp_path / "my data"), "D") for word in shlex.split(command)]
    assert parts in " ".join(words)
