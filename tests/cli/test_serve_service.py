"""`heedful serve` as a service: variables, passed sockets, models that are unloaded."""

import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from tests.conftest import _variables
from tests.support.serving import PATIENCE, serving

BODY = {"q": "the red dog sleeps", "source": "en", "target": "fr"}


class SocketService:
    """A server that has got a socket as systemd passes it."""

    def __init__(self, listener, manager, *args):
        words = [sys.executable, "-m", "heedful", "serve", *map(str, args), "--device", "cpu"]
        # LISTEN_PID must be the server's: the shell becomes the server.
        script = f'exec 3<&{listener.fileno()}; LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"'
        self.process = subprocess.Popen(
            ["bash", "-c", script, "bash", *words],
            pass_fds=[listener.fileno()],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env=_variables({"NOTIFY_SOCKET": manager.getsockname()}),
        )
        self.manager = manager

    def wait_for(self, state):
        assert self.manager.recv(100) == state, self.process.stderr.read()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        _, errors = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0, errors


@pytest.fixture
def manager(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as messages:
        messages.bind(str(tmp_path / "notify"))
        messages.settimeout(PATIENCE)
        yield messages


def test_a_restart_on_a_passed_socket_refuses_nobody(trained, manager):
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        answers, restarted, enough = [], threading.Event(), threading.Event()

        def request_on(_):
            after = 0
            while after < 3:
                with httpx2.Client(timeout=PATIENCE) as client:
                    answers.append(client.post(f"{address}/translate", json=BODY).status_code)
                if len(answers) > 8:
                    enough.set()
                after += restarted.is_set()

        first = SocketService(listener, manager, trained)
        first.wait_for(b"READY=1")
        with ThreadPoolExecutor(4) as pool:
            running = pool.map(request_on, range(4))
            assert enough.wait(PATIENCE)
            first.end()
            second = SocketService(listener, manager, trained)
            second.wait_for(b"STOPPING=1")  # of the first
            second.wait_for(b"READY=1")
            restarted.set()
            list(running)
        assert len(answers) > 20
        assert set(answers) == {200}
        second.end()


def test_options_are_read_from_variables(heedful_cli, zygote, trained):
    variables = {
        "HEEDFUL_SERVE_RUN": str(trained),
        "HEEDFUL_SERVE_MAX_CHARACTERS": "50",
        "HEEDFUL_SERVE_QUIET": "1",
        "HEEDFUL_SERVE_CORS": "https://a.example https://b.example",
        "HEEDFUL_SERVE_BEAM": "3",
    }
    before = zygote.environ
    zygote.environ = {**before, **variables}
    try:
        with serving(zygote, "--beam", 2) as server:
            settings = server.client.get("/frontend/settings").json()
            assert settings["charLimit"] == 50
            assert server.client.get("/v1/models").json()["models"][0]["beam"] == 2
            origin = {"Origin": "https://b.example"}
            allowed = server.client.get("/health", headers=origin).headers
            assert allowed["access-control-allow-origin"] == "https://b.example"
            assert server.log() == ""
    finally:
        zygote.environ = before
    for variable, value, message in (
        ("PORT", "http", "HEEDFUL_SERVE_PORT must be a whole number, but got 'http'"),
        ("API_KEYS", "", "HEEDFUL_SERVE_API_KEYS must name a file with keys, but is empty"),
        ("CORS", "example.com", "--cors must be an origin such as https://example.org"),
        ("MAX_LINE", "5", "HEEDFUL_SERVE_MAX_LINE has no effect, because no option reads it; did"),
    ):
        variables = {f"HEEDFUL_SERVE_{variable}": value}
        wrong = heedful_cli("serve", trained, "--host", "192.0.2.1", env=variables)
        assert wrong.returncode != 0
        assert message in wrong.stderr
    listed = heedful_cli("serve", "--help").stdout
    assert "HEEDFUL_SERVE_PORT" in listed
    assert "HEEDFUL_SERVE_UNLOAD_AFTER" in listed


def test_each_option_of_the_help_names_its_variable(heedful_cli):
    listed = heedful_cli("serve", "--help").stdout
    options = {
        word
        for line in listed.splitlines()
        for word in line.split()[:1]
        if word.startswith("--") and word != "--help"
    }
    assert len(options) > 20
    for option in options:
        assert f"HEEDFUL_SERVE_{option[2:].replace('-', '_').upper()}" in listed


def test_an_idle_model_is_unloaded_and_loaded_again(zygote, trained):
    with serving(zygote, trained, "--unload-after", "0.1s") as server:
        for _ in range(2):
            before = server.client.post("/translate", json=BODY)
            assert before.status_code == 200
            server.until(lambda: server.metric("heedful_models_loaded") == 0)
            # What needs no search leaves it where it is.
            assert server.client.get("/v1/models").json()["models"][0]["attention"] is True
            assert server.client.get("/languages").status_code == 200
            assert server.metric("heedful_models_loaded") == 0
        with ThreadPoolExecutor(4) as pool:
            several = list(pool.map(lambda _: server.client.post("/translate", json=BODY), "1234"))
        assert {answer.text for answer in several} == {before.text}
        assert "was loaded again" in server.log()


def test_what_is_wrong_is_said(heedful_cli, trained):
    done = heedful_cli("serve", trained, "--port", 0, "--unload-after", "soon")
    assert done.returncode == 2
    assert "--unload-after must be a time" in done.stderr
