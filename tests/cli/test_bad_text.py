"""Files that are no text, or more of it than fits, at every door that reads text."""

import gzip
import random
import subprocess
import sys

from heedful.text.lines import LONGEST_LINE
from tests.support.commands import refused


def test_one_file_for_both_sides_is_refused_at_every_door(heedful_cli, text, trained, tmp_path):
    named, linked = text / "train.en", tmp_path / "train.fr"
    linked.symlink_to(named)
    both = ("--source", named, "--target", linked)
    told = ("must be two texts", f"{named} and {linked} are the same file", "a copy of the file")
    out = ("--out", tmp_path / "out")
    refused(heedful_cli("train", "tiny", *both, *out), *told)
    refused(heedful_cli("data", "prepare", "tiny", *both, *out), *told)
    refused(heedful_cli("score", trained, *both), *told)
    good = ("--source", named, "--target", text / "train.fr")
    held_out = ("--valid-source", named, "--valid-target", linked)
    refused(heedful_cli("train", "tiny", *good, *held_out, *out), *told)
    assert not (tmp_path / "out").exists()


def test_tables_and_documents_are_no_text_at_every_door(heedful_cli, text, trained, tmp_path):
    table, target = tmp_path / "pairs.csv", text / "train.fr"
    table.write_text('en,fr\n"a dog",un chien\n')
    told = ("pairs.csv must hold one sentence a line", "its name says that it is a table (.csv)")
    both, out = ("--source", table, "--target", target), ("--out", tmp_path / "out")
    refused(heedful_cli("train", "tiny", *both, "--dry-run"), *told)
    refused(
        heedful_cli("train", "tiny", "--source", f"{table}:en", "--target", target, *out), *told
    )
    refused(heedful_cli("data", "prepare", "tiny", *both, *out), *told)
    refused(heedful_cli("score", trained, *both), *told)
    refused(heedful_cli("translate", trained, "--input", table), *told)
    refused(heedful_cli("evaluate", "--hypothesis", table, "--reference", target), *told)
    assert not (tmp_path / "out").exists()


def test_an_endless_line_is_refused_at_every_door(heedful_cli, text, trained, tmp_path):
    bomb, target = tmp_path / "bomb.en.gz", text / "train.fr"
    bomb.write_bytes(gzip.compress(b"a dog\n" + b" " * (2 * LONGEST_LINE)))
    both, out = ("--source", bomb, "--target", target), ("--out", tmp_path / "out")
    told = ("must have lines of at most 16,777,216 bytes, but line 2 is longer",)
    named = (f"{bomb} must have", *told)
    refused(heedful_cli("train", "tiny", *both, *out), *named)
    refused(heedful_cli("train", "tiny", *both, "--dry-run"), *named)
    refused(heedful_cli("data", "prepare", "tiny", *both, *out), *named)
    refused(heedful_cli("score", trained, *both), *named)
    refused(heedful_cli("evaluate", "--hypothesis", bomb, "--reference", target), *named)
    refused(heedful_cli("translate", trained, "--input", bomb), *named)
    from_pipe = subprocess.run(
        [
            "bash",
            "-c",
            'gzip -dc "$1" | "$2" -m heedful translate "$3"',
            "bash",
            bomb,
            sys.executable,
            trained,
        ],
        check=False,
        capture_output=True,
        encoding="utf-8",
    )
    refused(from_pipe, "stdin must have", *told)


def test_lines_from_a_pipe_come_whole(heedful_cli, trained):
    lines = ["the dog sleeps", "", "x" * 200_000, "a cat"]
    command = ("translate", trained, "--beam", 1, "--max-length", 4)
    ended = heedful_cli(*command, stdin="\n".join(lines))
    assert ended.returncode == 0, ended.stderr
    assert "line 3 has" in ended.stderr and "was cut" in ended.stderr
    alone = [heedful_cli(*command, stdin=f"{line}\n").stdout for line in (lines[0], lines[3])]
    found = ended.stdout.splitlines(keepends=True)
    assert (found[0], found[1], found[3], len(found)) == (alone[0], "\n", alone[1], 4)


READ = """
import sys
from heedful.cli.standard_input import standard_input
sys.stdout.buffer.write(repr([*standard_input()]).encode())
"""


def test_lines_from_a_pipe_are_split_wherever_its_parts_end():
    draw = random.Random(7)
    sizes = [draw.choice((0, 1, 5, 65_535, 65_536, 70_000, 200_000)) for _ in range(60)]
    text = b"\n".join(b"x" * size for size in sizes)
    for sent in (text, text + b"\n", b"", b"\n\n"):
        done = subprocess.run(
            [sys.executable, "-c", READ], input=sent, check=True, capture_output=True
        )
        assert done.stdout == repr(sent.splitlines(keepends=True)).encode()
