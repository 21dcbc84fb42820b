"""The intervals of records can be computed again from their outputs."""

import pytest
from benchmarks.corpora import multi30k
from benchmarks.report import read
from benchmarks.sequences import score_lines

from heedful.evaluation.significance import Resampling, compare, confidence_intervals
from heedful.experiments.measured import count_matches


@pytest.mark.usefixtures("corpora")
def test_intervals_of_table_2_follow_from_its_translations(tmp_path):
    record = read("table2")
    corpus = multi30k(tmp_path)

    def counted(system, part):
        return count_matches(record.outputs[f"output/{system['name']}.{part}"], part, corpus)

    first = record.measurements["here"][0]
    for part, name in (("test", "interval"), ("valid", "valid_interval")):
        (interval,) = confidence_intervals([counted(first, part)], Resampling())
        assert interval == pytest.approx(first[name])
    difference = record.measurements["differences"][0]
    better, worse = (
        next(system for system in record.measurements["here"] if system["title"] == title)
        for title in (difference["better"], difference["worse"])
    )
    (tested,) = compare([counted(better, "test")], [counted(worse, "test")])
    assert tested.interval == pytest.approx(difference["interval"])


def test_outputs_of_a_sequence_task_are_scored_with_an_interval():
    scores = score_lines(["1999", "2001", "1 9"], ["1999", "2002", "1 9"])
    assert scores["exact_match"]["score"] == pytest.approx(200 / 3)
    assert scores["exact_match"]["interval"] == (0.0, 100.0)
    assert scores["cer"]["score"] == pytest.approx(100 / 11)
