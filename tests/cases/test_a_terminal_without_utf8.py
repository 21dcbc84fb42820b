"""In a container or under cron the locale is C, and the first accent ends a command."""

import pytest

PLAIN = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LANG": None}
LOCALES = [
    PLAIN,
    {"PYTHONIOENCODING": "ascii"},
    {**PLAIN, "PYTHONIOENCODING": "latin-1"},
    {"PYTHONIOENCODING": "cp1252"},
]


@pytest.fixture(scope="module")
def commands(toy_run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("été 犬")
    (folder / "œuvre.en").write_text("the big red dog\nshe bought a flower\n", encoding="utf-8")
    (folder / "œuvre.fr").write_text("elle a acheté 犬\nl'été\n", encoding="utf-8")
    (folder / "t.mrg").write_text("(S (NP (NN chién)) (VP (VBZ dort)))\n", encoding="utf-8")
    source, target = folder / "œuvre.en", folder / "œuvre.fr"
    pair = ("--source", source, "--target", target)
    return {
        "show": ("data", "show", toy_run, "--lines", 2),
        "score": ("score", toy_run, *pair),
        "score jsonl": ("score", toy_run, *pair, "--format", "jsonl"),
        "translate": ("translate", toy_run, "--input", source),
        "n-best": ("translate", toy_run, "--input", source, "--n-best", 3, "--alignments"),
        "evaluate": ("evaluate", "--hypothesis", target, "--reference", target),
        "info": ("info", toy_run),
        "compare": ("compare", toy_run, toy_run, "--source", source, "--reference", target),
        "draw": ("parse", "draw", folder / "t.mrg"),
        "attend": ("attend", toy_run, "dog", "--measures"),
        "missing": ("translate", toy_run, "--input", folder / "absent é.en"),
    }


@pytest.mark.parametrize("locale", LOCALES, ids=range(len(LOCALES)))
def test_no_command_ends_at_a_letter(heedful_cli, commands, locale):
    for name, command in commands.items():
        done = heedful_cli(*command, env=locale)
        assert "Traceback" not in done.stderr, (name, done.stderr)
        assert done.returncode == (2 if name == "missing" else 0), (name, done.stderr)


@pytest.mark.parametrize("locale", LOCALES, ids=range(len(LOCALES)))
def test_translations_are_utf8_everywhere(heedful_cli, commands, locale):
    plain = heedful_cli(*commands["translate"])
    assert "é" in plain.stdout
    assert heedful_cli(*commands["translate"], env=locale).stdout == plain.stdout
