"""The settings of parsing."""

import pytest

from heedful.config.load import load_config, load_task_config, to_toml
from heedful.errors import SettingError
from heedful.settings.conditions import flat
from heedful.tasks.parsing.config import parsing_clashes
from heedful.tasks.parsing.task import TASK


def test_a_recipe_becomes_a_parser():
    config = load_task_config(TASK, "small", ["train.steps=5"])
    assert config.parsing.linearisation == "vinyals"
    assert config.data.target_subwords == "symbols"
    assert config.train.best_by == "f1"
    assert not list(parsing_clashes(flat(config.to_dict())))


def test_what_a_file_sets_is_not_adapted(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('base = "small"\n[data]\nmax_length = 64\n[search]\nmax_length = "input+9"\n')
    config = load_task_config(TASK, str(path))
    assert config.parsing.linearisation == "vinyals"
    assert (config.data.max_length, config.search.max_length) == (64, "input+9")
    assert load_task_config(TASK, str(path), ["data.max_length=32"]).data.max_length == 32
    needed = '[data]\nshared_vocabulary = true\n[model]\ntie_embeddings = "all"\n'
    path.write_text(f'base = "small"\n{needed}')
    assert not load_task_config(TASK, str(path)).data.shared_vocabulary
    path.write_text(to_toml(load_config("small")))
    assert load_task_config(TASK, str(path)) == load_task_config(TASK, "small")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (["parsing.longest_chain=3"], "only if `parsing.linearisation` is not none"),
        (["train.best_by=f1"], "needs `parsing.linearisation`"),
        (["parsing.linearisation=t2t"], "data.shared_vocabulary` must be false"),
        (["data.target_subwords=symbols"], "only if `data.shared_vocabulary` is false"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, reason):
    with pytest.raises(SettingError, match=reason):
        load_config("tiny", settings)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (["parsing.word_numbers=4"], "`parsing.word_numbers` must be none with"),
        (["data.subwords=word"], "`data.subwords` must be bpe, unigram or character with"),
    ],
)
def test_words_are_found_in_one_way(settings, reason):
    with pytest.raises(SettingError, match=reason):
        load_task_config(TASK, "parsing-small-transformer", settings)


def test_words_of_trees_are_not_changed():
    with pytest.raises(SettingError, match=r"`data\.augment` must be empty for a parser"):
        load_config("parsing-small-transformer", ["data.augment=typos:0.1"])


def test_symbols_are_split_at_spaces():
    with pytest.raises(SettingError, match="target_subwords` must be symbols"):
        load_task_config(TASK, "tiny", ["data.target_subwords=as-source"])
