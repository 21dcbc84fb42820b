import pytest

from heedful.config.recipes import RECIPES, describe, recipe, recipe_names
from heedful.config.schema import RunConfig, setting_fields
from heedful.config.sequence_recipes import SEQUENCE_RECIPES
from heedful.errors import SettingError
from heedful.families.registry import are_offered
from heedful.runs.run import flat_settings
from heedful.tasks.registry import task_recipes
from tests.support.families import missing

# Table 3 as printed: layers, d_model, d_ff, heads, d_k, d_v, dropout, smoothing, steps, and the
# millions of parameters where the paper gives them.
TABLE_3 = {
    "table3-base": (6, 512, 2048, 8, 64, 64, 0.1, 0.1, 100_000, 65),
    "table3-a-1": (6, 512, 2048, 1, 512, 512, 0.1, 0.1, 100_000, None),
    "table3-a-4": (6, 512, 2048, 4, 128, 128, 0.1, 0.1, 100_000, None),
    "table3-a-16": (6, 512, 2048, 16, 32, 32, 0.1, 0.1, 100_000, None),
    "table3-a-32": (6, 512, 2048, 32, 16, 16, 0.1, 0.1, 100_000, None),
    "table3-b-16": (6, 512, 2048, 8, 16, 64, 0.1, 0.1, 100_000, 58),
    "table3-b-32": (6, 512, 2048, 8, 32, 64, 0.1, 0.1, 100_000, 60),
    "table3-c-layers-2": (2, 512, 2048, 8, 64, 64, 0.1, 0.1, 100_000, 36),
    "table3-c-layers-4": (4, 512, 2048, 8, 64, 64, 0.1, 0.1, 100_000, 50),
    "table3-c-layers-8": (8, 512, 2048, 8, 64, 64, 0.1, 0.1, 100_000, 80),
    "table3-c-width-256": (6, 256, 2048, 8, 32, 32, 0.1, 0.1, 100_000, 28),
    "table3-c-width-1024": (6, 1024, 2048, 8, 128, 128, 0.1, 0.1, 100_000, 168),
    "table3-c-ff-1024": (6, 512, 1024, 8, 64, 64, 0.1, 0.1, 100_000, 53),
    "table3-c-ff-4096": (6, 512, 4096, 8, 64, 64, 0.1, 0.1, 100_000, 90),
    "table3-d-dropout-0.0": (6, 512, 2048, 8, 64, 64, 0.0, 0.1, 100_000, None),
    "table3-d-dropout-0.2": (6, 512, 2048, 8, 64, 64, 0.2, 0.1, 100_000, None),
    "table3-d-smoothing-0.0": (6, 512, 2048, 8, 64, 64, 0.1, 0.0, 100_000, None),
    "table3-d-smoothing-0.2": (6, 512, 2048, 8, 64, 64, 0.1, 0.2, 100_000, None),
    "table3-e-learned": (6, 512, 2048, 8, 64, 64, 0.1, 0.1, 100_000, None),
    # 213 million is printed here and met by no vocabulary that meets the other rows.
    "table3-big": (6, 1024, 4096, 16, 64, 64, 0.3, 0.1, 300_000, None),
}


def head_widths(config: RunConfig) -> tuple[int, int]:
    model = config.model
    default = model.d_model // model.heads
    return model.d_k or default, model.d_v or default


def parameters(config: RunConfig) -> int:
    model = config.model
    d, ff = model.d_model, model.d_ff
    d_k, d_v = (model.heads * width for width in head_widths(config))
    attention = 2 * (d * d_k + d_k) + (d * d_v + d_v) + (d_v * d + d)
    feed_forward = (d * ff + ff) + (ff * d + d)
    norm = 2 * d
    encoder_layer = attention + feed_forward + 2 * norm
    decoder_layer = 2 * attention + feed_forward + 3 * norm
    multiple = config.data.vocabulary_multiple
    rows = -(-config.data.vocabulary_size // multiple) * multiple
    return rows * d + model.encoder_layers * encoder_layer + model.decoder_layers * decoder_layer


def differences(one: RunConfig, other: RunConfig) -> set[str]:
    ours, theirs = flat_settings(one), flat_settings(other)
    return {name for name in setting_fields() if ours[name] != theirs[name]}


OF_FAMILIES = {
    name
    for families, names in {
        ("recurrent",): "sutskever bahdanau luong gnmt deep-att envi recurrent-small",
        ("convs2s",): "convs2s-en-de convs2s-en-fr fconv-iwslt convolutional-small",
        ("bytenet",): "bytenet",
        ("experts",): "moe-small",
        ("experts", "recurrent"): "moe moe-2048",
    }.items()
    if not missing(families)
    for name in names.split()
}


def test_every_recipe_of_the_design_is_there():
    others = {
        *("paper-base", "paper-base-en-fr", "paper-big", "paper-big-en-fr"),
        *("t2t-base", "t2t-big", "tiny", "small", "multi30k"),
        *SEQUENCE_RECIPES,
        *(name for name, entry in task_recipes() if are_offered(entry.settings)),
    }
    assert set(recipe_names()) == others | set(TABLE_3) | set(OF_FAMILIES)
    assert len(recipe_names()) == len(RECIPES)


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_carries_its_name_its_reading_and_one_sentence(name):
    config = recipe(name)
    assert config == RECIPES[name]()
    assert config.recipe == name
    family = name.split("-")[0]
    assert config.reading == {"paper": "paper", "table3": "paper", "t2t": "t2t"}.get(family, "own")
    assert describe(name).endswith(".")
    assert len(describe(name)) < 90


def test_recipes_are_described_differently():
    assert len({describe(name) for name in recipe_names()}) == len(recipe_names())


def test_the_defaults_are_the_paper_s_base_model():
    assert differences(RunConfig(), recipe("paper-base")) == {"recipe", "reading"}


@pytest.mark.parametrize("name", TABLE_3)
def test_table_3_is_as_printed(name):
    config = recipe(name)
    model, train = config.model, config.train
    layers, d_model, d_ff, heads, d_k, d_v, dropout, smoothing, steps, millions = TABLE_3[name]
    assert (model.encoder_layers, model.decoder_layers) == (layers, layers)
    assert (model.d_model, model.d_ff, model.heads) == (d_model, d_ff, heads)
    assert head_widths(config) == (d_k, d_v)
    assert (model.dropout, train.label_smoothing, train.steps) == (dropout, smoothing, steps)
    assert config.data.vocabulary_size == 40_960
    assert model.positions == ("learned" if name == "table3-e-learned" else "interleaved")
    if millions is not None:
        assert round(parameters(config) / 1e6) == millions


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("paper-base", 63_082_496),
        ("paper-big", 214_245_376),
        ("t2t-base", 65_110_016),
        ("t2t-big", 218_300_416),
    ],
)
def test_parameters_are_those_of_the_two_readings(name, count):
    assert parameters(recipe(name)) == count


@pytest.mark.parametrize("size", ["base", "big"])
def test_the_authors_code_differs_from_the_text_in_these_settings(size):
    assert differences(recipe(f"paper-{size}"), recipe(f"t2t-{size}")) == {
        "recipe",
        "reading",
        "model.positions",
        "model.decoder_start",
        "data.vocabulary_multiple",
        "train.batch_tokens",
        "train.batch_counting",
        "train.block_tokens",
        "train.smoothing_target",
        "search.eos_candidates",
    }


def test_big_models_differ_from_base_models_as_the_paper_says():
    big = recipe("paper-big")
    assert differences(recipe("paper-base"), big) == {
        "recipe",
        "model.d_model",
        "model.d_ff",
        "model.heads",
        "model.dropout",
        "train.steps",
        "train.keep_last",
    }
    assert (big.train.keep_last, recipe("paper-base").train.keep_last) == (20, 5)
    assert (big.model.dropout, recipe("paper-big-en-fr").model.dropout) == (0.3, 0.1)


def test_french_has_its_own_vocabulary():
    vocabulary = {"recipe", "data.vocabulary_size", "data.subwords"}
    base, big = recipe("paper-base-en-fr"), recipe("paper-big-en-fr")
    assert differences(recipe("paper-base"), base) == vocabulary
    assert differences(recipe("paper-big"), big) == vocabulary | {"model.dropout"}
    assert (base.data.vocabulary_size, base.data.subwords) == (32_000, "unigram")
    assert base.data == big.data


def test_small_has_the_shape_that_was_promised():
    config = recipe("small")
    model = config.model
    assert (model.encoder_layers, model.decoder_layers, model.heads) == (3, 3, 4)
    assert (model.d_model, model.d_ff) == (256, 1024)
    assert (config.train.batch_tokens, config.data.vocabulary_size) == (4096, 8000)


def test_an_unknown_recipe_gets_a_suggestion_and_the_way_to_list_them():
    for ask in (recipe, describe):
        with pytest.raises(SettingError) as caught:
            ask("paper-bas")
        message = str(caught.value)
        assert "`paper-bas`" in message
        assert "did you mean `paper-base`" in message
        assert "heedful train --recipes" in message


def test_a_recipe_like_no_other_gets_no_suggestion():
    with pytest.raises(SettingError) as caught:
        recipe("zzzz")
    assert "did you mean" not in str(caught.value)
    assert "heedful train --recipes" in str(caught.value)
