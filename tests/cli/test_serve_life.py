"""`heedful serve`: start, signals and end."""

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from heedful.bench.random_run import make_random_run, random_lines
from heedful.config.schema import RunConfig
from heedful.exchange.convert import export_model
from heedful.exchange.formats import WriteOptions
from tests.support.serving import PATIENCE, Serving, serving
from tests.support.weights import spoil

SOURCE = Path(__file__).parents[2] / "src"
LINES = random_lines(100, 12, 20, seed=4)
SMALL = {
    "model.d_model": 32,
    "model.d_ff": 64,
    "model.heads": 4,
    "model.encoder_layers": 2,
    "model.decoder_layers": 2,
    "search.max_length": "30",
}
WITHOUT = """
import sys
for name in sys.argv.pop(1).split(","):
    sys.modules[name] = None
from heedful.cli.main import main
main()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run with random weights, and its exported folder."""
    folder = tmp_path_factory.mktemp("life")
    (folder / "run").mkdir()
    make_random_run(folder / "run", RunConfig().with_settings(SMALL), 100)
    options = WriteOptions("", 60)
    export_model(
        folder / "run", "ctranslate2", folder / "ct2", options=options, sentences=LINES[:2]
    )
    return folder


def body(texts, **more):
    return {"q": texts, "source": "en", "target": "de", **more}


def command(missing, *args):
    """The command in a process where some packages cannot be imported."""
    return subprocess.Popen(
        [sys.executable, "-c", WITHOUT, missing, *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"},
    )


def begun(server, content):
    """Send all of a request but its last byte."""
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
    head = "POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    connection.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content[:-1])
    return connection


def finished(connection, content):
    """Send the last byte, and give the status and the body of the answer."""
    with connection:
        connection.sendall(content[-1:])
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    head, _, told = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(told)


def test_told_to_stop_in_the_middle_it_finishes_what_it_began(zygote, folder):
    content = json.dumps(body(LINES[:10])).encode()
    patient = ["--batch-tokens", 64, "--read-seconds", 100, "--stop-seconds", 100]
    with (
        serving(zygote, f"en:de={folder / 'run'}", *patient) as server,
        httpx2.Client(base_url=server.address, timeout=PATIENCE) as late,
    ):
        assert late.get("/health").status_code == 200
        connections = [begun(server, content) for _ in range(8)]
        server.until(lambda: server.metric("heedful_requests_open") == 9)  # with this one
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(server.client.post, "/translate", json=body(LINES))
            server.until(lambda: asked.done() or server.metric("heedful_queue_sentences") > 0)
            server.signal(signal.SIGTERM)
            server.until(lambda: "stopping" in server.log())
            health = late.get("/health")
            refused = late.post("/translate", json=body("w1"))
            answers = [finished(connection, content) for connection in connections]
            running = asked.result()
        assert health.status_code == 503
        assert health.json() == {"status": "stopping"}
        assert refused.status_code == 503
        assert refused.headers["connection"] == "close"
        assert refused.json().keys() == {"error"}
        assert running.status_code == 200
        assert len(running.json()["translatedText"]) == len(LINES)
        assert [status for status, _ in answers] == [200] * 8
        assert all(len(told["translatedText"]) == 10 for _, told in answers)
        assert server.started.wait(PATIENCE) == 0
        with pytest.raises(httpx2.ConnectError):
            httpx2.get(f"{server.address}/health")


def test_a_stop_has_its_time(zygote, folder):
    options = ["--batch-tokens", 1, "--stop-seconds", 0.05]
    with serving(zygote, f"en:de={folder / 'run'}", *options) as server:
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(server.client.post, "/translate", json=body(LINES * 20))
            server.until(lambda: server.metric("heedful_queue_sentences") > 0)
            server.signal(signal.SIGTERM)
            answer = asked.result()
        assert answer.status_code == 503
        assert "stopping" in answer.json()["error"]
        assert server.started.wait(PATIENCE) == 0


def test_whom_the_kernel_has_accepted_is_answered_at_a_stop(zygote, folder):
    request = b"GET /languages HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    options = ["--read-seconds", 100, "--stop-seconds", 100]
    with serving(zygote, f"en:de={folder / 'run'}", *options) as server:
        half = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
        half.sendall(request[:-2])
        server.until(lambda: server.metric("heedful_connections_open") == 2)
        server.signal(signal.SIGSTOP)
        queued = [socket.create_connection(("127.0.0.1", server.port), PATIENCE) for _ in range(20)]
        for one in queued:
            one.sendall(request)
        server.signal(signal.SIGTERM)
        server.signal(signal.SIGCONT)
        answers = [b"".join(iter(lambda: one.recv(1 << 16), b"")) for one in queued]  # noqa: B023
        server.until(lambda: "stopping" in server.log())
        half.sendall(request[-2:])
        answers.append(b"".join(iter(lambda: half.recv(1 << 16), b"")))
        assert {answer.split(b" ")[1] for answer in answers} <= {b"200", b"503"}
        assert answers[-1].endswith(b"}")
        assert server.started.wait(PATIENCE) == 0
    for one in (*queued, half):
        one.close()


def test_a_reload_takes_new_models_and_loses_no_request(zygote, folder, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(folder / "run", run)
    other = tmp_path / "other"
    other.mkdir()
    make_random_run(other, RunConfig().with_settings(SMALL | {"search.beam": 2}), 100)
    with serving(zygote, f"en:de={run}", "--batch-tokens", 64) as server:
        asked, stop = [], time.monotonic() + PATIENCE
        with ThreadPoolExecutor(4) as pool:

            def ask_on(_):
                while not server.metric("heedful_reloads_total") and time.monotonic() < stop:
                    answer = server.client.post("/translate", json=body(LINES[:3]))
                    asked.append(answer.status_code)

            running = pool.map(ask_on, range(4))
            server.until(lambda: len(asked) > 4)
            shutil.rmtree(run)
            shutil.copytree(other, run)
            server.signal(signal.SIGHUP)
            list(running)
        assert set(asked) == {200}
        assert server.client.get("/v1/models").json()["models"][0]["beam"] == 2
        assert "reloaded" in server.log()


def test_what_cannot_be_reloaded_leaves_the_old_in_place(zygote, folder, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(folder / "run", run)
    with serving(zygote, f"en:de={run}") as server:
        before = server.client.post("/translate", json=body(LINES[0])).json()
        (checkpoint,) = (run / "checkpoints").iterdir()
        spoil(checkpoint)
        server.signal(signal.SIGHUP)
        server.until(lambda: "holds NaN or infinity" in server.log())
        assert server.client.post("/translate", json=body(LINES[0])).json() == before
        (run / "config.json").unlink()
        server.signal(signal.SIGHUP)
        server.until(lambda: "config.json" in server.log())
        assert server.log().count("nothing was reloaded") == 2
        assert server.client.post("/translate", json=body(LINES[0])).json() == before
        assert server.metric("heedful_reloads_total") == 2


def test_a_keys_file_that_cannot_be_read_leaves_the_models_in_place(zygote, folder, tmp_path):
    run, keys = tmp_path / "run", tmp_path / "keys.txt"
    shutil.copytree(folder / "run", run)
    keys.write_text("secret\n", "utf-8")
    header = {"Authorization": "Bearer secret"}
    with serving(zygote, f"en:de={run}", "--api-keys", keys) as server:
        shutil.rmtree(run)
        run.mkdir()
        make_random_run(run, RunConfig().with_settings(SMALL | {"search.beam": 2}), 100)
        keys.unlink()
        server.signal(signal.SIGHUP)
        server.until(lambda: "nothing was reloaded" in server.log())
        answer = server.client.post("/translate", json=body(LINES[0]), headers=header)
        assert answer.status_code == 200
        assert server.client.get("/v1/models").json()["models"][0]["beam"] != 2
        keys.write_text("other\n", "utf-8")
        server.signal(signal.SIGHUP)
        server.until(lambda: "models, keys and terms were reloaded" in server.log())
        answer = server.client.post("/translate", json=body(LINES[0]), headers=header)
        assert answer.status_code == 403
        assert server.client.get("/v1/models").json()["models"][0]["beam"] == 2


def test_several_models_are_told_apart(zygote, folder, trained):
    runs = [f"en:de={folder / 'run'}", trained]
    with serving(zygote, *runs) as server:
        models = server.client.get("/v1/models").json()["models"]
        assert [(one["source"], one["target"]) for one in models] == [("en", "de"), ("en", "fr")]
        assert [one["name"] for one in models] == ["run", "run-2"]
        languages = server.client.get("/languages").json()
        assert languages == [{"code": "en", "name": "English", "targets": ["de", "fr"]}]
        for target, name in (("de", "run"), ("fr", "run-2")):
            asked = {"q": "w1 w2", "source": "en", "target": target}
            assert server.client.post("/v1/translate", json=asked).json()["model"] == name
        asked = {"q": "w1 w2", "source": "en", "target": "de", "model": "run-2"}
        assert server.client.post("/v1/translate", json=asked).status_code == 400


def test_exported_models_are_served_without_torch(folder):
    arguments = ["serve", f"en:de={folder / 'ct2'}", "--engine", "ctranslate2", "--port", "0"]
    process = command("torch", *arguments, "--threads", "1")
    try:
        process.stdout.readline()
        address = process.stdout.readline().strip()
        with httpx2.Client(base_url=address, timeout=PATIENCE) as client:
            model = client.get("/v1/models").json()["models"][0]
            assert (model["engine"], model["attention"]) == ("ctranslate2", False)
            asked = body(LINES[:2], probabilities=True, n_best=2)
            found = client.post("/v1/translate", json=asked).json()["translations"]
            assert len(found) == 2
            assert all(0 < piece["probability"] <= 1 for piece in found[0]["tokens"])
            refused = client.post("/v1/translate", json=body("w1", alignments=True))
            assert refused.status_code == 400
            assert "the engine ctranslate2" in refused.json()["error"]
            streamed = client.post("/v1/stream", json=body("w1 w2"))
            events = [json.loads(line)["event"] for line in streamed.text.splitlines()]
            assert events == ["sentence", "end"]
            html = client.post("/translate", json=body("<b>w1</b> w2", format="html")).json()
            assert html["translatedText"].count("<b>") == 1
    finally:
        process.terminate()
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors


def test_a_missing_extra_is_told_with_what_installs_it(folder):
    process = command("fastapi,uvicorn", "serve", f"en:de={folder / 'run'}")
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert "fastapi" in errors
    assert "pip install 'heedful[serve]'" in errors


def test_what_is_wrong_with_the_command_is_told(heedful_cli, folder, trained, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        wrong = {
            (tmp_path / "nothing",): "nothing",
            (f"en=de={folder / 'run'}",): "en:fr=runs/mine",
            (f"en:de,en:fr={folder / 'run'}",): "one direction",
            (trained, "--port", port): "--port",
            (trained, "--api-keys", tmp_path / "none.txt"): "--api-keys",
            (trained, "--engine", "ctranslate2"): "export the run first",
            (trained, "--engine", "bolt"): "--engine",
        }
        for arguments, told in wrong.items():
            done = heedful_cli("serve", "--port", 0, "--device", "cpu", *arguments)
            assert done.returncode == 2, done.stderr
            assert told in done.stderr
            assert "Traceback" not in done.stderr
            assert done.stdout == ""


def test_of_two_servers_started_at_once_one_is_refused_before_it_loads(zygote, trained):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ("serve", trained, "--port", port, "--device", "cpu")
    both = [zygote.start(*words) for _ in range(2)]
    try:
        (refused, *_), _, _ = select.select(both, [], [], PATIENCE)
        both.remove(refused)
        output, errors = refused.communicate(timeout=PATIENCE)
        assert refused.returncode == 2
        assert "--host and --port must be a free address" in errors
        assert f"but 127.0.0.1 and {port} are not" in errors
        assert output == ""
        with Serving(both[0]).client as client:
            assert client.get("/health").status_code == 200
    finally:
        for started in both:
            started.send_signal(signal.SIGTERM)
            started.communicate(timeout=PATIENCE)


def test_a_signal_at_the_moment_the_address_is_printed_ends_a_server_in_order(zygote, trained):
    started = zygote.start("serve", trained, "--port", 0, "--device", "cpu")
    server = Serving(started)  # has read the address, and nothing more
    server.signal(signal.SIGTERM)
    _, errors = started.communicate(timeout=PATIENCE)
    assert started.returncode == 0, errors
    assert "stopping; requests being answered: 0" in errors


def test_the_address_is_printed_for_a_program_to_read(zygote, trained):
    with serving(zygote, trained, "--host", "localhost", "--quiet") as server:
        assert isinstance(server, Serving)
        lines = server.started.written(1).splitlines()
        assert lines[0] == "run: en to fr, torch"
        assert lines[1] == server.address
        server.client.get("/health")
        assert server.log() == ""
