"""What a closed standard input means for the commands that read it."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("command", ["translate RUN", "attend RUN -"])
def test_a_closed_stdin_is_named(trained, command):
    arguments = command.replace("RUN", str(trained)).split()
    done = subprocess.run(
        ["sh", "-c", '"$@" <&-', "sh", sys.executable, "-m", "heedful", *arguments],
        check=False,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 2
    assert done.stderr == (
        "heedful: the text must come from stdin, but stdin is closed; name a file instead.\n"
    )
