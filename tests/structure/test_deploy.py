"""Files that run the server as a service."""

import configparser
import inspect
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.dockerfile import instructions

from heedful.cli.serve import serve

DEPLOY = Path(__file__).parents[2] / "deploy"
UNITS = ("heedful.service", "heedful.socket")
VARIABLES = {f"HEEDFUL_SERVE_{name.upper()}" for name in inspect.signature(serve).parameters}


def read_unit(name):
    unit = configparser.ConfigParser(interpolation=None, strict=True)
    unit.optionxform = str
    unit.read_string((DEPLOY / name).read_text(encoding="utf-8"))
    return unit


def test_the_service_is_told_when_it_is_ready_and_gets_its_socket():
    service, listener = map(read_unit, UNITS)
    assert service["Service"]["Type"] == "notify"
    assert service["Unit"]["Requires"] == "heedful.socket"
    assert service["Service"]["ExecStart"].endswith("/heedful serve")
    assert listener["Socket"]["ListenStream"].endswith(":5000")
    default = inspect.signature(serve).parameters["stop_seconds"].default
    assert float(service["Service"]["TimeoutStopSec"]) > default


@pytest.mark.parametrize("unit", UNITS)
def test_systemd_knows_every_line_of_a_unit(unit, tmp_path):
    program = shutil.which("systemd-analyze")
    assert read_unit(unit).sections()[0] == "Unit"
    if program is None:  # where the server cannot be a service of systemd either
        return
    # The program that a unit starts must be there.
    for name in UNITS:
        text = (DEPLOY / name).read_text(encoding="utf-8")
        text = text.replace("/opt/heedful/bin/heedful serve", "/bin/true serve")
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = subprocess.run(
        [program, "verify", "--man=no", tmp_path / unit],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    said = [line for line in done.stderr.splitlines() if str(tmp_path) in line or "heedful" in line]
    assert said == []
    assert done.returncode == 0, done.stderr


def test_the_image_sets_only_variables_that_the_server_reads():
    steps = instructions(DEPLOY / "Dockerfile")
    names = {text.partition("=")[0] for name, text in steps if name == "ENV"}
    assert {name for name in names if name.startswith("HEEDFUL")} <= VARIABLES
    assert ("ENTRYPOINT", '["heedful"]') in steps
    assert ("CMD", '["serve"]') in steps
    assert [text for name, text in steps if name == "USER"] == ["1000:1000"]
