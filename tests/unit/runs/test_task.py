"""What a run that translates does with its text."""

import torch

from heedful.bench.random_run import make_random_run
from heedful.config.schema import RunConfig
from heedful.runs.run import Run
from heedful.runs.task import RunTask


def test_a_run_that_translates_has_no_rules_of_its_own(tmp_path):
    shape = {"model.d_model": 16, "model.heads": 2, "train.best_by": "chrf"}
    make_random_run(tmp_path, RunConfig().with_settings(shape), 50)
    task = Run.open(tmp_path).task
    assert type(task) is RunTask
    assert task.source_line(" a  b ") == " a  b "
    assert task.read_sources([" a  b "]) == ["a b"]
    assert task.rules(["a"], [3], torch.device("cpu")) == []
    assert task.has_room("a", 0)
    assert task.phrases([1], ["a"], "") == ()
    assert set(task.scorer(["a b"])(["a b"])) == {"bleu", "chrf", "bleu_signature"}
