import json
import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from heedful.config.model import ModelConfig
from heedful.config.schema import (
    DataConfig,
    RunConfig,
    SearchConfig,
    acting_settings,
    setting_conditions,
    setting_fields,
)
from heedful.config.train import TrainConfig
from heedful.errors import SettingError


def complaint(settings: dict[str, object]) -> str:
    with pytest.raises(SettingError) as caught:
        RunConfig().with_settings(settings)
    message = str(caught.value)
    assert "\n" not in message
    assert "pydantic" not in message
    return message


def test_every_setting_has_one_or_two_sentences_of_help():
    fields = setting_fields()
    assert {
        "recipe",
        "reading",
        "model.d_k",
        "data.max_length_ratio",
        "search.beam",
    } <= fields.keys()
    for name, field in fields.items():
        assert field.description is not None, name
        assert re.fullmatch(r"[A-Z0-9].*\.", field.description), name
        assert "\n" not in field.description, name


def test_settings_survive_json():
    config = RunConfig().with_settings({"train.minutes": 60, "model.d_k": 64})
    assert RunConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_missing_settings_take_their_defaults():
    config = RunConfig.from_dict({"train": {"steps": 7}})
    assert config.train.steps == 7
    assert config.train.warmup == 4000
    assert config.model == ModelConfig()


def test_with_settings_leaves_the_original_alone():
    config = RunConfig()
    changed = config.with_settings({"train.steps": 5, "recipe": "mine"})
    assert (changed.train.steps, changed.recipe) == (5, "mine")
    assert config == RunConfig()


def test_settings_that_fit_only_together_may_change_together():
    config = RunConfig().with_settings({"model.d_model": 96, "model.heads": 12})
    assert (config.model.d_model, config.model.heads) == (96, 12)


def test_a_setting_cannot_be_assigned():
    with pytest.raises(ValueError, match="frozen"):
        RunConfig().train.steps = 5


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("model.dropout", 1.0, "must be below 1, but got 1.0"),
        ("model.dropout", -0.1, "must be at least 0"),
        ("model.d_model", 0, "must be at least 1"),
        ("model.d_model", 10**12, "must be at most 1,000,000, but got 1000000000000"),
        ("model.d_ff", 10**6 + 1, "must be at most 1,000,000"),
        ("model.encoder_layers", 10**9, "must be at most 1,000"),
        ("model.encoder", "mean", "must be 'transformer'"),
        ("model.norm", "middle", "must be 'post', 'pre' or 'pre-no-final', but got 'middle'"),
        ("model.projection_bias", "yes", "must be true or false"),
        ("model.norm_epsilon", 0.0, "must be above 0"),
        ("data.max_length", 10**18, "must be at most 1,000,000,000,000"),
        ("data.vocabulary_size", -3, "must be at least 1"),
        ("data.max_length_ratio", 0.5, "must be at least 1"),
        ("data.source_language", "e n", "must be a code of letters"),
        ("train.steps", 0, "must be at least 1"),
        ("train.steps", 1.5, "must be a whole number, but got 1.5"),
        ("train.steps", "5", "must be a whole number, but got '5'"),
        ("train.steps", True, "must be a whole number, but got true"),
        ("train.steps", None, "must be a whole number, but got none"),
        ("train.minutes", 0, "must be above 0"),
        ("train.clip_norm", float("nan"), "must be a finite number"),
        ("train.learning_rate_factor", float("inf"), "must be a finite number"),
        ("train.label_smoothing", 1.0, "must be below 1"),
        ("train.beta2", 1.0, "must be below 1"),
        ("train.keep_last", 0, "must be at least 1"),
        ("train.seed", -1, "must be at least 0"),
        ("train.threads", -1, "must be at least 0"),
        ("train.weight_decay", -0.1, "must be at least 0"),
        ("train.device", "gpu", "must be auto, cpu, cuda or cuda:N, but got 'gpu'"),
        ("train.device", "cuda:", "must be auto, cpu, cuda or cuda:N"),
        ("search.beam", 0, "must be at least 1"),
        ("search.length_penalty", "gnmt", "must be gnmt:ALPHA, power:ALPHA or none"),
        ("search.length_penalty", "gnmt:-1", "must be gnmt:ALPHA, power:ALPHA or none"),
        ("search.length_penalty", "power:10.5", "must be gnmt:ALPHA, power:ALPHA or none"),
        ("search.max_length", "output+5", "must be input+N, or N above 0"),
        ("search.max_length", "0", "must be input+N, or N above 0"),
        ("search.max_length", True, "must be text, but got true"),
        ("recipe", "", "must be letters, digits"),
        ("reading", "mine", "must be 'paper', 't2t' or 'own'"),
        ("model", 5, "must be a table of settings, but got 5"),
    ],
)
def test_a_value_out_of_range_is_named_with_what_must_hold_and_what_came(name, value, rule):
    message = complaint({name: value})
    assert f"`{name}` {rule}" in message
    assert "but got" in message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("train.device", "cuda:1"),
        ("search.length_penalty", "power:1"),
        ("search.length_penalty", "power:10.0"),
        ("search.length_penalty", "none"),
        ("search.max_length", "200"),
        ("search.max_length", "input+0"),
        ("train.minutes", 90),
        ("train.keep_best", 0),
        ("train.validate_steps", None),
        ("data.target_language", "zh-Hans"),
        ("model.dropout", 0.0),
    ],
)
def test_a_value_in_range_is_kept(name, value):
    table, key = name.split(".")
    changed = RunConfig().with_settings({name: value})
    assert getattr(getattr(changed, table), key) == value


STEP = {"train.schedule": "step", "train.learning_rate": 0.5, "train.decay_steps": 9}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"train.learning_rate": 1e-3},
            "`train.learning_rate` applies only if `train.schedule` is not paper, but that is "
            "paper; leave `train.learning_rate` out, or set `train.schedule` to a value other",
        ),
        (
            {"train.momentum": 0.9},
            "`train.momentum` applies only if `train.optimizer` is sgd, but that is adam; leave "
            "`train.momentum` out, or set `train.optimizer` to sgd",
        ),
        (
            {"train.optimizer": "sgd", "train.nesterov": True},
            "`train.nesterov` applies only if `train.momentum` is not 0.0, but that is 0.0",
        ),
        (
            {**STEP, "train.plateau_patience": 3},
            "`train.plateau_patience` applies only if `train.schedule` is plateau, but that is",
        ),
        (
            {**STEP, "train.learning_rate_factor": 2.0},
            "`train.learning_rate_factor` applies only if `train.schedule` is paper",
        ),
        ({**STEP, "train.learning_rate": None}, "`train.learning_rate` must be set"),
        ({**STEP, "train.decay_steps": None}, "`train.decay_steps` must be set"),
        ({**STEP, "train.min_learning_rate": 0.6}, "`train.min_learning_rate` must be at most"),
        ({"train.warmup": 0}, "`train.warmup` must be at least 1 for `train.schedule` = paper"),
        (
            {
                "train.schedule": "plateau",
                "train.learning_rate": 0.1,
                "train.validate_steps": None,
            },
            "`train.schedule` = plateau lowers the learning rate at validations and needs "
            "`train.validate_steps`",
        ),
        (
            {"train.schedule": "cosin"},
            "must be 'paper', 'constant', 'inverse_sqrt', 'cosine', 'plateau' or 'step'",
        ),
    ],
)
def test_a_setting_that_would_not_act_or_misses_another_is_refused(settings, message):
    assert message in complaint(settings)


def test_a_setting_that_does_not_act_may_have_its_default():
    config = RunConfig().with_settings({**STEP, "train.plateau_patience": 1})
    assert RunConfig.from_dict(config.to_dict()) == config
    assert "train.plateau_patience" not in acting_settings(config)
    assert {"train.decay_start", "train.decay_factor", "train.warmup"} <= acting_settings(config)


def test_what_no_longer_acts_because_of_a_change_is_reset():
    paper = RunConfig().with_settings({"train.learning_rate_factor": 4.5, "train.beta2": 0.9})
    step = paper.with_settings(STEP)
    assert step.train.learning_rate_factor == 1.0
    assert step.train.beta2 == 0.9
    nesterov = step.with_settings(
        {"train.optimizer": "sgd", "train.momentum": 0.5, "train.nesterov": True}
    )
    assert nesterov.train.beta2 == 0.98
    again = nesterov.with_settings({"train.optimizer": "adam", "train.schedule": "paper"})
    assert again == RunConfig()
    with pytest.raises(SettingError, match=r"`train\.momentum` applies only if"):
        nesterov.with_settings({"train.optimizer": "adam", "train.momentum": 0.5})


# Stands for the names of families with a trait, where none is here.
NOT_HERE = ("a family that is not registered",)


def test_every_condition_names_a_setting_and_values_that_it_can_have():
    fields = setting_fields()
    for conditions in setting_conditions().values():
        for condition in conditions:
            values = condition.values + condition.unless
            if values == NOT_HERE:
                continue
            fits = {
                (other, value): can_be(fields[other].annotation, value)
                for other, value in product(condition.names, values)
            }
            if condition.values:
                assert all(any(fits[other, value] for value in values) for other in condition.names)
            assert all(any(fits[other, value] for other in condition.names) for value in values)


def can_be(annotation, value):
    try:
        TypeAdapter(annotation).validate_python(value, strict=True)
    except ValidationError:
        return False
    return True


def test_a_maximum_length_may_be_a_bare_number():
    assert RunConfig().with_settings({"search.max_length": 100}).search.max_length == "100"


def test_one_message_names_every_wrong_setting():
    message = complaint({"train.steps": -5, "model.dropout": 2.0, "serch.beam": 3})
    for part in ("`train.steps`", "-5", "`model.dropout`", "2.0", "`serch.beam`", "`search.beam`"):
        assert part in message


@pytest.mark.parametrize(
    ("unknown", "suggestion"),
    [
        ("train.stepz", "`train.steps`?"),
        ("steps", "`train.steps`?"),
        ("trian.steps", "`train.steps`?"),
        ("train.dropout", "`model.dropout`?"),
        ("model.droput", "`model.dropout`?"),
        ("max_length", "`data.max_length` or `search.max_length`?"),
        ("serch.max_length", "did you mean `search.max_length`?"),
        ("recipes", "`recipe`?"),
    ],
)
def test_an_unknown_setting_gets_a_suggestion(unknown, suggestion):
    message = complaint({unknown: 5})
    assert message.startswith(f"unknown setting `{unknown}`; did you mean ")
    assert message.endswith(suggestion)


def test_a_setting_like_no_other_is_refused_with_the_way_to_list_them():
    assert "--print-config" in complaint({"train.zzzzzz": 5})


def test_unknown_tables_are_named_down_to_the_setting():
    with pytest.raises(SettingError, match=r"`trian\.steps`; did you mean `train\.steps`\?"):
        RunConfig.from_dict({"trian": {"steps": 5}})


@pytest.mark.parametrize("values", [[], "text", None, 5])
def test_settings_that_are_no_table_are_refused(values):
    with pytest.raises(SettingError, match="must be tables"):
        RunConfig.from_dict(values)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: ModelConfig(heads=0), "model.heads"),
        (lambda: ModelConfig(heads=7), "model.heads"),
        (lambda: DataConfig(max_length=0), "data.max_length"),
        (lambda: TrainConfig(warmup=0), "train.warmup"),
        (lambda: SearchConfig(length_penalty="x"), "search.length_penalty"),
    ],
)
def test_a_table_made_alone_names_its_settings_in_full(make, name):
    with pytest.raises(SettingError, match=f"`{name}`"):
        make()


def test_heads_that_do_not_divide_name_their_neighbors_that_do():
    message = complaint({"model.heads": 7})
    assert "`model.heads` must divide `model.d_model` (512)" in message
    assert "but it is 7" in message
    assert "set it to 4 or 8" in message


def test_heads_of_one_side_are_checked_too():
    message = complaint({"model.decoder_heads": 24})
    assert "`model.decoder_heads`" in message
    assert "set it to 16 or 32" in message


def test_heads_that_no_side_uses_are_not_checked():
    sides = {"model.encoder_heads": 8, "model.decoder_heads": 4}
    assert RunConfig().with_settings({"model.heads": 7, **sides}).model.heads == 7


def test_heads_need_not_divide_when_their_widths_are_given():
    assert ModelConfig(heads=7, d_k=64, d_v=64).heads == 7
    with pytest.raises(SettingError, match=r"model\.d_v"):
        ModelConfig(heads=7, d_k=64)


@given(half=st.integers(1, 600), heads=st.integers(1, 1300))
def test_suggested_heads_always_divide(half, heads):
    width = 2 * half
    if width % heads == 0:
        assert ModelConfig(d_model=width, heads=heads).heads == heads
        return
    with pytest.raises(SettingError) as caught:
        ModelConfig(d_model=width, heads=heads)
    suggested = re.search(r"set it to ([0-9]+)(?: or ([0-9]+))?", str(caught.value))
    assert suggested is not None
    numbers = [int(number) for number in suggested.groups() if number]
    assert all(width % number == 0 for number in numbers)
    assert numbers[0] < heads
    assert len(numbers) == (1 if heads > width else 2)


def test_sines_and_cosines_need_an_even_width():
    with pytest.raises(SettingError, match=r"`model\.d_model` must be even"):
        ModelConfig(d_model=63, heads=3)
    assert ModelConfig(d_model=63, heads=3, positions="learned").d_model == 63


def test_one_table_for_all_needs_a_shared_vocabulary():
    message = complaint({"data.shared_vocabulary": False})
    assert "`model.tie_embeddings` = all" in message
    assert "`data.shared_vocabulary`" in message
    separate = {"data.shared_vocabulary": False, "model.tie_embeddings": "output"}
    assert not RunConfig().with_settings(separate).data.shared_vocabulary


def test_patience_needs_validations():
    message = complaint({"train.patience": 3, "train.validate_steps": None})
    assert "`train.patience`" in message
    assert "`train.validate_steps`" in message
