"""In a container or under cron the locale is C, and the first accent ends a command."""

from tests.support.terminals import outputs

# Python then takes files, arguments and streams for ASCII. Other encodings of the streams:
# tests/cli/test_terminal_text.py.
C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def test_no_command_ends_at_a_letter_and_translations_are_utf8(heedful_cli, toy_run, tmp_path):
    folder = tmp_path / "été 犬"
    folder.mkdir()
    (folder / "œuvre.en").write_text("the big red dog\nshe bought a flower\n", encoding="utf-8")
    (folder / "œuvre.fr").write_text("elle a acheté 犬\nl'été\n", encoding="utf-8")
    (folder / "t.mrg").write_text("(S (NP (NN chién)) (VP (VBZ dort)))\n", encoding="utf-8")
    source, target = folder / "œuvre.en", folder / "œuvre.fr"
    pair = ("--source", source, "--target", target)
    commands = [
        ("translate", toy_run, "--input", source),
        ("translate", toy_run, "--input", source, "--n-best", 3, "--alignments"),
        ("translate", toy_run, "--input", folder / "absent é.en"),
        ("data", "show", toy_run, "--lines", 2),
        ("score", toy_run, *pair),
        ("score", toy_run, *pair, "--format", "jsonl"),
        ("evaluate", "--hypothesis", target, "--reference", target),
        ("info", toy_run),
        ("compare", toy_run, toy_run, "--source", source, "--reference", target),
        ("parse", "draw", folder / "t.mrg"),
        ("attend", toy_run, "dog", "--measures"),
    ]
    codes = [2 if folder / "absent é.en" in command else 0 for command in commands]
    (translated, *_), _ = outputs(commands, codes, **C_LOCALE)
    assert "é" in translated.decode("utf-8")
    assert translated.decode("utf-8") == heedful_cli(*commands[0]).stdout
