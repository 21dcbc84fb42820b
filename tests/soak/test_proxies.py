"""`heedful serve` behind nginx and Caddy, with the configurations that the documentation gives."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx2
import pytest
from benchmarks.serving.measure import make_run

from heedful.bench.random_run import random_lines
from tests.conftest import ROOT
from tests.support.serving import serving

PAGE = ROOT / "docs" / "howto" / "behind-a-proxy.md"
LINES = random_lines(200, 20, 100, seed=5)
PATHS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return f"en:de={make_run(tmp_path_factory.mktemp('tiny') / 'run', 'tiny', 200)}"


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def nginx(given, folder, port):
    paths = "".join(f"{name}_temp_path {folder / name};\n" for name in PATHS)
    text = given.replace("listen 80;", f"listen 127.0.0.1:{port};")
    # Workers of a root process would else be somebody who may not write here.
    user = "user root;" if folder.owner() == "root" else ""
    whole = f"{user} daemon off; pid {folder}/pid; error_log {folder}/log; events {{}}\n"
    (folder / "nginx.conf").write_text(f"{whole}http {{\n access_log off;\n{paths}{text}}}\n")
    return ["nginx", "-p", folder, "-c", folder / "nginx.conf"]


def caddy(given, folder, port):
    text = given.replace(":80\n", f"http://:{port}\n", 1)
    site, _, rules = text.partition("\n")
    whole = f"{{\n\tadmin off\n}}\n{site} {{\n\tbind 127.0.0.1\n{rules}}}\n"
    (folder / "Caddyfile").write_text(whole)
    return ["caddy", "run", "--adapter", "caddyfile", "--config", folder / "Caddyfile"]


@contextmanager
def proxied(proxy, server, folder):
    """Run a proxy in front of a server; give its address."""
    name = proxy.__name__
    assert shutil.which(name), f"{name} must be there (Debian: apt-get install {name})"
    (given,) = re.findall(rf"```{name}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert given.count("127.0.0.1:5000") == 1
    port = free_port()
    command = proxy(given.replace("127.0.0.1:5000", f"127.0.0.1:{server.port}"), folder, port)
    log = folder / "output"
    with log.open("wb") as output:
        # Caddy keeps its state there.
        kept = {**os.environ, "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
        process = subprocess.Popen([*map(str, command)], stdout=output, stderr=output, env=kept)
    address = f"http://127.0.0.1:{port}"

    def answers():
        assert process.poll() is None, log.read_text()
        try:
            return httpx2.get(f"{address}/health", timeout=240).status_code == 200
        except httpx2.ConnectError:
            return False

    try:
        server.until(answers)
        yield address
    finally:
        process.terminate()
        process.wait(60)


def client(address, number):
    """A client with another address of this machine."""
    transport = httpx2.HTTPTransport(local_address=f"127.0.0.{number}")
    return httpx2.Client(base_url=address, transport=transport, timeout=240)


def body(texts, **more):
    return {"q": texts, "source": "en", "target": "de", **more}


@pytest.mark.parametrize("proxy", [nginx, caddy])
def test_behind_a_proxy_as_documented(zygote, run, tmp_path, proxy):
    options = ["--trusted-proxies", "127.0.0.1", "--per-minute", 5, "--batch-tokens", 1]
    options += ["--allow-host", "translate.example.org"]
    with (
        serving(zygote, run, *options) as server,
        proxied(proxy, server, tmp_path) as address,
        client(address, 2) as first,
        client(address, 3) as second,
        client(address, 4) as third,
        client(address, 5) as fourth,
    ):
        # The same answers, and the page with what it needs.
        asked = body(LINES[:3])
        assert (
            first.post("/translate", json=asked).json()
            == server.client.post("/translate", json=asked).json()
        )
        assert "script-src 'self'" in first.get("/").headers["content-security-policy"]
        file = {"file": ("a.txt", "w1 w2")}
        found = first.post("/translate_file", data=body(""), files=file).json()
        assert found["translatedFileUrl"].startswith(f"{address}/download_file/")
        assert first.get(found["translatedFileUrl"]).status_code == 200

        # The name of the site, but of no other.
        for host, status in (("translate.example.org", 200), ("rebound.example", 421)):
            assert first.get("/health", headers={"Host": host}).status_code == status

        # Each client is counted alone, whatever it says of itself.
        told = [{"X-Forwarded-For": f"198.51.100.{number}"} for number in range(10)]
        answers = [second.post("/detect", json=body("w1"), headers=one) for one in told]
        assert {answer.status_code for answer in answers} == {200, 429}
        assert third.post("/detect", json=body("w1")).status_code == 200

        # A stream comes line by line.
        before = server.metric("heedful_sentences_total")
        with third.stream("POST", "/v1/stream", json=body("\n".join(LINES))) as answer:
            lines = answer.iter_lines()
            assert json.loads(next(lines))["event"] in ("step", "sentence")
            assert server.metric("heedful_sentences_total") < before + len(LINES)
            assert json.loads([*lines][-1])["event"] == "end"

        # What is too large is refused, by nginx itself or by the server.
        assert third.post("/translate", json=body("a" * 1_500_000)).status_code == 413

        # What has begun is finished at a stop; afterwards the proxy has nobody to ask.
        with ThreadPoolExecutor(1) as pool:
            waits = pool.submit(fourth.post, "/translate", json=body(LINES))
            server.until(lambda: waits.done() or server.metric("heedful_queue_sentences") > 0)
            server.signal(signal.SIGTERM)
            answer = waits.result()
        assert answer.status_code == 200
        assert len(answer.json()["translatedText"]) == len(LINES)
        assert server.started.wait(60) == 0
        assert third.get("/languages").status_code in (502, 503)


@pytest.mark.parametrize("proxy", [nginx, caddy])
def test_slow_clients_wait_at_the_proxy(zygote, run, tmp_path, proxy):
    with (
        serving(zygote, run, "--trusted-proxies", "127.0.0.1") as server,
        proxied(proxy, server, tmp_path) as address,
    ):
        port = int(address.rpartition(":")[2])
        head = b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n"
        held = [socket.create_connection(("127.0.0.1", port), timeout=240) for _ in range(30)]
        for one in held:
            one.sendall(head)  # whose end never comes
        assert httpx2.post(f"{address}/translate", json=body("w1"), timeout=240).status_code == 200
        assert server.metric("heedful_connections_open") < 10
        for one in held:
            one.close()
