"""A corpus that holds Moses' escapes teaches a model to write &apos; and @-@."""

import json

import pytest

from heedful.config.load import load_config
from heedful.evaluation.validation import score_bleu
from heedful.preparation.find_training_data import find_text
from heedful.preparation.prepare import prepare

CLEAN = [("a well-known dog", "un chien bien connu"), ('he said "no"', "l'homme a dit [non]")] * 40
ESCAPED = [
    ("a well @-@ known dog", "un chien bien connu"),
    ("he said &quot;no&quot;", "l&apos;homme a dit &#91;non&#93;"),
] * 40
SETTINGS = ("data.vocabulary_size=60",)


def write(folder, pairs):
    """Write pairs as text; return the files."""
    folder.mkdir(exist_ok=True)
    for side, language in enumerate(("en", "fr")):
        lines = "".join(f"{pair[side]}\n" for pair in pairs)
        (folder / f"text.{language}").write_text(lines, encoding="utf-8")
    return {"source": folder / "text.en", "target": folder / "text.fr"}


def test_a_preparation_counts_the_lines_and_names_the_rule(tmp_path):
    said = []
    pairs = [("a dog", "un chien & un chat; &nbsp;"), *ESCAPED]
    files = write(tmp_path, pairs)
    report = prepare(
        "tiny", **files, out=tmp_path / "out", settings=SETTINGS, processes=1, say=said.append
    )
    (note,) = report.notes
    assert "80 of 81 pairs contain escapes of Moses' tokenizer" in note
    assert "the first on line 2" in note and "data.unescape=true" in note
    assert note in said
    assert note in json.loads((tmp_path / "out/data/report.json").read_text("utf-8"))["notes"]
    assert "note: 80 of 81" in report.table()


def test_clean_text_needs_no_note(tmp_path):
    report = prepare(
        "tiny", **write(tmp_path, CLEAN), out=tmp_path / "out", settings=SETTINGS, processes=1
    )
    assert report.notes == []


def test_the_rule_makes_the_text_that_it_was(tmp_path):
    made, said = [], []
    for name, pairs, more in (("clean", CLEAN, ()), ("escaped", ESCAPED, ("data.unescape=true",))):
        out = tmp_path / name / "out"
        files = write(tmp_path / name, pairs)
        settings = (*SETTINGS, "data.subword_sampling=0.1", *more)
        prepare("tiny", **files, out=out, settings=settings, processes=1, say=said.append)
        made.append(out)
    for name in ("tokenizer.model", "data/source.ids", "data/target.ids", "data/target.text"):
        assert (made[0] / name).read_bytes() == (made[1] / name).read_bytes()
    assert any("were resolved in 80 pairs" in line for line in said)


def test_without_the_rule_nothing_changes(tmp_path):
    files = write(tmp_path, ESCAPED)
    text = find_text(**files)
    tokenizer = text.learn(text.configure(load_config("tiny", SETTINGS)))
    (row,) = tokenizer.encode_target(["l&apos;homme"])
    assert tokenizer.decode(row) == "l&apos;homme"


def test_bleu_resolves_the_four_entities_of_its_own_rule():
    score = score_bleu(['he said "no" & left'], "en")(["he said &quot;no&quot; &amp; left"])
    assert score == pytest.approx(100)
