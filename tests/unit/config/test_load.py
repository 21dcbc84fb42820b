import tomllib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heedful.config.load import load_config, to_toml
from heedful.config.recipes import recipe, recipe_names
from heedful.config.schema import RunConfig, setting_conditions, setting_fields
from heedful.errors import SettingError
from heedful.settings.conditions import flat

COUNTS = st.integers(1, 10**12)
WIDTHS = st.integers(1, 10**6)
POSITIVE = st.floats(min_value=0, exclude_min=True, allow_nan=False, allow_infinity=False)
SHARES = st.floats(0, 1, exclude_max=True)
LANGUAGES = st.from_regex(r"[\w-]{0,8}", fullmatch=True)

# Some settings of every kind: text, choices, numbers, switches, and those that may be none.
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "recipe": st.from_regex(r"[\w.+-]{1,8}", fullmatch=True),
        "reading": st.sampled_from(["paper", "t2t", "own"]),
        "model.d_model": st.sampled_from([16, 96, 512]),
        "model.heads": st.sampled_from([1, 2, 4, 8, 16]),
        "model.d_k": st.none() | WIDTHS,
        "model.encoder_heads": st.none() | st.sampled_from([1, 2, 4]),
        "model.dropout": SHARES,
        "model.norm_epsilon": POSITIVE,
        "model.output_bias": st.booleans(),
        "model.tie_embeddings": st.sampled_from(["output", "none"]),
        "data.source_language": LANGUAGES,
        "data.max_length_ratio": st.none() | st.floats(1, 1e300),
        "train.steps": COUNTS,
        "train.minutes": st.none() | POSITIVE,
        "train.checkpoint_minutes": st.none() | POSITIVE,
        "train.validate_steps": st.none() | COUNTS,
        "train.seed": st.integers(0, 2**63 - 1),
        "train.device": st.sampled_from(["auto", "cpu", "cuda", "cuda:3"]),
        "search.length_penalty": st.sampled_from(["none", "gnmt:0.6", "power:1"]),
        "search.max_length": st.sampled_from(["input+50", "100"]),
    },
)


def complaint(name: object, changes: tuple[str, ...] = ()) -> str:
    with pytest.raises(SettingError) as caught:
        load_config(str(name), changes)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.fixture
def write(tmp_path):
    def write_settings(text: str | bytes):
        path = tmp_path / "mine.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write_settings


@given(changes=CHANGES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_printed_reads_back_equal(changes, write):
    config = RunConfig().with_settings(changes)
    path = write(to_toml(config))
    assert load_config(str(path)) == config
    assert RunConfig.from_dict(config.to_dict()) == config


@given(changes=CHANGES)
def test_every_setting_can_be_given_on_the_command_line(changes):
    config = RunConfig().with_settings(changes)
    values = flat(config.to_dict())
    texts = []
    for name in setting_fields():
        value = values[name]
        plain = value is None or isinstance(value, bool)
        texts.append(f"{name}={str(value).lower() if plain else value}")
    assert load_config("tiny", texts) == config


@pytest.mark.parametrize("name", recipe_names())
def test_a_built_in_recipe_is_found_and_its_print_reads_back(name, write):
    assert load_config(name) == recipe(name)
    assert load_config(str(write(to_toml(recipe(name))))) == recipe(name)


@pytest.mark.parametrize(
    ("changes", "acting", "idle"),
    [
        ([], ["learning_rate_factor", "beta2"], ["learning_rate", "momentum", "nesterov"]),
        (
            ["train.schedule=step", "train.learning_rate=1", "train.decay_steps=9"],
            ["learning_rate", "decay_factor", "decay_start", "min_learning_rate"],
            ["learning_rate_factor", "plateau_patience"],
        ),
        (["train.optimizer=sgd"], ["momentum", "weight_decay"], ["beta1", "epsilon", "nesterov"]),
        (["train.optimizer=sgd", "train.momentum=0.9"], ["nesterov"], ["beta1"]),
    ],
)
def test_the_print_holds_every_setting_that_acts_below_its_help(changes, acting, idle):
    text = to_toml(load_config("small", changes))
    tables = tomllib.loads(text)
    lines = text.splitlines()
    for name, field in setting_fields().items():
        printed = name in flat(tables)
        assert printed == (f"# {field.description}" in lines)
        assert printed or name in setting_conditions()
    assert tables["train"].keys() >= set(acting)
    assert not tables["train"].keys() & set(idle)
    assert 'd_k = "none"' in lines
    assert lines[lines.index("steps = 20000") - 1].startswith("# ")


def test_a_file_starts_from_the_recipe_it_names(write):
    path = write('base = "small"\n[train]\nsteps = 7\n[model]\ndropout = 0\n')
    expected = recipe("small").with_settings({"train.steps": 7, "model.dropout": 0.0})
    assert load_config(str(path)) == expected


def test_a_file_that_changes_the_schedule_drops_what_its_base_says_of_another(write):
    base = recipe("multi30k").train
    assert base.learning_rate_factor != 1.0
    path = write("base = 'multi30k'\n[train]\nschedule = 'constant'\nlearning_rate = 0.1\n")
    config = load_config(str(path))
    assert (config.train.learning_rate, config.train.learning_rate_factor) == (0.1, 1.0)
    assert load_config(str(write(to_toml(config)))) == config
    path = write("base = 'tiny'\n[train]\nmomentum = 0.9\n")
    assert "`train.momentum` applies only if `train.optimizer` is sgd" in complaint(path)


def test_a_file_without_a_base_starts_from_the_defaults(write):
    path = write("[train]\nsteps = 7\ncheckpoint_minutes = 'none'\n")
    expected = {"train.steps": 7, "train.checkpoint_minutes": None}
    assert load_config(str(path)) == RunConfig().with_settings(expected)


def test_a_byte_order_mark_and_dos_line_ends_do_no_harm(write):
    path = write(b"\xef\xbb\xbfbase = 'tiny'\r\n[train]\r\nsteps = 7\r\n")
    assert load_config(str(path)).train.steps == 7


def test_changes_win_over_the_file_and_later_ones_over_earlier_ones(write):
    path = write("[train]\nsteps = 7\nwarmup = 8\n")
    config = load_config(str(path), ["train.steps=9", "train.steps = 10"])
    assert (config.train.steps, config.train.warmup) == (10, 8)


def test_values_are_read_as_the_type_of_their_setting():
    config = load_config(
        "small",
        [
            "train.steps=1_000",
            "model.dropout=3e-1",
            "train.clip_norm=1",
            "train.seed=3.0",
            "train.checkpoint_minutes=none",
            "model.output_bias=True",
            "search.max_length=100",
            "search.length_penalty=none",
            "data.source_language=no",
        ],
    )
    assert (config.train.steps, config.model.dropout, config.train.clip_norm) == (1000, 0.3, 1.0)
    assert type(config.train.seed) is int and config.train.seed == 3
    assert config.train.checkpoint_minutes is None
    assert config.model.output_bias is True
    assert (config.search.max_length, config.search.length_penalty) == ("100", "none")
    assert config.data.source_language == "no"


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ("train.stepz=5", ["unknown setting `train.stepz`; did you mean `train.steps`?"]),
        ("steps=5", ["unknown setting `steps`; did you mean `train.steps`?"]),
        ("train.steps", ["must be key=value", "got 'train.steps'"]),
        ("=5", ["must be key=value"]),
        ("train.steps=2.5", ["`train.steps` must be a whole number, but got '2.5'"]),
        ("train.steps=many", ["`train.steps` must be a whole number, but got 'many'"]),
        ("train.steps=", ["`train.steps` must be a whole number, but got ''"]),
        ("train.steps=none", ["`train.steps` must be a whole number"]),
        ("model.dropout=1.5", ["`model.dropout` must be below 1, but got 1.5"]),
        ("model.dropout=nan", ["`model.dropout` must be a finite number"]),
        ("model.output_bias=maybe", ["`model.output_bias` must be true or false", "'maybe'"]),
        (
            "model.tie_embeddings=some",
            ["`model.tie_embeddings` must be 'all', 'output', 'embeddings' or 'none'"],
        ),
        ("model.heads=7", ["`model.heads` must divide", "set it to 4 or 8"]),
    ],
)
def test_a_wrong_change_is_explained(change, parts):
    message = complaint("small", (change,))
    for part in parts:
        assert part in message


def test_a_missing_file_is_named(tmp_path):
    message = complaint(tmp_path / "nowhere.toml")
    assert "nowhere.toml" in message
    assert "No such file" in message


def test_a_folder_is_no_settings_file(tmp_path):
    assert "Is a directory" in complaint(tmp_path)


def test_a_name_that_is_neither_recipe_nor_file_gets_a_suggestion():
    assert "did you mean `small`" in complaint("smal")


def test_malformed_toml_names_file_and_line(write):
    path = write("[train]\nsteps = 5\nwarmup 7\n")
    message = complaint(path)
    assert str(path) in message
    assert "line 3" in message


def test_text_that_is_not_utf_8_names_file_and_byte(write):
    path = write(b"recipe = '\xff'\n")
    message = complaint(path)
    assert str(path) in message
    assert "byte at offset 10" in message


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[train]\nstepz = 5\n", "unknown setting `train.stepz`; did you mean `train.steps`?"),
        ("[trian]\nsteps = 5\n", "unknown setting `trian.steps`; did you mean `train.steps`?"),
        ("steps = 5\n", "unknown setting `steps`; did you mean `train.steps`?"),
        ("train = 5\n", "`train` must be a table of settings"),
        ("[train]\nsteps = '5'\n", "`train.steps` must be a whole number, but got '5'"),
        ("[train.steps]\nx = 5\n", "`train.steps` must be a whole number"),
        ("base = 'small'\n[recipe]\nx = 5\n", "`recipe` must be text"),
        ("base = 'smal'\n", "did you mean `small`"),
        ("recipe = 'tiny'\n[train]\nsteps = 3\n", 'write `base = "tiny"` instead to start from'),
        ("base = 5\n", "`5` is neither"),
        ("[model]\nheads = 7\n", "`model.heads` must divide"),
    ],
)
def test_a_wrong_setting_in_a_file_is_explained_with_the_file(write, text, part):
    path = write(text)
    message = complaint(path)
    assert message.startswith(f"{path}: ")
    assert part in message


def test_shared_layers_may_be_a_list_in_toml(write):
    path = write("[model]\nencoder_layers = 3\nencoder_sharing = [1, 1, 2]\n")
    assert load_config(str(path)).model.encoder_sharing == "1,1,2"
    words = complaint(write("[model]\nencoder_sharing = [1, true]\n"))
    assert "`model.encoder_sharing` must" in words
