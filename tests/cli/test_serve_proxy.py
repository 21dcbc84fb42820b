"""`heedful serve` behind proxies: which client address is trusted, and which host allowed."""

import json
import socket

import httpx2
import pytest

from tests.support.serving import PATIENCE, serving


@pytest.fixture(scope="module")
def local(zygote, trained):
    with serving(zygote, trained) as started:
        yield started


BODY = {"q": "the dog", "source": "EN", "target": "fr-CA", "format": None, "api_key": None}


def statuses(server, addresses):
    return [
        server.client.post(
            "/detect", json=BODY, headers=[("X-Forwarded-For", part) for part in several]
        ).status_code
        for several in addresses
    ]


def file_address(server, client):
    """The address of a translated file that the server returns behind a proxy with TLS."""
    told = {"X-Forwarded-Proto": "https", "X-Forwarded-For": client, "Host": "translate.example"}
    form = {"source": "en-GB", "target": "FR"}
    sent = {"file": ("a.txt", "the dog")}
    answer = server.client.post("/translate_file", data=form, files=sent, headers=told)
    return answer.json().get("translatedFileUrl", "http://")


def test_only_a_trusted_proxy_says_who_the_client_is(zygote, trained):
    proxied = ["--trusted-proxies", "127.0.0.0/8,192.0.2.7", "--allow-host", "translate.example"]
    with serving(zygote, trained, "--per-minute", 1, *proxied) as server:
        asked = [["198.51.100.1"], ["198.51.100.2"], ["198.51.100.1"]]
        assert statuses(server, asked) == [200, 200, 429]
        # The right-most address that is not a proxy: what stands before it the client wrote itself.
        asked = [["203.0.113.9, 198.51.100.1, 192.0.2.7"], ["203.0.113.8", "198.51.100.2"]]
        assert statuses(server, asked) == [429, 429]
        assert file_address(server, "198.51.100.3").startswith("https://translate.example/")


def test_where_no_proxy_is_trusted_no_header_counts(zygote, trained):
    named = ["--allow-host", "other.example", "--allow-host", "translate.example"]
    with serving(zygote, trained, "--per-minute", 1, *named) as server:
        assert statuses(server, [["198.51.100.1"], ["198.51.100.2"], []]) == [200, 429, 429]
        assert "https" not in file_address(server, "198.51.100.3")


@pytest.mark.parametrize("path", ["/", "/health", "/v1/models", "/metrics", "/nowhere"])
def test_a_site_whose_name_points_to_this_machine_reaches_nothing(local, path):
    answer = local.client.get(path, headers={"Host": f"rebound.example:{local.port}"})
    assert answer.status_code == 421
    assert "--allow-host" in answer.json()["error"]
    assert "'rebound.example'" in answer.json()["error"]
    assert local.client.get(path, headers={"Host": "localhost"}).status_code == (
        404 if path == "/nowhere" else 200
    )


def test_no_text_of_a_site_whose_name_points_to_this_machine_is_translated(local):
    before = local.metric("heedful_sentences_total")
    headers = {"Host": "rebound.example", "X-Forwarded-Host": "localhost"}
    assert local.client.post("/translate", json=BODY, headers=headers).status_code == 421
    assert local.metric("heedful_sentences_total") == before


def test_a_public_server_answers_to_any_host(zygote, trained):
    with serving(zygote, trained, "--host", "0.0.0.0") as server:
        address = f"http://127.0.0.1:{server.port}/health"
        assert httpx2.get(address, headers={"Host": "any.example"}).status_code == 200


def test_a_request_of_two_lengths_ends_its_connection(local):
    body = json.dumps({"q": "the dog", "source": "en"}).encode()
    content = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    smuggled = b"GET /languages HTTP/1.1\r\nHost: localhost\r\n\r\n"
    head = (
        "POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", local.port), timeout=PATIENCE) as connection:
        connection.sendall(head.encode() + content + smuggled)
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    start, _, told = answer.partition(b"\r\n\r\n")
    assert start.startswith(b"HTTP/1.1 400 ")
    assert b"\r\nconnection: close" in start.lower()
    assert "both" in json.loads(told)["error"]
