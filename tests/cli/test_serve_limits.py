"""`heedful serve`: its limits, and misbehaving clients."""

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx2
import pytest

from heedful.bench.random_run import make_random_run, random_lines
from heedful.config.schema import RunConfig
from tests.support.serving import PATIENCE, serving

ANIMALS = ("dog", "cat", "bird", "horse", "cow")
LINES = random_lines(200, 20, 60, seed=3)


@pytest.fixture(scope="module")
def slow_run(tmp_path_factory):
    """A model with random weights, which hardly ever ends a sentence before its limit."""
    folder = tmp_path_factory.mktemp("slow") / "run"
    folder.mkdir()
    small = {"model.d_model": 32, "model.d_ff": 64, "model.heads": 4, "search.max_length": "30"}
    layers = {"model.encoder_layers": 2, "model.decoder_layers": 2}
    make_random_run(folder, RunConfig().with_settings(small | layers), 200)
    return f"en:de={folder}"


@pytest.fixture(scope="module")
def server(zygote, slow_run):
    """Batches of one sentence, so that a queue is soon long."""
    limits = [
        "--max-queue", 20, "--batch-tokens", 1, "--read-seconds", 4, "--max-connections", 12,
        "--max-body", 20_000, "--idle-seconds", 6, "--max-seconds", 100,
    ]  # fmt: skip
    with serving(zygote, slow_run, *limits) as started:
        yield started


def body(texts, **more):
    return {"q": texts, "source": "en", "target": "de", **more}


def raw(server, *parts):
    """Send raw bytes; return everything received until the connection is closed."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection:
        for part in parts:
            connection.sendall(part)
        found = b""
        try:
            while part := connection.recv(1 << 16):
                found += part
        except ConnectionResetError:
            pass
        return found


def told(answer):
    """Status and body of a raw answer."""
    head, _, content = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(content)


def test_a_full_queue_is_answered_with_429_and_a_time(server):
    answers = []

    def asked_at_once():
        with ThreadPoolExecutor(8) as pool:
            asked = [
                pool.submit(server.client.post, "/translate", json=body(LINES[k : k + 6]))
                for k in range(0, 48, 6)
            ]
            answers.extend(one.result() for one in asked)
        return len({answer.status_code for answer in answers}) > 1

    server.until(asked_at_once)  # as a rule so the first time
    assert {answer.status_code for answer in answers} == {200, 429}
    for answer in answers:
        if answer.status_code == 429:
            assert 1 <= int(answer.headers["retry-after"]) <= 60
            assert "20 sentences" in answer.json()["error"]
    assert server.client.post("/translate", json=body("w1 w2")).status_code == 200


def test_a_request_that_is_longer_than_the_queue_is_served_when_it_is_empty(server):
    server.until(lambda: server.metric("heedful_queue_sentences") == 0)
    answer = server.client.post("/translate", json=body(["w1"] * 30))
    assert answer.status_code == 200


def test_sentences_of_a_client_that_has_gone_are_not_translated(server):
    server.until(lambda: server.metric("heedful_queue_sentences") == 0)
    before = server.metric("heedful_sentences_total")
    gone = server.metric("heedful_clients_gone_total")
    content = json.dumps(body(LINES * 3)).encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection:
        head = f"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n"
        connection.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + content)
        server.until(lambda: server.metric("heedful_queue_sentences") > 0)
    server.until(lambda: server.metric("heedful_clients_gone_total") > gone)
    server.until(lambda: server.metric("heedful_queue_sentences") == 0)
    assert server.metric("heedful_sentences_total") < before + 150


def test_a_stream_that_nobody_reads_any_more_ends(server):
    before = server.metric("heedful_sentences_total")
    with httpx2.stream(
        "POST", f"{server.address}/v1/stream", json=body("\n".join(LINES * 3)), timeout=PATIENCE
    ) as answer:
        next(answer.iter_lines())
    server.until(lambda: server.metric("heedful_queue_sentences") == 0)
    assert server.metric("heedful_sentences_total") < before + 150


def test_a_body_that_is_too_large_is_refused_before_it_has_come(server):
    head = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    status, content = told(raw(server, head + b"Content-Length: 20001\r\n\r\n"))
    assert status == 413
    assert "20,000 bytes" in content["error"]
    chunk = b"4e20\r\n" + b" " * 20_000 + b"\r\n"
    chunked = head + b"Transfer-Encoding: chunked\r\n\r\n"
    assert told(raw(server, chunked, chunk, chunk))[0] == 413


def test_who_sends_on_after_a_refusal_can_still_read_it(server):
    head = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    status, content = told(raw(server, head + b"Content-Length: 8000000\r\n\r\n", b" " * 8_000_000))
    assert status == 413
    assert "20,000 bytes" in content["error"]


def test_who_sends_too_slowly_is_told_and_closed(server):
    head = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    # Headers without an end, a body without an end, nothing at all.
    with ThreadPoolExecutor(3) as pool:
        sent = (head, head + b"Content-Length: 100\r\n\r\n{", b"")
        answers = [pool.submit(raw, server, part) for part in sent]
    for answer in answers:
        status, content = told(answer.result())
        assert status == 408
        assert "within 4 s" in content["error"]


def test_the_second_request_of_a_connection_has_its_own_clock(server):
    get = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection:
        connection.sendall(get + b"\r\n")
        first = connection.recv(1 << 16)
        assert first.startswith(b"HTTP/1.1 200")
        while not first.endswith(b"}"):
            first += connection.recv(1 << 16)
        connection.sendall(get)
        status, content = told(b"".join(iter(lambda: connection.recv(1 << 16), b"")))
    assert status == 408
    assert "within 4 s" in content["error"]


def test_what_is_no_http_is_told_in_the_same_form(server):
    for junk in (b"\x16\x03\x01\x02\x00\r\n\r\n", b"GET /nowhere HTTP/9.9\r\n\r\n", b"A" * 100_000):
        answer = raw(server, junk)
        assert answer == b"" or 400 <= told(answer)[0] <= 505


def test_a_body_that_cannot_be_read_is_told_and_no_failure(server):
    head = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    status, content = told(raw(server, head + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n"))
    assert (status, content.keys()) == (400, {"error"})
    before = server.log().count(" 499 ")
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as gone:
        gone.sendall(head + b"Content-Length: 9\r\n\r\n{")
    server.until(lambda: server.log().count(" 499 ") > before)
    assert "failed" not in server.log()


def test_too_many_connections_are_closed_and_the_others_go_on(server):
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(server.client.post, "/translate", json=body(LINES[:10]))
        server.until(lambda: asked.done() or server.metric("heedful_queue_sentences") > 0)
        address = ("127.0.0.1", server.port)
        held = [socket.create_connection(address, timeout=PATIENCE) for _ in range(20)]
        refused = [one for one in held[11:] if b"503" in one.recv(100)]
        assert refused
        for one in held:
            one.close()
        assert asked.result().status_code == 200


def test_an_answer_that_is_not_taken_is_given_up(server):
    ask = b"GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with socket.socket() as lazy:
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.connect(("127.0.0.1", server.port))
        lazy.sendall(ask)
        assert lazy.recv(1) == b"H"
        server.until(lambda: server.metric("heedful_connections_open") == 1)


def test_sixty_clients_that_never_read_do_not_hold_another(zygote, slow_run):
    wish = json.dumps(body("\n".join(LINES[:20]), attention=True)).encode()
    head = f"POST /v1/stream HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(wish)}\r\n\r\n"
    patient = ["--read-seconds", 100, "--max-seconds", 100, "--stop-seconds", 1]
    with serving(zygote, slow_run, *patient) as server, ExitStack() as held:
        for _ in range(60):
            lazy = held.enter_context(socket.socket())
            lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            lazy.connect(("127.0.0.1", server.port))
            lazy.sendall(head.encode() + wish)
        server.until(lambda: server.metric("heedful_requests_open") >= 60)
        done = server.metric("heedful_sentences_total")
        assert server.client.post("/translate", json=body("w1 w2")).status_code == 200
        # Neither was the work of the others done first, nor had they gone.
        assert server.metric("heedful_sentences_total") - done < 600
        assert server.metric("heedful_connections_open") >= 60


def test_an_answer_has_its_time(zygote, slow_run):
    # more than the fastest machine translates in its time
    many, short = LINES * 40, ["--max-seconds", 0.5, "--batch-tokens", 1]
    large = ["--max-lines", len(many), "--max-characters", 2_000_000, "--max-queue", len(many)]
    with serving(zygote, slow_run, *short, *large) as server:
        before = server.metric("heedful_sentences_total")
        answer = server.client.post("/translate", json=body(many))
        assert answer.status_code == 503
        assert "0.5 s" in answer.json()["error"]
        assert "retry-after" not in answer.headers  # it would take too long again
        server.until(lambda: server.metric("heedful_queue_sentences") == 0)
        assert server.metric("heedful_sentences_total") < before + len(many) - 50
        streamed = server.client.post("/v1/stream", json=body("\n".join(many)))
        last = json.loads(streamed.text.splitlines()[-1])
        assert streamed.status_code == 503 or last["event"] == "error"


def test_requests_of_many_clients_share_batches(zygote, trained):
    lines = [f"{size} {animal}" for size in ("the big", "a small") for animal in ANIMALS]
    asked = [{"q": line, "source": "en", "split": False} for line in lines]
    with serving(zygote, trained, "--gather", 100, "--precision", "fp32") as server:

        def score(one):
            answer = server.client.post("/v1/translate", json=one)
            return answer.json()["translations"][0]["score"]

        alone = [score(one) for one in asked]

        def share_batches():
            before = server.metric("heedful_batch_sentences_count")
            with ThreadPoolExecutor(len(asked)) as pool:
                together = list(pool.map(score, asked))
            assert together == pytest.approx(alone, abs=1e-3)
            return server.metric("heedful_batch_sentences_count") - before < len(asked)

        server.until(share_batches)  # the first time, unless the machine is very busy


def test_keys_are_needed_and_can_be_changed(zygote, slow_run, tmp_path):
    keys = tmp_path / "keys.txt"
    keys.write_text("# whose they are\nopen-sesame a friend\nother\n", encoding="utf-8")
    with serving(zygote, slow_run, "--api-keys", keys, "--per-minute", 6) as server:
        post, ask = server.client.post, body("w1")
        assert server.client.get("/frontend/settings").json()["keyRequired"] is True
        assert server.client.get("/languages").status_code == 200
        for wrong in ({}, {"api_key": "no"}, {"api_key": "a"}):
            answer = post("/translate", json={**ask, **wrong})
            assert answer.status_code == 403
            assert answer.json().keys() == {"error"}
        assert server.client.get("/metrics").status_code == 403
        bearer = {"Authorization": "Bearer open-sesame"}
        assert server.client.get("/metrics", headers=bearer).status_code == 200
        assert post("/v1/translate", json=ask, headers=bearer).status_code == 200
        right = {**ask, "api_key": "open-sesame"}
        statuses = [post("/translate", json=right).status_code for _ in range(5)]
        assert statuses == [200] * 5
        server.until(lambda: post("/translate", json=right).status_code == 429)
        assert post("/translate", json={**ask, "api_key": "other"}).status_code == 200
        assert "open-sesame" not in server.log()


def test_only_named_origins_may_ask(zygote, slow_run):
    named = "http://a.example"
    with serving(zygote, slow_run, "--cors", named) as server:
        for origin, allowed in ((named, named), ("http://b.example", None)):
            headers = server.client.get("/languages", headers={"Origin": origin}).headers
            assert headers.get("access-control-allow-origin") == allowed
        refused = server.client.post(
            "/translate", content=b" " * (1 << 21), headers={"Origin": named}
        )
        assert refused.status_code == 413
        assert refused.headers["access-control-allow-origin"] == named
