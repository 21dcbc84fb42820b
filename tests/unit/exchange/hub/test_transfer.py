"""Files from a server that lies; test_fetch.py has one that is honest and breaks down."""

import gzip
import hashlib
import json
import subprocess
from types import SimpleNamespace

import pytest

from heedful.errors import DownloadError, StorageError
from heedful.exchange.hub.client import HubClient
from heedful.exchange.hub.transfer import digest_of, download, link
from heedful.runs.hub_names import HubName
from tests.support.full_disk import room_for

NAME = HubName("org/tiny-en-fr")
FILE = "vocab.json"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    """Make no pauses between attempts."""
    clock = SimpleNamespace(sleep=lambda seconds: None)
    monkeypatch.setattr("heedful.exchange.hub.transfer.time", clock)


@pytest.mark.parametrize("content", [b"", b"some text\n", bytes(70_000)])
def test_digests_are_those_of_sha256_and_git(content, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(content)
    assert digest_of(path, "0" * 64) == hashlib.sha256(content).hexdigest()
    git = subprocess.run(["git", "hash-object", path], capture_output=True, text=True, check=True)
    assert digest_of(path, "0" * 40) == git.stdout.strip()


@pytest.fixture
def lying(hub):
    """Let the hub answer requests for one file by a function of the handler."""

    def begin(answer):
        def lie(handler, method, path):
            if path.endswith(f"/{FILE}"):
                answer(handler)
                return True
            return False

        hub.lie = lie

    return begin


def fetch():
    client = HubClient("a test")
    return client.fetch(client.describe(NAME), FILE)


def endless(handler):
    handler.send_response(200)
    handler.end_headers()
    handler.close_connection = True
    try:
        for _ in range(200):
            handler.wfile.write(bytes(1 << 20))
    except OSError:
        handler.server.stopped = True


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (endless, "bytes according to the hub, but has more"),
        (lambda handler: handler._answer(200, b"{"), "only 1 of"),
        (lambda handler: handler._answer(200, b""), "only 0 of"),
        (lambda handler: handler._answer(302, b"", {"Location": "file:///etc/passwd"}), "file://"),
        (lambda handler: handler._answer(302, b"", {"Location": handler.path}), "redirects"),
        (lambda handler: handler._answer(302, b""), "has the status 302"),
        (lambda handler: handler._answer(416, b""), "answers 416"),
        (
            lambda handler: handler._answer(
                200, gzip.compress(bytes(1 << 24)), {"Content-Encoding": "gzip"}
            ),
            "is compressed, although the request did not allow this",
        ),
    ],
)
def test_a_lie_is_one_paragraph_and_nothing_has_the_name_of_the_content(
    answer, words, lying, hub, tmp_path
):
    lying(answer)
    with pytest.raises(DownloadError) as caught:
        fetch()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    blobs = [*(tmp_path / "home" / "hub").glob("*/blobs/*")]
    assert [path for path in blobs if path.suffix != ".incomplete"] == []
    assert all(path.stat().st_size < 1 << 20 for path in blobs)
    hub.lie = None
    assert fetch().is_file()


@pytest.mark.parametrize("place", ["{folder}/victim", "../../../../../victim", "{folder}/new"])
def test_no_header_chooses_where_a_file_is_written(place, lying, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    headers = {"ETag": f'"{place.format(folder=tmp_path)}"', "X-Repo-Commit": "../../.."}
    lying(lambda handler: handler._answer(200, b"planted", headers))
    with pytest.raises(DownloadError):
        fetch()
    assert victim.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "victim"]


def test_what_came_before_is_continued_and_what_is_wrong_begins_anew(hub, tmp_path):
    content = hub.repositories[NAME.repo].commits[hub.repositories[NAME.repo].branches["main"]][
        FILE
    ]
    digest = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    place = tmp_path / "blobs" / digest
    url = f"{hub.url}/{NAME.repo}/resolve/main/{FILE}"
    starts = []

    def watch(handler, method, path):
        starts.append(handler.headers["Range"])
        return False

    hub.lie = watch
    for part, ranges in (
        (content[:10], ["bytes=10-"]),
        (b"x" * 10, ["bytes=10-", None]),
        (content + b"x", [None]),
        (content, []),
    ):
        place.parent.mkdir(exist_ok=True)
        (place.parent / f"{digest}.incomplete").write_bytes(part)
        starts.clear()
        for _ in range(2):  # the second finds what another process has brought
            download(url, place, len(content), digest, FILE)
        assert place.read_bytes() == content
        assert starts == ranges
        place.unlink()
    assert [*place.parent.iterdir()] == []


def test_a_full_disk_is_named_and_what_came_is_kept(hub, tmp_path):
    with room_for(10), pytest.raises(StorageError, match="downloaded data is kept"):
        fetch()
    (part,) = (tmp_path / "home" / "hub").rglob("*.incomplete")
    assert part.stat().st_size == 10
    assert isinstance(json.loads(fetch().read_text()), dict)
    assert not part.exists()


def test_a_link_in_the_way_is_not_followed(hub, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "file.incomplete").symlink_to(victim)
    with pytest.raises(StorageError, match="cannot write to"):
        download(f"{hub.url}/x", tmp_path / "file", 5, "a" * 40, "a file")
    assert victim.read_text() == "mine"


def test_a_link_is_replaced_by_one_to_the_content(tmp_path):
    (tmp_path / "blob").write_text("content")
    place = tmp_path / "snapshots" / "name"
    for _ in range(2):
        link(place, tmp_path / "blob")
        assert place.is_symlink()
        assert place.read_text() == "content"
    assert [*place.parent.iterdir()] == [place]
