import random
import socket
import threading
from contextlib import contextmanager
from email.message import Message
from urllib.request import Request

import pytest

from heedful.data.datasets import download as module
from heedful.data.datasets.download import Unreachable, fetch, forget
from heedful.errors import DownloadError
from tests.support.web import Page, serving

CONTENT = random.Random(1).randbytes(300_000)
OTHER = random.Random(2).randbytes(250_000)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def partial(tmp_path):
    return tmp_path / "corpus.tgz.partial"


class Waits(list):
    """Counts the seconds instead of waiting for them."""

    def __call__(self, seconds):
        self.append(seconds)


def never(_):
    raise AssertionError("nothing had to be waited for")


def test_a_whole_file_comes_in_one_go(partial):
    seen = []
    with serving(corpus=Page(CONTENT)) as site:
        fetch(f"{site.address}/corpus", partial, wait=never, watch=lambda *told: seen.append(told))
    assert partial.read_bytes() == CONTENT
    assert site.ranges() == [(None, None)]
    assert site.asked[0][1]["accept-encoding"] == "identity"
    assert seen[-1] == ("corpus.tgz", len(CONTENT), len(CONTENT))
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)


def test_an_empty_file_is_a_file(partial):
    with serving(corpus=Page(b"")) as site:
        fetch(f"{site.address}/corpus", partial, wait=never)
    assert partial.read_bytes() == b""


def test_a_cut_connection_goes_on_where_it_ended(partial):
    waits = Waits()
    with serving(corpus=Page(CONTENT, cuts=[100_000, 50_000])) as site:
        fetch(f"{site.address}/corpus", partial, wait=waits)
    assert partial.read_bytes() == CONTENT
    assert waits == [1.0, 2.0]
    assert site.ranges() == [
        (None, None),
        ("bytes=100000-", '"one"'),
        ("bytes=150000-", '"one"'),
    ]


def test_what_is_cut_too_often_is_kept_for_the_next_run(partial):
    waits = Waits()
    with serving(corpus=Page(CONTENT, cuts=[1000] * 4)) as site:
        with pytest.raises(DownloadError, match=r"lost after 4,000 of 300,000 bytes, 4 times"):
            fetch(f"{site.address}/corpus", partial, wait=waits)
        assert waits == [1.0, 2.0, 4.0]
        assert partial.read_bytes() == CONTENT[:4000]
        fetch(f"{site.address}/corpus", partial, wait=never)
    assert site.ranges()[-1] == ("bytes=4000-", '"one"')
    assert partial.read_bytes() == CONTENT


def test_who_gets_further_by_a_megabyte_has_not_lost_a_try(partial):
    content = CONTENT * 25
    waits = Waits()
    with serving(corpus=Page(content, cuts=[1_100_000] * 6)) as site:
        fetch(f"{site.address}/corpus", partial, wait=waits)
    assert waits == [1.0] * 6
    assert partial.read_bytes() == content


def test_any_cuts_end_in_the_same_file(partial):
    dice = random.Random(3)
    for _ in range(12):
        forget(partial)
        cuts = [dice.randrange(120_000) for _ in range(3)]
        page = Page(CONTENT, cuts=cuts, ranges=dice.random() < 0.5, length=dice.random() < 0.5)
        with serving(corpus=page) as site:
            fetch(f"{site.address}/corpus", partial, size=len(CONTENT), wait=Waits())
        assert partial.read_bytes() == CONTENT, cuts


def test_a_server_that_knows_no_ranges_begins_anew(partial):
    with serving(corpus=Page(CONTENT, cuts=[100_000], ranges=False)) as site:
        fetch(f"{site.address}/corpus", partial, wait=Waits())
    assert site.ranges()[1] == ("bytes=100000-", '"one"')
    assert partial.read_bytes() == CONTENT


def test_a_file_that_has_changed_meanwhile_begins_anew(partial):
    with serving(corpus=Page(CONTENT, cuts=[100_000] * 4)) as site:
        page = site.pages["/corpus"]

        def change(_):
            page.content, page.headers, page.cuts = OTHER, {"ETag": '"two"'}, []

        fetch(f"{site.address}/corpus", partial, wait=change)
    assert partial.read_bytes() == OTHER


@pytest.mark.parametrize(
    ("headers", "validator"),
    [
        ({"ETag": 'W/"one"', "Last-Modified": "Tue, 01 Jan 2019 00:00:00 GMT"}, "Tue, 01 Jan"),
        ({"Last-Modified": "Tue, 01 Jan 2019 00:00:00 GMT"}, "Tue, 01 Jan"),
        ({"ETag": 'W/"one"'}, None),
        ({}, None),
    ],
)
def test_only_what_names_a_version_for_sure_is_asked_about(partial, headers, validator):
    with serving(corpus=Page(CONTENT, headers=headers, cuts=[100_000])) as site:
        fetch(f"{site.address}/corpus", partial, wait=Waits())
    wanted, condition = site.ranges()[1]
    assert (wanted is None) == (validator is None)
    assert (condition or "").startswith(validator or "")
    assert partial.read_bytes() == CONTENT


def test_what_came_from_another_address_is_not_continued(partial):
    with serving(a=Page(CONTENT, cuts=[9000] * 4), b=Page(OTHER)) as site:
        with pytest.raises(DownloadError):
            fetch(f"{site.address}/a", partial, wait=Waits())
        fetch(f"{site.address}/b", partial, wait=never)
    assert site.ranges()[-1] == (None, None)
    assert partial.read_bytes() == OTHER


def test_an_address_that_gives_nothing_leaves_what_another_gave(partial):
    with serving(a=Page(CONTENT, cuts=[9000] * 4)) as site:
        for name, why in (("a", "lost after"), ("nowhere", "HTTP 404 Not Found")):
            with pytest.raises(DownloadError, match=why):
                fetch(f"{site.address}/{name}", partial, wait=Waits())
        fetch(f"{site.address}/a", partial, wait=never)
    assert site.ranges()[-1][0] == "bytes=36000-"
    assert partial.read_bytes() == CONTENT


@pytest.mark.parametrize("claim", ["bytes 5-9/300000", "bytes 0-299999/300000", "nonsense"])
def test_another_part_than_was_asked_for_is_not_put_together(partial, claim):
    with serving(corpus=Page(CONTENT, cuts=[100_000])) as site:
        page = site.pages["/corpus"]

        def lie_once(_):
            page.claim = claim if len(site.asked) == 1 else ""

        fetch(f"{site.address}/corpus", partial, wait=lie_once)
    assert site.ranges()[-1] == (None, None)
    assert partial.read_bytes() == CONTENT


def test_a_kill_between_the_last_byte_and_the_name_costs_nothing(partial):
    with serving(corpus=Page(CONTENT)) as site:
        fetch(f"{site.address}/corpus", partial, wait=never)
        fetch(f"{site.address}/corpus", partial, wait=never)
    assert site.ranges()[1] == ("bytes=300000-", '"one"')
    assert partial.read_bytes() == CONTENT


def test_a_file_that_is_shorter_now_begins_anew(partial):
    with serving(corpus=Page(CONTENT)) as site:
        fetch(f"{site.address}/corpus", partial, wait=never)
        site.pages["/corpus"].content = OTHER  # and the server forgot to change the tag
        fetch(f"{site.address}/corpus", partial, wait=Waits())
    assert partial.read_bytes() == OTHER


def test_damaged_notes_begin_anew(partial):
    with serving(corpus=Page(CONTENT)) as site:
        for notes in ("{", "[]", '{"address": 1}', '{"address": "%s", "validator": 5}'):
            forget(partial)
            partial.write_bytes(b"something")
            address = f"{site.address}/corpus"
            partial.with_name(f"{partial.name}.json").write_text(notes.replace("%s", address))
            fetch(address, partial, wait=Waits())
            assert partial.read_bytes() == CONTENT


def test_a_file_of_another_size_is_not_begun(partial):
    with (
        serving(corpus=Page(CONTENT)) as site,
        pytest.raises(DownloadError, match="300,000 bytes instead of 300,001"),
    ):
        fetch(f"{site.address}/corpus", partial, size=300_001, wait=never)
    assert not partial.exists()


def test_more_than_the_file_has_is_not_taken(partial):
    with (
        serving(corpus=Page(CONTENT, length=False)) as site,
        pytest.raises(DownloadError, match="more than the 1,000 bytes"),
    ):
        fetch(f"{site.address}/corpus", partial, size=1000, wait=never)
    assert not partial.exists()


def test_a_file_without_an_end_or_a_stated_size_is_cut_and_not_kept(partial, monkeypatch):
    monkeypatch.setattr(module, "_MOST_UNSTATED", 1_000_000)
    with serving(corpus=Page(CONTENT, length=False, endless=True)) as site:
        for size, most in ((None, "more than 1,000,000 bytes"), (900_000, "the 900,000 bytes")):
            with pytest.raises(DownloadError, match=most):
                fetch(f"{site.address}/corpus", partial, size=size, wait=never)
            assert [*partial.parent.iterdir()] == []
        assert len(site.asked) == 2


def test_an_endless_rest_of_a_file_is_cut_too(partial, monkeypatch):
    monkeypatch.setattr(module, "_MOST_UNSTATED", 1_000_000)
    with serving(corpus=Page(CONTENT, cuts=[100_000])) as site:
        with pytest.raises(DownloadError, match="404"):
            fetch(f"{site.address}/corpus", partial, wait=lambda _: site.pages.clear())
        site.pages["/corpus"] = Page(CONTENT, length=False, claim="bytes 100000-1/*", endless=True)
        with pytest.raises(DownloadError, match="more than 1,000,000 bytes"):
            fetch(f"{site.address}/corpus", partial, wait=never)
    assert [*partial.parent.iterdir()] == []


def test_a_size_that_no_file_has_is_not_begun(partial):
    page = Page(CONTENT, length=False, headers={"Content-Length": str(10**15)})
    with (
        serving(corpus=page) as site,
        pytest.raises(DownloadError, match="states a size of 1,000,000,000,000,000 bytes"),
    ):
        fetch(f"{site.address}/corpus", partial, wait=never)
    assert [*partial.parent.iterdir()] == []


def test_a_page_is_no_file(partial):
    page = Page(b"<p>Please log in.</p>", headers={"Content-Type": "text/html; charset=utf-8"})
    with serving(corpus=page) as site, pytest.raises(DownloadError, match="text/html"):
        fetch(f"{site.address}/corpus", partial, wait=never)
    assert not partial.exists()


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_an_answer_that_will_not_change_is_taken_at_once(partial, status):
    with (
        serving(corpus=Page(CONTENT, statuses=[status])) as site,
        pytest.raises(DownloadError, match=f"HTTP {status}"),
    ):
        fetch(f"{site.address}/corpus", partial, wait=never)


def test_a_busy_server_is_asked_again(partial):
    waits = Waits()
    with serving(corpus=Page(CONTENT, statuses=[503, 429, 500])) as site:
        fetch(f"{site.address}/corpus", partial, wait=waits)
    assert waits == [1.0, 2.0, 4.0]
    assert partial.read_bytes() == CONTENT


def test_a_redirect_is_followed_and_keeps_the_range(partial):
    with serving(a=Page(location="/b"), b=Page(CONTENT, cuts=[5000])) as site:
        fetch(f"{site.address}/a", partial, wait=Waits())
    assert [path for path, _ in site.asked] == ["/a", "/b"] * 2
    assert site.ranges()[-1] == ("bytes=5000-", '"one"')
    assert partial.read_bytes() == CONTENT


def test_a_redirect_away_from_the_web_is_refused(partial, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    for target in (secret.as_uri(), "ftp://127.0.0.1/x", "data:text/plain,secret", "gopher://x/"):
        with serving(a=Page(location=target)) as site, pytest.raises(DownloadError):
            fetch(f"{site.address}/a", partial, wait=never)
        assert not partial.exists(), target


def test_a_redirect_in_a_circle_ends(partial):
    with serving(a=Page(location="/a")) as site, pytest.raises(DownloadError, match="HTTP 302"):
        fetch(f"{site.address}/a", partial, wait=never)


def test_a_redirect_never_leaves_https():
    redirect = module._WebOnly().redirect_request
    request = Request("https://example.org/a")
    for target, allowed in (("https://b.example.org/", True), ("http://example.org/a", False)):
        if allowed:
            assert redirect(request, None, 302, "", Message(), target).full_url == target
        else:
            with pytest.raises(DownloadError, match="not allowed"):
                redirect(request, None, 302, "", Message(), target)


@pytest.mark.parametrize(
    "address",
    ["file:///etc/hostname", "ftp://127.0.0.1/x", "data:,x", "x", "http://a b/", "http://"],
)
def test_only_the_web_is_asked(partial, address):
    with pytest.raises(DownloadError):
        fetch(address, partial, wait=never)
    assert not partial.exists()


def test_a_host_that_is_not_there_is_told_from_a_file_that_is_not_there(partial):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: every call is refused
        port = taken.getsockname()[1]
        with pytest.raises(Unreachable, match="no answer: Connection refused"):
            fetch(f"http://127.0.0.1:{port}/x", partial, wait=never)


@contextmanager
def answering(answer, hold=False):
    """Answer every caller with the same bytes, then hang up, or hold the line."""
    over = threading.Event()

    def run():
        held = []
        while not over.is_set():
            try:
                connection, _ = server.accept()
            except TimeoutError:
                continue
            held.append(connection)
            connection.recv(4096)
            connection.sendall(answer)
            if not hold:
                connection.close()
        for connection in held:
            connection.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.02)
        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}/x"
        finally:
            over.set()
            thread.join()


def test_a_server_that_falls_silent_is_cut(partial, monkeypatch):
    monkeypatch.setattr(module, "_TIMEOUT", 0.05)
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"
    with answering(head, hold=True) as address, pytest.raises(DownloadError, match="timed out"):
        fetch(address, partial, wait=Waits())


def test_a_chunked_answer_that_is_cut_is_noticed(partial):
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n5\r\nab"
    with answering(head) as address, pytest.raises(DownloadError, match="lost"):
        fetch(address, partial, wait=Waits())


@pytest.mark.parametrize("answer", [b"", b"SMTP ready\r\n\r\n", b"HTTP/1.1 999999999 x\r\n\r\n"])
def test_what_speaks_another_language_is_reported(partial, answer):
    with answering(answer) as address, pytest.raises(DownloadError):
        fetch(address, partial, wait=Waits())
    assert not partial.exists()


def test_the_proxy_of_the_environment_is_asked(partial, monkeypatch):
    with serving() as site:
        monkeypatch.setenv("http_proxy", site.address)
        site.pages["http://corpora.invalid/x.tgz"] = Page(CONTENT)
        fetch("http://corpora.invalid/x.tgz", partial, wait=never)
    assert partial.read_bytes() == CONTENT
