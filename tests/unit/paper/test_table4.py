"""Table 4: the published rows, and parsers beside grammars of the same trees."""

from pathlib import Path

import pytest

from heedful.errors import ArgumentError, TextError
from heedful.experiments.page import LEARNED
from heedful.paper.parsing.floors import TreeFloors
from heedful.paper.parsing.pcfg import Pcfg
from heedful.paper.table4 import PUBLISHED, ScoredParser, Table4, _comparisons, make_table4
from heedful.tasks.parsing.trees.read import read_trees
from heedful.tasks.parsing.trees.score import SentenceScore, TreeScore, score_trees
from heedful.training.train import train

pytestmark = pytest.mark.task("parsing")

TREES = """(S (NP (DT the) (NN dog)) (VP (VBZ sleeps)))
(S (NP (PRP she)) (VP (VBZ reads) (NP (DT a) (NN book))))
(S (NP (DT a) (NN cat)) (VP (VBZ eats) (PP (IN in) (NP (DT the) (NN house)))))
"""
SETTINGS = {
    **{"model.d_model": 16, "model.d_ff": 32, "model.heads": 2, "data.subwords": "character"},
    **{"train.steps": 2, "train.precision": "fp32", "train.device": "cpu", "train.warmup": 10},
}


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    file = tmp_path_factory.mktemp("trees") / "gold.mrg"
    file.write_text(TREES, encoding="utf-8")
    return file


def test_trees_without_words_are_named(trees, tmp_path):
    empty = tmp_path / "empty.mrg"
    empty.write_text("( (S (-NONE- *)) )\n", encoding="utf-8")
    for gold, train_trees in ((empty, []), (trees, [trees, empty])):
        with pytest.raises(TextError, match=r"empty\.mrg must hold trees with words"):
            make_table4([], gold, train_trees)


def test_a_grammar_of_the_scored_trees_is_told(trees):
    said = []
    for gold in (trees, trees.with_name("go*.mrg")):
        make_table4([], gold, [trees], say=said.append)
        expected = f"warning: the grammars are scored on trees that they were trained on, {gold}"
        assert expected in said


def test_published_rows_are_the_papers():
    assert len(PUBLISHED) == 12
    ours = [(one.training, one.f1) for one in PUBLISHED if one.name.startswith("Transformer")]
    assert ours == [("WSJ only, discriminative", 91.3), ("semi-supervised", 92.7)]
    table = make_table4([], None)
    assert table.own_rows[1:] == table.conclusions == []
    assert "| Dyer et al. (2016) | generative | 93.3 |" in table.to_markdown()


def test_parsers_stand_beside_floors_and_grammars(trees):
    run = trees.parent / "run"
    train("tiny", trees=trees, valid_trees=trees, out=run, settings=SETTINGS, quiet=True)
    table = make_table4([run], trees, [trees], threads=1, device="cpu")
    gold = list(read_trees(trees))
    names = [one.name for one in table.parsers]
    grammars = ["grammar (PCFG) of 3 trees", "grammar with parents of 3 trees"]
    assert names == ["flat", "right-branching", *grammars, "run"]
    for row, parents in ((2, False), (3, True)):
        grammar = Pcfg(gold, parents=parents)
        wanted = score_trees(gold, [grammar.parse(tree.words).tree for tree in gold])
        assert table.parsers[row].score == wanted and wanted.f1 > 90
    flat = score_trees(gold, [TreeFloors(gold).flat(tree.words) for tree in gold])
    assert table.parsers[0].score == flat
    assert table.parsers[4].score.unparsed == 0
    able = table.parsers[4].score.f1 >= LEARNED
    assert any("run" in (one.better, one.worse) for one in table.comparisons) == able
    assert all(one.difference >= 0 for one in table.comparisons)
    assert "3 sentences" in table.conclusions[-1]
    assert table.to_dict()["here"][4]["name"] == "run"
    assert len(table.own_rows) == 6


def test_parsers_need_trees():
    with pytest.raises(ArgumentError, match="give --trees"):
        make_table4([Path("run")], None)


def scored(name, matched, is_floor=False):
    """A parser with so many of a hundred brackets right in each of three sentences."""
    sentence = SentenceScore(length=50, gold=100, predicted=100, matched=matched)
    return ScoredParser(name, TreeScore((sentence,) * 3), (0.0, 100.0), is_floor)


def test_a_parser_that_has_learned_nothing_is_compared_with_none():
    parsers = (
        *(scored("flat", 20, is_floor=True), scored("grammar", 0, is_floor=True)),
        *(scored("able", 60), scored("weak", 0)),
    )
    pairs = [(one.better, one.worse) for one in _comparisons(parsers)]
    assert pairs == [("able", "flat")]
    table = Table4(parsers, tuple(_comparisons(parsers)), 3)
    assert "Weak has learned nothing useful in its training steps." in table.conclusions
    assert not any("Grammar has learned" in said for said in table.conclusions)
