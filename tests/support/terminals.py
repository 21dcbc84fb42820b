"""Commands in a process of their own, whose standard streams have another encoding."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
# Arguments are decoded as the locale has it. Each command ends by `sys.exit`; a line with its exit
# code parts the outputs.
RUN = """
import json, os, sys
from heedful.cli.main import main
for arguments in json.loads(sys.argv[1]):
    words = (os.fsdecode(word.encode("utf-8", "surrogateescape")) for word in arguments)
    sys.argv = ["heedful", *words]
    try:
        main()
    except SystemExit as end:
        sys.stdout.flush()
        sys.stdout.buffer.write(b"\\n== %d\\n" % (end.code or 0))
        sys.stdout.flush()
"""


def outputs(
    commands: Sequence[Sequence[object]], codes: Sequence[int] | None = None, **environ: str
) -> tuple[list[bytes], bytes]:
    """
    Standard output of each command, and what they wrote to standard error together.

    The exit codes are checked; without `codes` each must be 0.
    """
    words = json.dumps([[*map(str, command)] for command in commands])
    done = subprocess.run(
        [sys.executable, "-c", RUN, words],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1", **environ},
        timeout=500,
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode("latin-1")
    parts = re.split(rb"\n== (\d+)\n", done.stdout)
    expected = [b"%d" % code for code in codes or [0] * len(commands)]
    assert parts[1::2] == expected, done.stderr.decode("latin-1")
    return parts[:-1:2], done.stderr
