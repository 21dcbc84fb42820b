"""Noisy copies of a test set, and the page of what they cost."""

import pytest
from benchmarks import noise, report
from benchmarks.noise import PAGE
from benchmarks.noisy_copy import NAMES, noisy_copies

from heedful.data.toy_grammar.corpus import sample_pairs

PAIRS = sample_pairs(100, seed=2)
SOURCES, REFERENCES = [source for source, _ in PAIRS], [target for _, target in PAIRS]


def test_copies_depend_on_the_seed_alone():
    first, again, other = (noisy_copies(SOURCES, REFERENCES, seed) for seed in (1, 1, 2))
    assert first == again
    assert first.keys() == {"clean", *NAMES, "mixed"}
    assert first["clean"] == (SOURCES, REFERENCES) == other["clean"]
    for name in ("blanks", "typos", "symbols", "tags", "mixed"):
        assert first[name] != other[name] != first["clean"]


def test_only_what_belongs_to_the_content_is_in_the_references():
    copies = noisy_copies(SOURCES, REFERENCES)
    assert copies["blanks"][1] == copies["typos"][1] == REFERENCES
    for old, new in zip(SOURCES, copies["blanks"][0], strict=True):
        assert new.replace("\u200b", "").split() == old.split()
    assert copies["capitals"][1] == [line.upper() for line in REFERENCES]
    for old, new in zip(REFERENCES, copies["symbols"][1], strict=True):
        assert old in new and len(new) == len(old) + 2


def test_the_page_has_a_column_for_each_run(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    scores = {
        "clean": {"clean": 99.0, "capitals": 0.4},
        "augmented": {"clean": 98.5, "capitals": 97},
    }
    measured = {"grammar": {"scores": scores, "steps": {"clean": 1200, "augmented": 1200}}}
    PAGE.keep("noise", measured, "abc")
    page = (tmp_path / "noise.md").read_text(encoding="utf-8")
    assert "| test set | trained on the text as it stands | with `data.augment` |" in page
    assert "| capitals | 0.4 | 97.0 |" in page
    assert f"`data.augment = {noise.AUGMENT}`" in page and "Multi30k" not in page


def test_runs_that_are_there_are_scored(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(
        noise, "scores", lambda run, *test: {"clean": 12.3, "mixed": float(len(test))}
    )
    monkeypatch.setattr("sys.argv", ["noise", "a", "b", "--test", "s.en", "s.fr"])
    noise.main()
    printed = capsys.readouterr().out
    assert "| test set | a | b |" in printed and "| mixed | 2.0 | 2.0 |" in printed
    monkeypatch.setattr("sys.argv", ["noise", "unknown"])
    with pytest.raises(SystemExit):
        noise.main()
