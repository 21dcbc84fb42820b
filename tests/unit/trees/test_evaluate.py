"""Evaluation of files of trees, and its messages."""

import json

import pytest

from heedful.errors import TextError
from heedful.evaluation.significance import Resampling
from heedful.trees.evaluate import as_text, evaluate_trees

GOLD = """( (S (NP-SBJ (NNS dogs)) (VP (VBP sleep) (NP (-NONE- *))) (. .)) )
(S (NP (NNS cats))
   (VP (VBP run)))
"""
SAME = "(S (NP (XX dogs)) (VP (XX sleep)) (XX .))\n(S (NP (XX cats)) (VP (XX run)))\n"
FLAT = "(S (XX dogs) (XX sleep) (XX .))\n\n"


@pytest.fixture
def files(tmp_path):
    def write(name, text):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    write("gold", GOLD)
    return write


def test_the_score_is_shown_with_evalbs_own_beside_it(files, tmp_path):
    found = evaluate_trees(
        tmp_path / "gold",
        files("same", SAME),
        against=[files("flat", FLAT)],
        confidence=True,
        resampling=Resampling(100, 1),
    )
    text = as_text(found)
    assert "F1                100.00      100.00" in text
    assert "tagging                –" in text
    assert "flat: F1 28.57, +71.43 to it" in text
    assert text.endswith("EVALB itself, with gold tags: F1 100.00, 0 error and 0 skip sentences")
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["all"]["f1"] == plain["up_to_40"]["f1"] == 100
    assert plain["against"][0]["difference"] == pytest.approx(500 / 7)


def test_what_evalb_leaves_out_counts_here(files, tmp_path):
    found = evaluate_trees(tmp_path / "gold", files("flat", FLAT))
    assert found.score.unparsed == 1
    assert "0 error and 1 skip sentences; it leaves out what is unparsed" in as_text(found)


def test_trees_of_other_sentences_are_named(files, tmp_path):
    some = SAME.replace("cats", "mice")
    found = evaluate_trees(tmp_path / "gold", files("some", some))
    (warning,) = found.warnings
    assert "1 of 2 predicted trees have other words" in warning
    assert "line 2 of" in warning
    assert "is “mice run” instead of “cats run”" in warning
    every = some.replace("dogs", "birds")
    with pytest.raises(TextError, match=r"but none has: line 1 of .* is “birds sleep .”"):
        evaluate_trees(tmp_path / "gold", files("all", every))


def test_another_number_of_trees_is_refused(files, tmp_path):
    with pytest.raises(TextError, match=r"a line for each of the 2 trees of .*, but has 1"):
        evaluate_trees(tmp_path / "gold", files("few", SAME.splitlines()[0] + "\n"))
    with pytest.raises(TextError, match="must hold trees with words"):
        evaluate_trees(files("none", ""), files("few", ""))


def test_parameters_come_from_a_file(files, tmp_path):
    found = evaluate_trees(
        tmp_path / "gold", files("same", SAME), parameters=files("my.prm", "CUTOFF_LEN 2\n")
    )
    assert "up to 2" in as_text(found)
    assert found.evalb.parameters.delete_labels == frozenset()
