"""`heedful serve` and other people's programs: a client library, schemathesis, attackers."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from urllib.error import HTTPError

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from libretranslatepy import LibreTranslateAPI

from tests.conftest import ROOT
from tests.support.serving import PATIENCE, serving

SENTENCE = "the big red dog sleeps"
HEAD = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def server(zygote, trained):
    limits = ["--read-seconds", 6, "--max-connections", 100, "--max-body", 100_000]
    with serving(zygote, trained, *limits) as started:
        yield started


@pytest.fixture(scope="module")
def right(server):
    """The translation that no attack may change."""
    return translated(server.address)


def translated(address, text=SENTENCE):
    body = {"q": text, "source": "en", "target": "fr"}
    answer = httpx2.post(f"{address}/translate", json=body, timeout=PATIENCE)
    assert answer.status_code == 200, answer.text
    return answer.json()["translatedText"]


@contextmanager
def others(server, right):
    """Clients that go on all the time, and must not notice anything."""
    ended, found = threading.Event(), []

    def go_on():
        while not ended.is_set():
            found.append(translated(server.address))

    with ThreadPoolExecutor(2) as pool:
        going = [pool.submit(go_on) for _ in range(2)]
        try:
            yield found
        finally:
            ended.set()
        for one in going:
            one.result()
    assert found
    assert set(found) == {right}


def sent(server, *parts, half=False):
    """Send raw bytes; return everything received until the connection is closed."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection:
        for part in parts:
            connection.sendall(part)
        if half:
            connection.shutdown(socket.SHUT_WR)
        found = b""
        try:
            while part := connection.recv(1 << 16):
                found += part
        except ConnectionResetError:
            pass
        return found


def test_a_client_of_libretranslate_works_unchanged(server, right):
    client = LibreTranslateAPI(server.address)
    assert client.languages()[0]["code"] == "en"
    assert "fr" in client.languages()[0]["targets"]
    assert client.translate(SENTENCE, "en", "fr") == right
    assert (
        client.translate(f"{SENTENCE}\n\n  {SENTENCE}\n", "en", "fr") == f"{right}\n\n  {right}\n"
    )
    best = client.detect("The weather is very nice today.")[0]
    assert best["language"] == "en"
    assert best["confidence"] > 90
    with pytest.raises(HTTPError) as failed:
        client.translate(SENTENCE, "en", "xx")
    with failed.value as answer:
        assert answer.code == 400
        assert json.loads(answer.read()).keys() == {"error"}


def test_a_client_of_libretranslate_brings_its_key(zygote, trained, tmp_path, right):
    keys = tmp_path / "keys.txt"
    keys.write_text("secret\n", encoding="utf-8")
    with serving(zygote, trained, "--api-keys", keys) as server:
        assert LibreTranslateAPI(server.address, "secret").translate(SENTENCE, "en", "fr") == right
        with pytest.raises(HTTPError) as failed:
            LibreTranslateAPI(server.address, "wrong").translate(SENTENCE, "en", "fr")
        with failed.value as answer:
            assert answer.code == 403


@pytest.mark.soak
def test_what_the_specification_allows_and_forbids_is_answered_as_it_says(server, right, tmp_path):
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{server.address}/spec"]
    options = ["--checks", "all", "--max-examples", "4", "--phases", "examples,coverage,fuzzing"]
    # Which languages and models there are is not in the schema.
    options += ["--exclude-checks", "positive_data_acceptance"]
    more = ["--no-color", "--generation-database", "none", "--request-timeout", "200"]
    more += ["--seed", "1"] if os.environ.get("CI") == "true" else []
    known = {"SCHEMATHESIS_HOOKS": "tests.support.known_languages", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*command, *options, *more],
        capture_output=True,
        check=False,
        cwd=tmp_path,
        encoding="utf-8",
        env={**os.environ, **known},
        timeout=500,
    )
    assert done.returncode == 0, done.stdout
    passed = re.search(r"(\d+) generated, (\d+) passed", done.stdout)
    assert passed, done.stdout
    assert passed[1] == passed[2]
    assert int(passed[1]) > 500
    assert translated(server.address) == right


REFERENCE = st.builds("the dog&#{};runs".format, st.integers(0, 200) | st.integers(0, 0x120000))
TEXTS = (st.text(max_size=60) | REFERENCE) | st.sampled_from(
    [
        "<script>alert(1)</script>",
        "\u202eabc",
        "👩‍👩‍👧 🇩🇪",
        "\ud800",
        "a" * 300,
        "\x00",
        "&lt;b",
        "<b",
        "\r\n \r",
        f"&#{'8' * 4500};a",
    ]
)


@settings(max_examples=30)
@given(
    text=TEXTS | st.lists(TEXTS, min_size=1, max_size=3),
    source=st.sampled_from(["en", "auto"]),
    form=st.sampled_from(["text", "html"]),
)
def test_no_text_breaks_it(server, text, source, form):
    body = json.dumps({"q": text, "source": source, "target": "fr", "format": form})
    answer = server.client.post(
        "/translate", content=body, headers={"content-type": "application/json"}
    )
    assert answer.status_code in (200, 400), answer.text
    if answer.status_code == 200:
        found = answer.json()["translatedText"]
        assert isinstance(found, list) == isinstance(text, list)
        assert not isinstance(text, list) or len(found) == len(text)
    else:
        assert "\ud800" in "".join(text), answer.text


def test_ten_thousand_characters_come_back_with_their_layout(server, right):
    text = "".join(f"{'  ' * (k % 3)}{SENTENCE}{' ' * (k % 2)}\n" for k in range(400))[:10_000]
    found = translated(server.address, text)
    assert found.count("\n") == text.count("\n")
    lines = zip(text.splitlines()[:-1], found.splitlines()[:-1], strict=True)
    assert all(theirs == ours.replace(SENTENCE, right) for ours, theirs in lines)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"q"',
        b"{}",
        b'{"q": 1, "source": "en", "target": "fr"}',
        b'{"q": null, "source": "en", "target": "fr"}',
        b'{"q": [], "source": "en", "target": "fr"}',
        b'{"q": [["w"]], "source": "en", "target": "fr"}',
        b'{"q": {"a": 1}, "source": "en", "target": "fr"}',
        b'{"q": "w", "source": ["en"], "target": "fr"}',
        b'{"q": "w", "source": "en", "target": "fr", "alternatives": 1e400}',
        b'{"q": "w", "source": "en", "target": "fr", "alternatives": -1}',
        b'{"q": "w", "source": "en", "target": "fr", "format": "pdf"}',
        b'{"q": "\xff\xfe", "source": "en", "target": "fr"}',
        b'{"q": "\\ud800", "source": "en", "target": "fr"}',
        b"[" * 50_000,
        b'{"a":' * 10_000,
        b'{"q": "w", "source": "en", "target": "fr", "alternatives": ' + b"9" * 5000 + b"}",
        b"\x00" * 100,
        b"\x1f\x8b\x08\x00",
    ],
    ids=range(22),
)
def test_broken_and_wrong_bodies_are_told(server, right, content):
    for path in ("/translate", "/detect", "/v1/translate", "/v1/stream", "/v1/attend"):
        if path != "/translate" and b'"q": "w"' in content:
            continue
        headers = {"content-type": "application/json"}
        answer = server.client.post(path, content=content, headers=headers)
        assert 400 <= answer.status_code < 500, (path, answer.text)
        assert answer.json().keys() == {"error"}
    assert translated(server.address) == right


@pytest.mark.soak
def test_hostile_connections_harm_nobody_else(server, right):
    body = json.dumps({"q": SENTENCE, "source": "en", "target": "fr"}).encode()
    length = f"Content-Length: {len(body)}\r\n\r\n".encode()
    with others(server, right), ThreadPoolExecutor(16) as pool:
        slow = [
            pool.submit(sent, server, HEAD),  # no end of the headers
            pool.submit(sent, server, HEAD + b"Content-Length: 100\r\n\r\n{"),  # nor of the body
            pool.submit(sent, server),  # nothing at all
            pool.submit(drip, server),
        ]
        huge = pool.submit(sent, server, HEAD + b"Content-Length: 99999999999\r\n\r\n")
        half = pool.submit(sent, server, HEAD + b"Connection: close\r\n" + length, body, half=True)
        junk = [
            pool.submit(sent, server, part)
            for part in (
                b"\x16\x03\x01\x00\xa5\x01\x00\x00",
                b"GET /health HTTP/1.1\r\n" + b"X: " + b"y" * 200_000 + b"\r\n\r\n",
                b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
                HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
                HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
            )
        ]
        for one in slow:
            answer = one.result()
            assert answer == b"" or b" 408 " in answer, answer
        assert b" 413 " in huge.result()
        for one in junk:
            answer = one.result()
            assert answer == b"" or answer.split(b" ")[1].startswith(b"4"), answer
        # Who hangs up half is either answered or given up, never left.
        answer = half.result()
        assert answer == b"" or right.encode() in answer or b"\\u" in answer
    flood = [
        socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) for _ in range(90)
    ]
    with others(server, right) as answers:
        server.until(lambda: len(answers) >= 6)
    for one in flood:
        one.close()
    assert translated(server.address) == right


def drip(server):
    """Send a byte of the headers every now and then."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection:
        try:
            for place in range(len(HEAD)):
                connection.sendall(HEAD[place : place + 1])
                time.sleep(0.1)
        except OSError:
            return b""
        return connection.recv(1 << 16)
