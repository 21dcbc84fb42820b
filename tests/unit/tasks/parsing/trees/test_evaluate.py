"""Evaluation of files of trees, and its messages."""

import json

import pytest

from heedful.errors import TextError
from heedful.evaluation.significance import Resampling
from heedful.tasks.parsing.trees.evalb_table import evalb_table
from heedful.tasks.parsing.trees.evaluate import as_text, evalb_files, evaluate_trees
from heedful.text.lines import plain_lines

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
    assert "flat: F1 28.57, difference +71.43" in text
    assert text.endswith("EVALB itself, with gold tags: F1 100.00, 0 error and 0 skip sentences")
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["all"]["f1"] == plain["up_to_40"]["f1"] == 100
    assert plain["against"][0]["difference"] == pytest.approx(500 / 7)
    assert plain["resampling"] == {"test": "randomization", "trials": 100, "seed": 1}
    assert plain["evalb"] == {
        "f1": 100,
        "precision": 100,
        "recall": 100,
        "errors": 0,
        "skips": 0,
        "stops_at": None,
        "tags_from_gold": True,
    }
    assert "Intervals (95%): bootstrap, 100 times, seed 1." in text
    assert "p: approximate randomization, two-sided, 100 times, seed 1." in text


def test_nothing_is_said_of_what_was_not_drawn(files, tmp_path):
    found = evaluate_trees(tmp_path / "gold", files("same", SAME))
    assert "resampling" not in found.to_dict()
    assert "bootstrap" not in as_text(found)


def test_what_evalb_leaves_out_counts_here(files, tmp_path):
    found = evaluate_trees(tmp_path / "gold", files("flat", FLAT))
    assert found.score.unparsed == 1
    assert "0 error and 1 skip sentences; it leaves these sentences out" in as_text(found)


def test_trees_of_other_sentences_are_named(files, tmp_path):
    some = SAME.replace("cats", "mice")
    found = evaluate_trees(tmp_path / "gold", files("some", some))
    (warning,) = found.warnings
    assert "count as unparsed (1 of 2)" in warning
    assert "line 2 of" in warning
    assert "is “mice run” instead of “cats run”" in warning
    every = some.replace("dogs", "birds")
    with pytest.raises(TextError, match=r"but none has: line 1 of .* is “birds sleep .”"):
        evaluate_trees(tmp_path / "gold", files("all", every))


def test_words_may_be_equivalent(files, tmp_path):
    other = "(S (NP (XX hounds)) (VP (XX sleep)) (XX .))\n\n"
    rules = files("my.prm", "DELETE_LABEL .\nEQ_WORD dogs hounds\n")
    found = evaluate_trees(tmp_path / "gold", files("other", other), parameters=rules)
    assert (found.warnings, found.score.unparsed, found.score.precision) == ((), 1, 100)


@pytest.mark.parametrize("lines", [SAME, SAME.replace("\n", "\n\n", 1)])
def test_gold_trees_without_words_need_no_line(files, lines):
    gold = files("more", GOLD.replace("(S (NP (NNS cats", "( (S (-NONE- *)))\n(S (NP (NNS cats"))
    found = evaluate_trees(gold, files("same", lines))
    assert found.score.exact_match == 100
    left_out = "1 tree left out for having no words"
    assert found.warnings == (f"{gold}: {left_out} (number 2).",)


@pytest.mark.parametrize("lines", ["{0}\n\n{1}\n", "{0}\n\n\n{1}\n", "{0}\n{1}\n"])
def test_empty_lines_between_gold_trees_may_be_kept_or_not(files, lines):
    first, second = SAME.splitlines()
    gold = files("gold", f"{first}\n\n{second}\n")
    predicted = files("predicted", lines.format(first, second))
    if lines.count("\n") == 4:
        with pytest.raises(TextError, match=r"each of the 2 trees .* but has 4"):
            evaluate_trees(gold, predicted)
    else:
        assert evaluate_trees(gold, predicted).score.exact_match == 100


def test_the_number_of_the_line_is_that_in_the_file(files):
    gold = files("more", "(S (-NONE- *))\n" + GOLD)
    some = files("some", "\n" + SAME.replace("cats", "mice"))
    assert "line 3 of" in evaluate_trees(gold, some).warnings[1]


def test_where_evalb_stops_is_said(files, tmp_path):
    gold = files("many", "(S (NN a))\n" * 15)
    found = evaluate_trees(gold, files("wrong", "(S (NN a))\n" + "(S (NN b))\n" * 14))
    stop = "EVALB's program stops without a summary at sentence 13, where the number of error se"
    assert stop in as_text(found)
    assert found.to_dict()["evalb"]["stops_at"] == 13
    _, warnings = evalb_files(gold, tmp_path / "wrong")
    assert warnings[0].startswith(
        "14 of 15 sentences are error sentences; the first is sentence 2: the words “a” and"
    )
    assert warnings[1].startswith(stop)


def test_files_are_read_as_evalb_reads_them(corpora):
    folder = corpora / "fixtures-evalb"
    sample = [folder / f"sample.{end}" for end in ("gld", "tst", "prm")]
    result, warnings = evalb_files(*sample)
    printed = list(plain_lines(folder / "sample.evalb2006.out"))
    assert list(evalb_table(result)) == printed
    assert warnings == (
        "5 of 24 sentences are error sentences; the first is sentence 12: "
        "the words “is” and “was”.",
    )


def test_evalb_does_not_clean_and_warns_of_it(files):
    gold = files("lines", "( (S (NP (NN a)) (VP (VB b))))\n")
    found = files("found", "(S (NP (NN a)) (VP (VB b)))\n")
    result, (warning,) = evalb_files(gold, found)
    assert (result.all.total("gold"), result.all.precision, result.all.recall) == (4, 100, 75)
    assert "1 gold and 0 predicted lines" in warning
    assert evaluate_trees(gold, found).evalb.all.recall == 100


def test_evalb_scores_cleaned_trees_if_gold_ones_are_spread(files, tmp_path):
    result, (warning,) = evalb_files(tmp_path / "gold", files("same", SAME))
    assert (len(result.sentences), result.all.f1) == (2, 100)
    assert warning.startswith("All predicted tags are XX")


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
