"""The image of deploy/Dockerfile serves a run: its steps, without a daemon that runs containers."""

import signal
import socket
import subprocess
from pathlib import Path

from heedful.bench.random_run import make_random_run
from heedful.config.schema import RunConfig
from tests.support.dockerfile import Image
from tests.support.serving import PATIENCE

ROOT = Path(__file__).parents[2]
SMALL = {"model.d_model": 16, "model.d_ff": 32, "model.heads": 2, "search.max_length": "8"}


def test_the_image_is_built_and_serves(tmp_path):
    image = Image(ROOT / "deploy" / "Dockerfile", ROOT, tmp_path)
    (tmp_path / "run").mkdir()
    make_random_run(tmp_path / "run", RunConfig().with_settings(SMALL), 50)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    changes = {
        "HEEDFUL_SERVE_RUN": str(tmp_path / "run"),
        "HEEDFUL_SERVE_PORT": port,
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    program = image.stage.root / "python/bin" / image.command[0]
    server = subprocess.Popen(
        [program, *image.command[1:]],
        cwd=image.stage.folder,
        env=image.stage.environ(**changes),
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    try:
        lines = iter(server.stdout.readline, "")
        assert next(line for line in lines if line.startswith("http")).strip().endswith(port)
        image.stage.run(image.health, HEEDFUL_SERVE_PORT=port)
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=PATIENCE)
    assert server.returncode == 0
