"""Trees as training text."""

import errno

import pytest

from heedful.config.load import load_task_config
from heedful.errors import SettingError, TextError
from heedful.preparation.training_data import Preparation
from heedful.runs.folder import RunFolder
from heedful.tasks.parsing.task import TASK
from heedful.tasks.parsing.text import find_text, held_out, tree_pairs
from heedful.tasks.parsing.trees.read import parse_trees

TREES = """( (S (NP-SBJ (DT a) (NN b)) (VP (VBZ c) (NP (-NONE- *)))) )
(S (NP (NN D)) (VP (VBZ e) (ADJP (JJ f))))
"""
CONFIG = load_task_config(TASK, "tiny", ["data.subwords=character", "data.max_length=10"])


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "trees.mrg"
    file.write_text(TREES, encoding="utf-8")
    return file


def test_words_and_symbols_are_written_and_what_is_left_out_is_named(file, tmp_path):
    text, run = find_text(file), RunFolder(tmp_path / "run")
    run.path.mkdir()
    text.prepare(Preparation(run, CONFIG, 1, print))
    assert (run.path / "trees" / "train.words").read_text() == "a b c\nD e f\n"
    assert (run.path / "trees" / "train.symbols").read_text() == (
        "(S (NP XX XX )NP (VP XX )VP )S\n(S (NP XX )NP (VP XX (ADJP XX )ADJP )VP )S\n"
    )
    cleaned, too_long = text.report((), None)
    assert cleaned == (
        "2 trees with 6 words; 1 empty node left out; function tags cut from 1 label"
    )
    assert "1 tree with more than 10 symbols" in too_long
    assert "number 2 with 11" in too_long
    assert text.describe(CONFIG) == cleaned


def test_too_long_trees_are_numbered_as_in_the_file(file, tmp_path):
    file.write_text(f"(S (-NONE- *))\n{TREES}", encoding="utf-8")
    text, run = find_text(file), RunFolder(tmp_path / "run")
    run.path.mkdir()
    text.prepare(Preparation(run, CONFIG, 1, print))
    assert any("number 3 with 11" in note for note in text.report((), None))


def test_text_that_could_not_be_written_is_written_again(file, tmp_path, monkeypatch):
    run = RunFolder(tmp_path / "run")
    run.path.mkdir()
    synced = []

    def fail_at_second(descriptor):
        synced.append(descriptor)
        if len(synced) == 2:
            raise OSError(errno.ENOSPC, "no space left")

    with monkeypatch.context() as patch:
        patch.setattr("heedful.files.os.fsync", fail_at_second)
        with pytest.raises(OSError, match="no space left"):
            find_text(file).prepare(Preparation(run, CONFIG, 1, print))
    find_text(file).prepare(Preparation(run, CONFIG, 1, print))
    written = (run.path / "trees" / "train.symbols").read_text(encoding="utf-8")
    assert len(written.splitlines()) == 2


def test_held_out_trees_are_pairs_with_a_digest(file):
    (sources, symbols), sizes = held_out(file, CONFIG)
    assert sources[0] == "a b c"
    assert symbols[0].startswith("(S (NP XX")
    assert set(sizes["valid_source"][0]) == {"file", "bytes", "digest"}


def test_lower_case_is_of_words_alone():
    parsing = CONFIG.with_settings({"parsing.lower_case": True}).parsing
    (pair,) = tree_pairs(list(parse_trees(["(S (NN A))"], "text")), parsing)
    assert pair == ("a", "(S XX )S")


def test_a_file_without_a_tree_is_refused(tmp_path):
    empty = tmp_path / "empty"
    empty.write_text("(S (-NONE- *))\n", encoding="utf-8")
    with pytest.raises(TextError, match="must hold trees with words, but has none"):
        find_text(empty).describe(CONFIG)


def test_a_parser_is_not_trained_from_text(tmp_path):
    from heedful.training.options import TrainingOptions
    from heedful.training.setup import TrainingSetup

    for name in ("a", "b"):
        (tmp_path / name).write_text("a\n")
    options = TrainingOptions(
        source=tmp_path / "a",
        target=tmp_path / "b",
        settings={
            "parsing.linearisation": "t2t",
            "data.shared_vocabulary": False,
            "data.target_subwords": "symbols",
            "model.tie_embeddings": "none",
        },
    )
    with pytest.raises(SettingError, match="use `heedful parse train`"):
        TrainingSetup.resolve("tiny", options)
