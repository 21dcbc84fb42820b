"""A run that parses, without weights."""

import pytest
import torch

from heedful.config.load import load_task_config
from heedful.errors import SettingError
from heedful.preparation.training_data import Preparation
from heedful.runs.folder import RunFolder
from heedful.runs.run import Run
from heedful.tasks.parsing.run import ParserRun
from heedful.tasks.parsing.task import TASK
from heedful.tasks.parsing.text import find_text

TREES = "(S (NP (DT a) (NN dog)) (VP (VBZ sleeps)))\n"


def open_run(folder, *settings):
    (folder / "trees").write_text(TREES, encoding="utf-8")
    config = load_task_config(TASK, "tiny", ["data.subwords=character", *settings])
    run = RunFolder(folder / "run")
    run.path.mkdir()
    find_text(folder / "trees").prepare(Preparation(run, config, 1, print))
    return run, config


@pytest.fixture
def task(tmp_path):
    from heedful.tokenization.tokenizer import Tokenizer

    run, config = open_run(tmp_path)
    task = Run(run, config, Tokenizer.load(run.path)).task
    assert isinstance(task, ParserRun)
    return task


def test_a_search_is_bound_to_trees_unless_it_is_free(task):
    (rule,) = task.rules(["a dog sleeps"], [9], torch.device("cpu"))
    assert rule.words.tolist() == [3]
    assert [task.has_room("a dog sleeps", limit) for limit in (4, 5)] == [False, True]
    free = ParserRun(
        task.folder, task.config.with_settings({"parsing.constrained": False}), task.tokenizer
    )
    assert free.rules(["a dog sleeps"], [1], torch.device("cpu")) == []
    assert free.has_room("a dog sleeps", 0)


def test_lines_are_read_as_they_are(task):
    assert task.read_sources(["a\u2009b  c"]) == ["a\u2009b  c"]
    assert task.source_line(" a ( b") == "a -LRB- b"


def test_trees_are_scored_by_their_phrases(task):
    (tree,) = ["(S (NP XX XX )NP (VP XX )VP )S"]
    scores = task.scorer([tree])([tree])
    assert scores["f1"] == scores["exact_match"] == 100.0


def test_the_next_word_needs_marked_subwords(tmp_path):
    class Words:
        """A tokenizer whose words are not marked."""

        kind = "word"

    config = load_task_config(TASK, "tiny", ["parsing.next_word=true"])
    with pytest.raises(SettingError, match="needs sentencepiece subwords"):
        ParserRun(tmp_path, config, Words()).complete(None)


def test_a_parser_does_not_read_text(tmp_path):
    from heedful.tokenization.tokenizer import Tokenizer

    folder, config = open_run(tmp_path)
    assert config.data.reading == "exact"
    run = Run(folder, config, Tokenizer.load(folder.path))
    assert run.with_reading("exact") is run and not run.reads_text
    with pytest.raises(SettingError, match="`reading` must not be 'text'"):
        run.with_reading("text")
