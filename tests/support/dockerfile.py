"""The steps of a Dockerfile, run in folders: each stage has one for its root."""

import fnmatch
import json
import os
import shlex
import shutil
import site
import subprocess
import venv
from pathlib import Path


def instructions(file):
    """Read the instructions as pairs of a name and its text."""
    text = file.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [tuple(line.split(" ", 1)) for line in lines]


class Stage:
    """The file system of a stage, and its variables."""

    def __init__(self, root):
        self.root = root
        self.folder = root
        self.variables = {}
        venv.create(root / "python", symlinks=True)
        pip = root / "python/bin/pip"
        pip.write_text('#!/bin/sh\nexec python -m pip "$@"\n')
        pip.chmod(0o755)
        # What the package needs is there already, but not the package itself.
        needed = root / "needed"
        needed.mkdir()
        for folder in site.getsitepackages():
            for entry in Path(folder).iterdir():
                if "heedful" not in entry.name and entry.suffix != ".pth":
                    (needed / entry.name).symlink_to(entry)
        (packages,) = (root / "python").glob("lib/python*/site-packages")
        (packages / "needed.pth").write_text(f"{needed}\n")

    def place(self, path):
        """A path of the image as a path of this machine."""
        return self.root / path.lstrip("/") if path.startswith("/") else self.folder / path

    def environ(self, **changes):
        programs = [str(self.root / "python/bin"), "/usr/bin", "/bin"]
        # pip reads this as no isolation: what builds the package is there, too.
        plain = {"PATH": os.pathsep.join(programs), "HOME": str(self.root)}
        plain["PIP_NO_BUILD_ISOLATION"] = "false"
        return plain | self.variables | changes

    def run(self, command, **changes):
        """Run a line of shell."""
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=self.folder,
            env=self.environ(**changes),
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout


class Image:
    """
    The image of a Dockerfile; `stages` run their steps one after the other.

    `context`: the folder that COPY copies from.
    """

    def __init__(self, file, context, folder):
        self.health = self.user = ""
        self.command = []
        ignored = file.with_name(f"{file.name}.dockerignore").read_text().split()
        self._context, self._ignored = context, ignored
        stages = {}
        for name, text in instructions(file):
            if name == "FROM":
                stage_name = text.partition(" AS ")[2] or "last"
                self.stage = stages[stage_name] = Stage(folder / stage_name)
            elif name == "WORKDIR":
                self.stage.folder = self.stage.place(text)
                self.stage.folder.mkdir(parents=True)
            elif name == "COPY":
                self._copy(shlex.split(text), stages)
            elif name == "RUN":
                self.stage.run(text)
            elif name in ("ENV", "ARG"):
                variable, _, value = text.partition("=")
                self.stage.variables[variable] = value
            elif name == "HEALTHCHECK":
                self.health = text.removeprefix("CMD ")
            elif name == "USER":
                self.user = text
            elif name in ("ENTRYPOINT", "CMD"):
                self.command += json.loads(text)
            else:
                assert name in ("EXPOSE", "VOLUME"), f"{name} is not a known instruction"

    def _copy(self, words, stages):
        source, target = words[-2:]
        if words[0].startswith("--from="):
            source = stages[words[0].removeprefix("--from=")].place(source)
        else:
            source = self._context / source
        shutil.copytree(source, self.stage.place(target), ignore=self._skip, dirs_exist_ok=True)

    def _skip(self, folder, names):
        """The names of a folder that are ignored: at the top only, but for patterns of `**/`."""
        deep = [pattern.removeprefix("**/") for pattern in self._ignored if "/" in pattern]
        top = [pattern for pattern in self._ignored if "/" not in pattern]
        patterns = deep + top * (Path(folder) == self._context)
        return {name for name in names for pattern in patterns if fnmatch.fnmatch(name, pattern)}
