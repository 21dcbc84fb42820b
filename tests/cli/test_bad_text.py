"""Files that are not text, or more of it than fits, at every door that reads text."""

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
    table, target = tmp_path / "pairs.xlsx", text / "train.fr"
    table.write_bytes(b"PK\x03\x04")
    told = ("pairs.xlsx must hold one sentence per line", "that it is a table (.xlsx)")
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


def test_a_document_is_translated_as_a_whole_and_not_by_lines(heedful_cli, trained, tmp_path):
    page, out = tmp_path / "a.srt", tmp_path / "b.srt"
    page.write_text("1\n00:00:01,000 --> 00:00:02,000\n<i>the big\ndog sleeps</i>\n")
    files = ("--input", page, "--output", out)
    done = heedful_cli("translate", trained, *files)
    assert done.returncode == 0, done.stderr
    lines = out.read_text().splitlines()
    assert [*lines[:2], len(lines)] == ["1", "00:00:01,000 --> 00:00:02,000", 4]
    assert (lines[2][:3], lines[3][-4:]) == ("<i>", "</i>")
    protected = tmp_path / "protected.txt"
    protected.write_text("QX7\n")
    page.write_text("1\n00:00:01,000 --> 00:00:02,000\nthe big dog QX7 sleeps\n")
    done = heedful_cli("translate", trained, *files, "--protected", protected)
    assert done.returncode == 0, done.stderr
    assert out.read_text().count("QX7") == 1
    refused(heedful_cli("translate", trained, "--input", page), "needs --output")
    for options in (("--n-best", 2), ("--join-lines",), ("--long-lines", "cut")):
        done = heedful_cli("translate", trained, *files, *options)
        refused(done, options[0], "applies to lines, but a document")
    (tmp_path / "a.docx").write_bytes(b"x")
    files = ("--input", tmp_path / "a.docx", "--output", tmp_path / "b.docx")
    refused(heedful_cli("translate", trained, *files), "a.docx: a .docx file must be a complete")
    assert not (tmp_path / "b.docx").exists()


def test_columns_of_a_table_are_text_at_every_door(heedful_cli, text, trained, tmp_path):
    lines = [(text / f"train.{code}").read_text().splitlines()[:200] for code in ("en", "fr")]
    table = tmp_path / "pairs.csv"
    rows = [f'{number},"{s}","{t}"' for number, (s, t) in enumerate(zip(*lines, strict=True))]
    table.write_text("\n".join(["id,en,fr", *rows[:7], "8,short", *rows[7:]]) + "\n")
    note = f"{table}: 1 row was skipped (line 9 has 2 cells, but the first row has 3)"
    both, few = (
        ("--source", f"{table}:en", "--target", f"{table}:3"),
        ("--set", "data.vocabulary_size=90"),
    )
    languages = ("--set", "data.target_language=fr")
    planned = heedful_cli("train", "tiny", *both, *few, *languages, "--dry-run").stdout
    assert f"text        200 pairs; {note}" in planned
    assert "languages   en to fr" in planned
    out = tmp_path / "out"
    assert (
        note in heedful_cli("data", "prepare", "tiny", *both, *few, *languages, "--out", out).stdout
    )
    scored = heedful_cli("score", trained, *both)
    assert len(scored.stdout.splitlines()) == 200
    assert note in scored.stderr
    translated = heedful_cli("translate", trained, "--input", f"{table}:en")
    assert len(translated.stdout.splitlines()) == 200
    assert note in translated.stderr
    refused(
        heedful_cli("evaluate", "--hypothesis", f"{table}:en", "--reference", f"{table}:fr"),
        "line 9 has 2 cells, but the first row has 3; repair this row, or remove it from all",
    )


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
