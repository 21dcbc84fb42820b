"""Commands on terminals that are not UTF-8: what cannot be shown is written out, nothing fails."""

import json
import os
import shutil

import pytest

from tests.support.terminals import outputs

TEXT = "the big dog “sees” 狗 été 😀"
# With this locale the arguments, too, are taken for ASCII.
C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize(
    ("environ", "encoding", "letter"),
    [({"PYTHONIOENCODING": "latin-1"}, "latin-1", "é"), (C_LOCALE, "ascii", "\\xe9")],
    ids=["latin-1", "C"],
)
def test_text_of_the_user_is_shown_as_far_as_the_terminal_can(trained, environ, encoding, letter):
    commands = [
        ("data", "show", trained, "--source", TEXT, "--target", TEXT),
        ("attend", trained, TEXT),
    ]
    (pairs, steps), errors = outputs(commands, **environ)
    shown = pairs.decode(encoding)
    assert letter in shown
    assert "_the" in shown and "\\u72d7" in shown and "\\U0001f600" in shown
    assert "run (step 12)" in steps.decode(encoding) and "instead _" in steps.decode(encoding)
    assert '"\\u72d7"' in errors.decode(encoding)


def test_tables_and_names_are_shown_and_data_stays_whole(trained, tmp_path):
    named = tmp_path / "翻译"
    shutil.copytree(trained, named)
    raw = tmp_path / os.fsdecode(b"raw\xff")
    shutil.copytree(trained, raw)
    text = tmp_path / "text"
    text.write_text("the dog é 狗\n", encoding="utf-8")
    commands = [
        ("--help",),
        ("plot", named, raw, "--out", tmp_path / "a.svg"),
        ("compare", named, trained),
        ("info", named),
        ("compare", named, trained, "--json"),
        ("translate", trained, "--input", text, "--format", "jsonl", "--beam", 1),
    ]
    (usage, curves, table, facts, as_json, translated), _ = outputs(
        commands, PYTHONIOENCODING="ascii"
    )
    assert b'"Attention Is All You Need"' in b" ".join(usage.split())
    assert b"\\u7ffb\\u8bd1" in curves and b"raw\\xff" in curves
    assert b"\\u7ffb\\u8bd1" in table and b"\\u7ffb\\u8bd1" in facts
    assert as_json.isascii()
    assert "翻译" in json.dumps(json.loads(as_json), ensure_ascii=False)
    # Another program reads translations, so they are UTF-8 everywhere.
    assert "▁" in translated.decode("utf-8")


CONTROLS = "\x1b[31m\x07\u202e\u2066"
ESCAPED = "\\x1b[31m\\x07\\u202e\\u2066"
MEMORY = """<?xml version="1.0" encoding="utf-8"?>
<tmx version="1.4"><header/><body><tu><tuv xml:lang="en&#x202B;x&#x2068;"><seg>dog</seg></tuv>
<tuv xml:lang="fr"><seg>chien</seg></tuv></tu></body></tmx>
"""


def test_what_controls_a_terminal_is_written_out_in_messages(heedful_cli, trained, tmp_path):
    memory = tmp_path / "memory.tmx"
    memory.write_text(MEMORY, encoding="utf-8")
    hostile = tmp_path / f"run{CONTROLS}"
    text = tmp_path / "text"
    text.write_text(f"the {CONTROLS} dog\n", encoding="utf-8")
    sides = ("--source", f"{memory}:en", "--target", f"{memory}:fr")
    for arguments, code, written in (
        (("train", "tiny", *sides, "--dry-run"), 2, "“en\\u202bx\\u2068”, “fr”"),
        (("info", hostile), 2, f"run{ESCAPED} does not exist"),
        (("train", "tiny", f"--x{CONTROLS}"), 2, f"--x{ESCAPED}"),
        (("translate", trained, "--input", text), 0, "\\x1b"),
        (("data", "show", trained, "--source", CONTROLS, "--target", "x"), 0, "\\u202e"),
        (("attend", trained, f"dog {CONTROLS}"), 0, "\\x07"),
    ):
        done = heedful_cli(*arguments)
        assert done.returncode == code, done.stderr
        assert written in done.stdout + done.stderr
        assert not {*CONTROLS, "\u202b", "\u2068"} - {*"[31m"} & {*done.stdout, *done.stderr}


def test_names_and_sentences_in_tables_control_nothing(heedful_cli, trained, tmp_path):
    hostile = tmp_path / f"run{CONTROLS}"
    shutil.copytree(trained, hostile)
    for arguments in (("plot", hostile), ("compare", hostile, trained), ("info", hostile)):
        done = heedful_cli(*arguments)
        assert done.returncode == 0, done.stderr
        assert "\\x07\\u202e\\u2066" in done.stdout
        assert not {"\x1b", "\x07", "\u202e", "\u2066"} & {*done.stdout}
