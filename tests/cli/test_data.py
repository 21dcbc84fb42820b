"""`heedful data` as a user meets it, with real files and a real web server."""

import lzma
import os
import pty
import resource
import shlex
import signal
import subprocess
import sys
import time

import pytest

from heedful.data.datasets.registry import CORPORA
from heedful.data.generated.registry import GENERATED
from tests.conftest import ROOT
from tests.support.commands import refused
from tests.support.web import Page, serving

MULTI30K = CORPORA["multi30k"]
HERE = {"no_proxy": "127.0.0.1"}
THIS_SOURCE = {**os.environ, **HERE, "PYTHONPATH": str(ROOT / "src")}


@pytest.fixture(scope="module")
def raw(corpora):
    """Folder of the files of Multi30k as its repository has them."""
    return corpora / "multi30k" / "raw"


def page_of(file, **behavior):
    return Page(file.read_bytes(), **behavior)


def pages_of(raw, **behavior):
    return {
        download.name.replace(".", "__"): page_of(raw / download.name, **behavior)
        for download in MULTI30K.downloads
    }


def names(folder):
    return {path.name for path in folder.iterdir()}


TEXTS = {text.name for text in MULTI30K.texts}
FILES = {download.name for download in MULTI30K.downloads}


def test_every_known_corpus_is_listed(heedful_cli):
    done = heedful_cli("data", "list")
    assert done.returncode == 0, done.stderr
    for corpus in CORPORA.values():
        assert corpus.name in done.stdout
        assert corpus.license in " ".join(done.stdout.split())
    for text in GENERATED.values():
        assert f"{text.name:<23} {' '.join(text.languages)}" in done.stdout
        assert text.about in done.stdout
        assert f"{text.sizes[0]:,} pairs, no download" in done.stdout
    assert "29,000 pairs, 2.6 MB" in done.stdout
    assert "more than 4,290.1 MB" in done.stdout
    assert "not tested" in " ".join(done.stdout.split())


def test_the_grammar_is_written_without_a_download(heedful_cli, tmp_path):
    done = heedful_cli("data", "get", "grammar", "--out", ".", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].split() == ["15,000", "lines", "train.en"]
    counts = {path.name: len(path.read_text("utf-8").splitlines()) for path in tmp_path.iterdir()}
    pairs = {"train": 15_000, "valid": 500, "test": 1_000}
    sides = {f"{name}.{side}": count for name, count in pairs.items() for side in ("en", "fr")}
    assert counts == sides | {"test.links": 1_000}
    assert heedful_cli("data", "get", "grammar", "--out", ".", cwd=tmp_path).returncode == 0
    (tmp_path / "test.fr").write_text("mine\n", encoding="utf-8")
    again = heedful_cli("data", "get", "grammar", "--out", ".", cwd=tmp_path)
    refused(again, "test.fr must be a new file", "name another folder", code=2)
    assert (tmp_path / "test.fr").read_text(encoding="utf-8") == "mine\n"


def test_dates_are_written_with_the_command_that_learns_them(heedful_cli, tmp_path):
    done = heedful_cli("data", "get", "dates", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-3].split() == ["1,000", "lines", "data/dates/test.iso"]
    command = shlex.split(lines[-1])
    assert command[:3] == ["heedful", "train", "dates"]
    dry = heedful_cli(*command[1:], "--dry-run", cwd=tmp_path)
    assert dry.returncode == 0, dry.stderr
    assert "15,000 pairs" in dry.stdout


def test_multi30k_from_a_folder_ends_in_text_that_can_be_trained_on(heedful_cli, raw, tmp_path):
    folder = tmp_path / "my data"
    done = heedful_cli("data", "get", "multi30k", "--out", folder, "--mirror", raw)
    assert done.returncode == 0, done.stderr
    assert names(folder) == {*TEXTS, *FILES, "SHA256SUMS"}
    assert "\x1b" not in done.stdout + done.stderr  # bars are for terminals
    assert done.stdout.count("its SHA-256 is the expected value") == 12
    assert f"29,000 lines  {folder / 'train.en'}" in done.stdout
    command = shlex.split(done.stdout.splitlines()[-1])
    assert command[:3] == ["heedful", "train", "multi30k"]
    dry = heedful_cli(*command[1:], "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert "29,000 pairs" in dry.stdout
    assert "en to de" in dry.stdout


def test_tanaka_from_its_parts(heedful_cli, corpora, tmp_path):
    mirror, folder = tmp_path / "mirror", tmp_path / "data" / "tanaka-en-ja"
    mirror.mkdir()
    for text in CORPORA["tanaka-en-ja"].texts:
        packed = (corpora / "tanaka-en-ja" / f"{text.name}.xz").read_bytes()
        lines = lzma.decompress(packed).splitlines(keepends=True)
        size = len(lines) // len(text.parts)
        for number, part in enumerate(text.parts):
            content = b"".join(lines[number * size : (number + 1) * size])
            (mirror / part.download).write_bytes(content)
    done = heedful_cli("data", "get", "tanaka-en-ja", "--mirror", mirror, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "50,000 lines  data/tanaka-en-ja/train.ja" in done.stdout
    whole = lzma.decompress((corpora / "tanaka-en-ja" / "train.ja.xz").read_bytes())
    assert (folder / "train.ja").read_bytes() == whole


def test_from_a_web_server_with_a_cut_in_the_middle(heedful_cli, raw, tmp_path):
    with serving(**pages_of(raw)) as site:
        site.pages["/train.de.gz"].cuts = [200_000]
        address = f"{site.address}/"
        done = heedful_cli(
            "data", "get", "multi30k", "--out", tmp_path, "--mirror", address, env=HERE
        )
    assert done.returncode == 0, done.stderr
    assert ("bytes=200000-", '"one"') in site.ranges()
    assert len(site.asked) == 13
    assert names(tmp_path) == {*TEXTS, *FILES, "SHA256SUMS"}


def test_what_nobody_has_is_told_in_one_paragraph(heedful_cli, raw, tmp_path):
    """The registry's addresses lead to a local proxy that knows none of them."""
    with serving() as site:
        proxies = {"http_proxy": site.address, "https_proxy": site.address, "no_proxy": ""}
        mirror = ("--mirror", raw.parent)
        done = heedful_cli("data", "get", "multi30k", "--out", tmp_path, *mirror, env=proxies)
    message = refused(done, "Put train.en.gz, train.de.gz,", str(tmp_path), "--mirror", code=1)
    for download in MULTI30K.downloads:
        assert download.name in message
    for address in MULTI30K.downloads[0].addresses:
        assert address.removesuffix("train.en.gz") in message


def test_a_wrong_checksum_shows_both(heedful_cli, raw, tmp_path):
    mirror, folder = tmp_path / "mirror", tmp_path / "folder"
    mirror.mkdir()
    content = bytearray((raw / "train.en.gz").read_bytes())
    content[1000] ^= 1
    (mirror / "train.en.gz").write_bytes(content)
    proxies = {"https_proxy": "http://127.0.0.1:9", "no_proxy": ""}
    arguments = ("data", "get", "multi30k", "--out", folder, "--mirror", mirror)
    done = heedful_cli(*arguments, env=proxies)
    known = MULTI30K.downloads[0].sha256
    found = subprocess.check_output(["sha256sum", mirror / "train.en.gz"], text=True)[:64]
    refused(done, f"must have the SHA-256 {known}", f"but has {found}", code=1)
    assert names(folder) == set()
    (folder / "train.en.gz").write_bytes(content)  # the same file placed by hand
    done = heedful_cli(*arguments, env=proxies)
    refused(done, str(folder / "train.en.gz"), str(known), found, code=2)
    assert (folder / "train.en.gz").read_bytes() == content


def test_a_name_that_is_not_known_ends_with_2(heedful_cli, tmp_path):
    refused(heedful_cli("data", "get", "multi30", cwd=tmp_path), "did you mean multi30k")
    assert names(tmp_path) == set()


def run_with_small_files(limit, *arguments):
    """A limit on the size of files stops the writing, as a full disk would."""
    return subprocess.run(
        [sys.executable, "-m", "heedful", "data", "get", "multi30k", *map(str, arguments)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        check=False,
        capture_output=True,
        encoding="utf-8",
        env=THIS_SOURCE,
    )


def test_a_full_disk_while_files_arrive(heedful_cli, raw, tmp_path):
    limit = 300_000
    with serving(**pages_of(raw)) as site:
        arguments = ("--out", tmp_path, "--mirror", site.address)
        done = run_with_small_files(limit, *arguments)
        refused(done, f"cannot write to {tmp_path}", "Free some space", code=1)
        assert names(tmp_path) == {"train.en.gz.partial", "train.en.gz.partial.json"}
        again = heedful_cli("data", "get", "multi30k", *arguments, env=HERE)
    assert again.returncode == 0, again.stderr
    arrived = int(site.ranges()[1][0].removeprefix("bytes=").removesuffix("-"))
    assert limit - (1 << 17) < arrived <= limit
    assert names(tmp_path) == {*TEXTS, *FILES, "SHA256SUMS"}


def test_a_full_disk_while_a_folder_is_copied(raw, tmp_path):
    done = run_with_small_files(300_000, "--out", tmp_path, "--mirror", raw)
    refused(done, f"cannot write to {tmp_path}", code=1)
    assert names(tmp_path) == set()


def test_a_full_disk_while_unpacking(raw, tmp_path):
    done = run_with_small_files(1_500_000, "--out", tmp_path, "--mirror", raw)
    refused(done, f"cannot write to {tmp_path}", code=1)
    assert names(tmp_path) == FILES


def test_ctrl_c_keeps_what_has_arrived(heedful_cli, raw, tmp_path):
    # A job in the background is born deaf to Ctrl-C, and so are its children.
    program = (
        "import signal\n"
        "from heedful.cli.main import main\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "main()\n"
    )
    partial = tmp_path / "train.en.gz.partial"
    with serving(**pages_of(raw, held_at=300_000)) as site:
        arguments = ["data", "get", "multi30k", "--out", str(tmp_path), "--mirror", site.address]
        process = subprocess.Popen(
            [sys.executable, "-c", program, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env=THIS_SOURCE,
        )
        try:
            while not (partial.exists() and partial.stat().st_size > 100_000):
                assert process.poll() is None, process.communicate()
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=240)
        finally:
            process.kill()
            for page in site.pages.values():
                page.go_on.set()
        done = subprocess.CompletedProcess(arguments, process.returncode, output, errors)
        refused(done, "stopped", "the same command continues", code=1)
        arrived = partial.stat().st_size
        assert (raw / "train.en.gz").read_bytes().startswith(partial.read_bytes())
        again = heedful_cli(*arguments, env=HERE)
    assert again.returncode == 0, again.stderr
    assert site.ranges()[1] == (f"bytes={arrived}-", '"one"')


def test_a_terminal_sees_a_bar(raw, tmp_path):
    reader, writer = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "heedful", "data", "get", "multi30k", "--mirror", str(raw)],
        stdout=subprocess.PIPE,
        stderr=writer,
        check=True,
        cwd=tmp_path,
        env={**THIS_SOURCE, "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(writer)
    with os.fdopen(reader, "rb", buffering=0) as stream:
        shown = stream.read(1 << 16)
    assert b"568.9/568.9 kB" in shown
    assert b"\x1b[2K" in shown  # and it is taken away again
    assert b"\x1b" not in done.stdout
    assert names(tmp_path / "data" / "multi30k") == {*TEXTS, *FILES, "SHA256SUMS"}
