"""The table of EVALB's own program."""

import pytest

from heedful.tasks.parsing.trees.evalb import evalb
from heedful.tasks.parsing.trees.evalb_parameters import COLLINS, read_parameters
from heedful.tasks.parsing.trees.evalb_table import evalb_table
from heedful.text.lines import plain_lines


@pytest.fixture
def sample(corpora):
    """The sample that comes with EVALB: gold trees, tested trees, parameters."""
    folder = corpora / "fixtures-evalb"
    gold, test = (list(plain_lines(folder / f"sample.{end}")) for end in ("gld", "tst"))
    return gold, test, read_parameters(folder / "sample.prm")


def test_every_line_of_the_sample_is_that_of_evalb(sample, corpora):
    printed = corpora / "fixtures-evalb/sample.evalb2006.out"
    lines = list(evalb_table(evalb(*sample)))
    assert len(lines) == 58
    assert lines == list(plain_lines(printed))


def test_the_sample_does_not_reach_the_most_errors(sample):
    assert evalb(*sample).stop is None


def test_without_a_match_there_is_no_f_measure():
    lines = list(evalb_table(evalb(["(S (NN a))"], ["(X (NN a))"], COLLINS)))
    assert (
        lines[3] == "   1    1    0    0.00   0.00     0      1    1      0      1     1   100.00"
    )
    assert lines.count("Bracketing FMeasure       =   -nan") == 2


def test_without_brackets_the_line_of_totals_is_short():
    lines = list(evalb_table(evalb(["(S (NN a))"], [""])))
    assert lines[5] == "      0     0     0.00"
