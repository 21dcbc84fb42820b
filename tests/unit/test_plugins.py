"""Plugins: what a file may register, what is refused, and what a run folder records."""

import hashlib
import json
import shutil
import subprocess
import sys
import warnings
from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import heedful
from heedful import plugins
from heedful.bench.random_run import make_random_run
from heedful.config.load import load_config, to_toml
from heedful.config.model import ModelConfig
from heedful.config.schema import RunConfig, setting_fields
from heedful.errors import ExchangeError, PluginError, RunFolderError, SettingError
from heedful.evaluation.validation import ValidationScorer
from heedful.exchange.convert import export_model
from heedful.families.build import build_model
from heedful.families.family import Family
from heedful.model.attention import MultiHeadAttention, scaled_dot_product_attention
from heedful.plugins import load_plugin, load_plugins, loaded_plugins, unload_plugin
from heedful.runs.checkpoint import load_weights
from heedful.runs.run import Run
from heedful.settings.table import SettingsTable
from heedful.training.objective.build import build_objective
from heedful.training.schedule import Schedule
from heedful.translation.engine import check_engine
from heedful.translation.translator import Translator
from tests.support.models import batch
from tests.support.plugins import HEAD, SCHEDULE, page_plugin, write_plugin

FAMILY = f"{HEAD}from heedful.families.family import Family\n"


@pytest.fixture(autouse=True)
def nothing_stays():
    """Forget what a test registers."""
    yield
    for plugin in loaded_plugins():
        unload_plugin(plugin)
    assert not any(registry.added() for registry in plugins.Registry.every)


@pytest.fixture
def conv(tmp_path):
    """The encoder of the how-to page, at most 60 lines of one file."""
    text = page_plugin("conv.py")
    assert len(text.splitlines()) <= 60
    return write_plugin(tmp_path, text, "conv.py")


@pytest.fixture
def run(conv, tmp_path):
    """A run with that encoder, which is loaded."""
    load_plugin(conv)
    return random_run(tmp_path / "run", load_config("tiny", ["model.encoder=conv"]), 50).folder


def random_run(folder, config, words):
    """Make a run with random weights."""
    folder.mkdir()
    return make_random_run(folder, config, words)


def forget_all():
    for plugin in loaded_plugins():
        unload_plugin(plugin)


def test_the_names_of_a_plugin_are_values_of_settings_until_it_is_forgotten(tmp_path):
    settings = ["train.schedule=flat", "train.learning_rate=0.5"]
    with pytest.raises(SettingError, match="'plateau' or 'step', but got 'flat'"):
        load_config("tiny", settings)
    plugin = load_plugin(write_plugin(tmp_path, SCHEDULE))
    config = load_config("tiny", settings)
    assert Schedule.of(config).rate(1) == Schedule.of(config).rate(900) == 0.5
    assert loaded_plugins() == (plugin,)
    assert plugin.sha256 == hashlib.sha256(SCHEDULE.encode()).hexdigest()
    unload_plugin(plugin)
    with pytest.raises(SettingError, match="'plateau' or 'step', but got 'flat'"):
        load_config("tiny", settings)


def test_settings_without_plugins_are_the_same_after_one_was_there(tmp_path):
    before = RunConfig().to_dict(), list(setting_fields()), RunConfig.model_json_schema()
    unload_plugin(load_plugin(write_plugin(tmp_path, page_plugin("conv.py"))))
    assert (RunConfig().to_dict(), list(setting_fields()), RunConfig.model_json_schema()) == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(:\n", "its line 1 raises SyntaxError"),
        ("x = 1\n\nraise KeyError('x')\n", "its line 3 raises KeyError: 'x'"),
        ("import nowhere_at_all\n", "its line 1 raises ModuleNotFoundError"),
        ("raise SystemExit(3)\n", "its line 1 raises SystemExit: 3"),
        ("x = 1\n", "must register something, but registers nothing"),
        ("", "must register something, but registers nothing"),
        (f"{HEAD}plugins.SCHEDULES.register('paper', print)\n", "'paper' belongs to heedful"),
        (f"{HEAD}plugins.SCHEDULES.register('a b', print)\n", "must be letters, digits"),
        (f"{HEAD}plugins.SCHEDULES.register('a', lambda x: x)\n", r"takes \(x\)"),
        (f"{HEAD}plugins.SCHEDULES.register('a', 5)\n", "but is int"),
        (f"{HEAD}plugins.METRICS.register('a', print)\n", "must be a `ValidationMetric`"),
        (
            f"{HEAD}plugins.METRICS.register('a', plugins.ValidationMetric('b', 'B', True, print))",
            "its name as `key`, but `key` is 'b'",
        ),
        (
            f"{HEAD}plugins.METRICS.register('a', plugins.ValidationMetric('a', 'A', True))",
            "but is str",
        ),
        (f"{HEAD}plugins.FAMILIES.register('a', object())\n", "derived from `Family`"),
        (
            f"{FAMILY}class A(Family):\n encoders = ('transformer',)\n"
            "plugins.FAMILIES.register('a', A())\n",
            "`model.encoder` already has 'transformer'",
        ),
        (
            f"{FAMILY}class A(Family):\n norms = ('rms')\nplugins.FAMILIES.register('a', A())\n",
            r"must have a tuple of strings as norms, such as \(\"mine\",\), but has 'rms'",
        ),
        (
            f"{FAMILY}class A(Family):\n settings = dict\nplugins.FAMILIES.register('a', A())\n",
            "a class derived from `SettingsTable` as settings",
        ),
        (
            f"{FAMILY}from heedful.settings.table import SettingsTable\n"
            "class T(SettingsTable):\n table = 'model.heads'\n"
            "class A(Family):\n settings = T\nplugins.FAMILIES.register('a', A())\n",
            r"a table of its own, such as model\.mine, but has 'model\.heads'",
        ),
        (
            f"{FAMILY}from heedful.settings.table import SettingsTable\n"
            "class T(SettingsTable):\n table = 'model.wide'\n width: int\n"
            "class A(Family):\n settings = T\nplugins.FAMILIES.register('a', A())\n",
            "a default for each setting, but `model.wide.width` has none",
        ),
        (
            f"{HEAD}plugins.METRICS.register('step', "
            "plugins.ValidationMetric('step', 'S', True, lambda references, language: len))",
            "must have another name",
        ),
        (f"{HEAD}plugins.load_plugin(__file__)\n", "a plugin must not load itself"),
        (
            f"{FAMILY}class A(Family):\n encoders = ('a',)\nplugins.FAMILIES.register('a', A())\n",
            r"must have build_encoder\(settings\)",
        ),
        (
            f"{FAMILY}class A(Family):\n norms = ('a',)\n def build_norm(self): ...\n"
            "plugins.FAMILIES.register('a', A())\n",
            r"build_norm that must be a function of \(d_model, epsilon\), but takes \(\)",
        ),
    ],
)
def test_a_file_that_is_no_plugin_is_refused_and_leaves_nothing(tmp_path, text, message):
    path = write_plugin(tmp_path, SCHEDULE + text if "paper" in text else text)
    modules = {*sys.modules}
    with pytest.raises(PluginError, match=message) as caught:
        load_plugin(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)
    assert loaded_plugins() == ()
    assert not [name for name in {*sys.modules} - modules if "heedful_plugin" in name]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "cannot be read: No such file"),
        (lambda path: path.mkdir(), "cannot be read: Is a directory"),
        (lambda path: path.symlink_to(path), "cannot be read: Too many levels of symbolic links"),
        (lambda path: path.write_bytes(b"x = '\xff\xfe'\n"), "raises SyntaxError"),
        (lambda path: path.write_bytes(b"\0"), "raises (SyntaxError|ValueError)"),
    ],
)
def test_what_is_no_file_of_python_is_refused(tmp_path, make, message):
    make(tmp_path / "mine.py")
    with pytest.raises(PluginError, match=message):
        load_plugin(tmp_path / "mine.py")


@pytest.mark.parametrize("name", ["mine", "mine.txt", "a b.py", "runs/a"])
def test_other_names_are_refused(tmp_path, name):
    with pytest.raises(PluginError, match="must be a Python file whose name has"):
        load_plugin(tmp_path / name)


def test_a_file_is_loaded_once_and_again_when_it_has_changed(tmp_path):
    path = write_plugin(tmp_path, SCHEDULE)
    link = tmp_path / "link.py"
    link.symlink_to(path)
    first = load_plugin(path)
    assert load_plugin(str(path)) is first
    assert load_plugin(link) is load_plugin(tmp_path / ".." / tmp_path.name / "mine.py") is first
    with pytest.raises(PluginError, match=r"'flat' belongs to mine\.py"):
        load_plugin(write_plugin(tmp_path, f"{SCHEDULE}# other\n", "other.py"))
    second = load_plugin(write_plugin(tmp_path, f"{SCHEDULE}# changed\n"))
    assert loaded_plugins() == (second,) and second.sha256 != first.sha256
    write_plugin(tmp_path, "raise ValueError\n")
    with pytest.raises(PluginError):
        load_plugin(path)
    assert loaded_plugins() == ()
    assert load_plugin(write_plugin(tmp_path, SCHEDULE)).sha256 == first.sha256
    load_plugins(None)
    assert len(loaded_plugins()) == 1


def test_a_plugin_counts_that_is_loaded_before_the_settings_are_imported(tmp_path):
    program = """
import sys
from heedful.plugins import load_plugin
load_plugin(sys.argv[1])
assert "heedful.config.schema" not in sys.modules
from heedful.config.load import load_config
print(load_config("tiny", ["train.schedule=flat", "train.learning_rate=0.5"]).train.schedule)
"""
    path = write_plugin(tmp_path, SCHEDULE)
    words = [sys.executable, "-c", program, str(path)]
    assert subprocess.run(words, check=True, capture_output=True, text=True).stdout == "flat\n"


def test_what_is_executed_is_what_the_digest_is_of(tmp_path):
    path = write_plugin(
        tmp_path, f"{SCHEDULE}import pathlib\npathlib.Path(__file__).write_text('other')\n"
    )
    plugin = load_plugin(path)
    assert path.read_text() == "other"
    assert hashlib.sha256(plugin.content).hexdigest() == plugin.sha256
    assert list(tmp_path.iterdir()) == [path]  # and no bytecode


def test_a_run_records_the_plugins_that_its_settings_name(run, conv, tmp_path):
    load_plugin(write_plugin(tmp_path, SCHEDULE, "unused.py"))
    again = random_run(tmp_path / "again", load_config("tiny", ["model.encoder=conv"]), 50)
    records = json.loads(run.config.read_text())["plugins"]
    assert records == json.loads(again.folder.config.read_text())["plugins"]
    assert records == [{"name": "conv.py", "sha256": hashlib.sha256(conv.read_bytes()).hexdigest()}]
    assert (run.plugins / "conv.py").read_bytes() == conv.read_bytes()
    plain = random_run(tmp_path / "plain", load_config("tiny"), 50).folder
    assert "plugins" not in json.loads(plain.config.read_text()) and not plain.plugins.exists()
    assert "rules" not in json.loads(plain.config.read_text())["settings"]["search"]


def test_a_run_is_opened_only_with_the_same_file(run, conv, tmp_path):
    digest = hashlib.sha256(conv.read_bytes()).hexdigest()
    assert Run.open(run.path).config.model.encoder == "conv"
    forget_all()
    with pytest.raises(PluginError) as caught:
        Run.open(run.path)
    for words in ("conv.py", digest, "--plugin conv.py", str(run.plugins / "conv.py")):
        assert words in str(caught.value)
    # a file of another place and name but of the same bytes will do
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    load_plugin(shutil.copy(conv, elsewhere / "renamed.py"))
    assert Run.open(run.path)
    forget_all()
    conv.write_text(conv.read_text() + "# changed\n")
    load_plugin(conv)
    with pytest.raises(
        PluginError, match=r"--resume --allow-inexact-resume, which records it"
    ) as it:
        Run.open(run.path)
    assert digest in str(it.value)


def test_the_copy_is_never_executed_and_a_changed_one_is_named(run, tmp_path):
    forget_all()
    copy = run.plugins / "conv.py"
    with pytest.raises(PluginError, match="is the copy in a run folder, which is never executed"):
        load_plugin(copy)
    link = run.path.parent / "link.py"
    link.symlink_to(copy)
    with pytest.raises(PluginError, match="is the copy in a run folder"):
        load_plugin(link)
    evil = write_plugin(tmp_path, "raise SystemExit('executed')\n", "evil.py")
    copy.unlink()
    copy.symlink_to(evil)  # by whoever made the run folder
    for path in (copy, run.plugins / ".." / "plugins" / "conv.py"):
        with pytest.raises(PluginError, match="is the copy in a run folder"):
            load_plugin(path)
    copy.unlink()
    copy.write_text("raise SystemExit('executed')\n")
    with pytest.raises(PluginError, match="which was changed"):
        Run.open(run.path)
    copy.unlink()
    with pytest.raises(PluginError, match=r"plugins=\['conv.py'\]\.$"):
        Run.open(run.path)


@pytest.mark.parametrize(
    "record",
    [
        {"name": "../evil.py", "sha256": "0" * 64},
        {"name": "evil.py", "sha256": "0"},
        {"name": "evil.py", "sha256": "0" * 64, "path": "evil.py"},
    ],
)
def test_a_record_that_is_no_record_is_refused(run, record):
    content = json.loads(run.config.read_text())
    run.config.write_text(json.dumps({**content, "plugins": [record]}))
    with pytest.raises(RunFolderError, match="it was changed, damaged or"):
        Run.open(run.path)


def test_two_files_of_one_name_cannot_be_in_one_run(conv, tmp_path):
    (tmp_path / "b").mkdir()
    load_plugins([conv, write_plugin(tmp_path / "b", SCHEDULE, "conv.py")])
    settings = ["model.encoder=conv", "train.schedule=flat", "train.learning_rate=0.5"]
    with pytest.raises(PluginError, match="must have different names"):
        random_run(tmp_path / "run", load_config("tiny", settings), 50)


def test_a_settings_file_names_plugins_beside_it(conv, tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    file = tmp_path / "mine.toml"
    file.write_text('base = "tiny"\nplugins = ["conv.py"]\n[model]\nencoder = "conv"\n')
    config = load_config(str(file))
    assert config.model.encoder == "conv" and "plugins" not in config.to_dict()
    printed = tmp_path / "printed.toml"
    printed.write_text(to_toml(config))
    forget_all()
    assert load_config(str(printed)) == load_config(str(file))
    file.write_text('plugins = "conv.py"\n')
    with pytest.raises(SettingError, match=r"`plugins` must be a list of files"):
        load_config(str(file))


def test_a_run_folder_and_the_current_folder_load_nothing(run, conv, tmp_path, monkeypatch):
    forget_all()
    monkeypatch.chdir(tmp_path)
    for name in ("conv.py", "sitecustomize.py", "plugins.py"):
        write_plugin(tmp_path, "raise SystemExit('executed')\n", name)
    content = json.loads(run.config.read_text())
    content["settings"]["plugins"] = ["conv.py"]
    run.config.write_text(json.dumps(content))
    for _ in range(2):
        with pytest.raises((PluginError, RunFolderError)):
            Run.open("run")
        content["plugins"] = []
        run.config.write_text(json.dumps(content))
    assert loaded_plugins() == ()


def test_other_weights_name_the_class_that_may_have_changed(run, conv):
    opened = Run.open(run.path)
    place = opened.checkpoint_folder()
    changed = conv.read_text().replace("self.layers", "self.blocks")
    load_plugin(write_plugin(conv.parent, changed, "conv.py"))
    model = opened._build()
    with pytest.raises(RunFolderError, match=r"a class has changed since: ConvEncoder of conv\.py"):
        load_weights(model, opened.load_checkpoint(place).model, place)


def test_no_format_can_express_it(run, tmp_path):
    for kind in ("marian", "ctranslate2", "onnx"):
        with pytest.raises(ExchangeError, match=r"`model\.encoder` is conv"):
            export_model(run.path, kind, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
def test_it_translates_in_every_precision(run, precision):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        translator = Translator.load(run.path, device="cpu", precision=precision)
    lines = ["a b c", "d"]
    together = translator.translate(lines, beam=3, max_length=6)
    assert [one.text for one in together] == [
        translator.translate(line, beam=3, max_length=6).text for line in lines
    ]


def test_plugins_of_translator_and_parser_are_loaded(run, conv):
    forget_all()
    assert Translator.load(run.path, device="cpu", plugins=[conv]).translate("a").tokens is not None
    forget_all()
    with pytest.raises(SettingError, match="is a translator"):
        heedful.Parser.load(run.path, device="cpu", plugins=conv)
    assert [plugin.path for plugin in loaded_plugins()] == [conv]


NORM = f"""{FAMILY}
from torch import nn

class Root(Family):
    norms = ("root",)

    def build_norm(self, d_model, epsilon):
        return nn.RMSNorm(d_model, eps=epsilon)

plugins.FAMILIES.register("root", Root())
"""
SCORE = f"""{HEAD}
from torch import nn

class Doubled(nn.Module):
    def __init__(self, heads, d_k):
        super().__init__()
        self.factor = 2 * d_k**-0.5

    def forward(self, query, key):
        return self.factor * query @ key.transpose(-2, -1)

plugins.SCORES.register("doubled", Doubled)
"""
LAYER = f"""{FAMILY}
import torch
from heedful.model.parts import Mixer

class Mean(Mixer):
    def forward(self, queries_from, keys_from, layout=None):
        return keys_from.mean(dim=1, keepdim=True).expand_as(queries_from), None

    def flops(self, lengths, leaves_out):
        return 0

class Means(Family):
    encoder_mixers = ("mean",)
    traits = frozenset({{"unscored"}})

    def build_mixer(self, side, layer_config):
        return Mean()

plugins.FAMILIES.register("means", Means())
"""
SMALL = {"d_model": 16, "d_ff": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}


@pytest.mark.parametrize(
    ("text", "settings", "kind"),
    [
        (NORM, {"norm_kind": "root"}, nn.RMSNorm),
        (SCORE, {"attention": {"score": "doubled"}}, MultiHeadAttention),
        (LAYER, {"attention": {"encoder": "mean"}}, MultiHeadAttention),
    ],
)
def test_a_norm_a_score_and_a_layer_train_and_step_alike(tmp_path, text, settings, kind):
    load_plugin(write_plugin(tmp_path, text))
    model = build_model(ModelConfig(**SMALL, **settings), 20, 20, max_length=12).eval()
    assert any(type(module) is kind for module in model.modules())
    source, target = batch()
    states = model.states(source, target)
    states.square().sum().backward()
    state = model.start(model.encode(source))
    for place in range(target.size(1)):
        newest, state = model.step(state, target[:, place])
        assert torch.allclose(newest, states[:, place], atol=1e-5)


def test_a_score_is_compared_in_the_place_of_products(tmp_path):
    load_plugin(write_plugin(tmp_path, SCORE))
    doubled, scaled = (
        MultiHeadAttention(16, 2, bias=False, score=name) for name in ("doubled", "scaled")
    )
    scaled.load_state_dict(doubled.state_dict())
    with torch.no_grad():
        doubled.qkv_proj.weight[:16] /= 2
    x = torch.randn(2, 5, 16)
    contexts = [attention(x, x, need_weights=True) for attention in (doubled, scaled)]
    assert torch.allclose(contexts[0][0], contexts[1][0], atol=1e-6)
    query, key, value = (torch.randn(2, 2, 5, 8) for _ in range(3))
    _, weights = scaled_dot_product_attention(2 * query, key, value)
    assert torch.allclose(torch.softmax(doubled.compare(query, key), dim=-1), weights, atol=1e-6)


@pytest.mark.parametrize("rate", ["None", "'fast'", "float('nan')", "float('inf')", "-1.0"])
def test_a_schedule_must_give_a_rate(tmp_path, rate):
    load_plugin(write_plugin(tmp_path, SCHEDULE.replace("schedule.peak", rate)))
    config = load_config("tiny", ["train.schedule=flat", "train.learning_rate=0.5"])
    with pytest.raises(PluginError, match="'flat' must give a learning rate that is finite"):
        Schedule.of(config).rate(3)


@pytest.mark.parametrize(
    ("score", "message"),
    [
        ("None", "must return a function"),
        ("lambda texts: 'x'", "must return a finite number"),
        ("lambda texts: float('nan')", "must return a finite number, but returns nan"),
    ],
)
def test_a_metric_must_give_a_number(tmp_path, score, message):
    metric = f"plugins.ValidationMetric('mine', 'Mine', True, lambda references, language: {score})"
    load_plugin(write_plugin(tmp_path, f"{HEAD}plugins.METRICS.register('mine', {metric})\n"))
    with pytest.raises(PluginError, match=f"the metric 'mine' {message}"):
        ValidationScorer(["a"], "en", ["mine"])(["a"])


def test_an_objective_must_be_one(tmp_path):
    text = f"{HEAD}plugins.OBJECTIVES.register('mine', lambda run, machine: None)\n"
    load_plugin(write_plugin(tmp_path, text))
    run = SimpleNamespace(config=load_config("tiny", ["train.objective=mine"]))
    with pytest.raises(PluginError, match="'mine' must build an object with `figure`, `describe`"):
        build_objective(run, None)


MINE = f"""{FAMILY}
from torch import nn
from heedful.model.halves import SourceEncoder

class Mine(Family):
    encoders = ("mine",)

    def build_encoder(self, settings):
        return BUILT

class Half(nn.Module, SourceEncoder):
    width = 16

plugins.FAMILIES.register("mine", Mine())
"""


@pytest.mark.parametrize(
    ("built", "message"),
    [
        ("None", "must return a module, not None"),
        ("nn.Linear(1, 1)", "but Linear has no encode"),
        ("Half()", "but Half has no encode"),
    ],
)
def test_an_encoder_must_have_what_is_asked_of_it(tmp_path, built, message):
    load_plugin(write_plugin(tmp_path, MINE.replace("BUILT", built)))
    config = RunConfig().with_settings({"model.encoder": "mine"})
    with pytest.raises(PluginError, match=message):
        build_model(config.model, 20, 20, max_length=12)


PART = f"""{FAMILY}

class Mine(Family):
    KIND = ("mine",)

    def BUILDER(self, *sizes):
        return None

plugins.FAMILIES.register("mine", Mine())
"""


@pytest.mark.parametrize(
    ("kind", "builder", "settings"),
    [
        ("norms", "build_norm", {"norm_kind": "mine"}),
        ("encoder_mixers", "build_mixer", {"attention": {"encoder": "mine"}}),
    ],
)
def test_a_mixer_or_norm_must_be_a_module(tmp_path, kind, builder, settings):
    text = PART.replace("KIND", kind).replace("BUILDER", builder)
    load_plugin(write_plugin(tmp_path, text))
    with pytest.raises(PluginError, match=f"{builder} of Mine must return a module, not None"):
        build_model(ModelConfig(**SMALL, **settings), 20, 20, max_length=12)


def test_a_score_must_be_a_module(tmp_path):
    text = f"{HEAD}plugins.SCORES.register('mine', lambda heads, d_k: None)\n"
    load_plugin(write_plugin(tmp_path, text))
    with pytest.raises(PluginError, match="'mine' must build a module, but builds None"):
        build_model(ModelConfig(**SMALL, attention={"score": "mine"}), 20, 20, max_length=12)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("None", "build a function"),
        ("lambda scores, written, sentences: None", "but returned NoneType"),
        ("lambda scores, written, sentences: scores[:, :3]", r"returned one of shape \(\d+, 3\)"),
    ],
)
def test_a_rule_must_give_scores(tmp_path, rule, message):
    build = f"lambda tokenizer, lines, limits, device: {rule}"
    load_plugin(write_plugin(tmp_path, f"{HEAD}plugins.RULES.register('mine', {build})\n"))
    run = random_run(tmp_path / "run", load_config("tiny"), 12)
    # the few letters of its vocabulary are none of these: reading text would copy the line
    translator = Translator.load(run.folder.path, device="cpu", reading="exact")
    with pytest.raises(PluginError, match=f"'mine' must.*{message}"):
        translator.translate("a b", rules="mine")


class Width(SettingsTable):
    """The settings of a family."""

    table = "model.wide"

    width: int = 3
    """How wide."""


class Wide(Family):
    """A family with a table of settings."""

    encoders = ("wide",)
    settings = Width

    def build_encoder(self, settings):
        return SimpleNamespace(width=settings.part(Width).width)


def test_a_family_may_have_a_table_of_settings():
    old, plugin = RunConfig(), object()
    with plugins.registering(plugin):
        plugins.FAMILIES.register("wide", Wide())
    config = RunConfig().with_settings({"model.encoder": "wide", "model.wide.width": 5})
    assert config.model.part(Width).width == 5
    assert old.with_settings({"train.steps": 7}).model.part(Width).width == 3
    with pytest.raises(SettingError, match=r"`model.wide.width` applies only if `model.encoder`"):
        RunConfig().with_settings({"model.wide.width": 5})
    plugins.FAMILIES.forget(plugin)
    assert "model.wide.width" not in setting_fields()


def test_parts_of_one_name_in_two_registries_are_both_recorded(tmp_path):
    text = page_plugin("no_repeat.py").replace("no-repeat", "flat")
    load_plugins([write_plugin(tmp_path, SCHEDULE), write_plugin(tmp_path, text, "rule.py")])
    settings = ["train.schedule=flat", "train.learning_rate=0.5", "search.rules=flat"]
    run = random_run(tmp_path / "run", load_config("tiny", settings), 50)
    records = json.loads(run.folder.config.read_text())["plugins"]
    assert [record["name"] for record in records] == ["mine.py", "rule.py"]


def test_a_run_refuses_what_no_file_registers(tmp_path):
    plugins.SCHEDULES.register("loose", lambda schedule, step, decays: schedule.peak)
    config = load_config("tiny", ["train.schedule=loose", "train.learning_rate=0.5"])
    assert Schedule.of(config).rate(7) == 0.5
    with pytest.raises(PluginError, match="'loose' was registered without one"):
        random_run(tmp_path / "run", config, 50)
    plugins.SCHEDULES.forget(None)


def test_a_rule_is_kept_by_every_search(tmp_path):
    load_plugin(write_plugin(tmp_path, page_plugin("no_repeat.py")))
    run = random_run(tmp_path / "run", load_config("tiny"), 12)
    # the few letters of its vocabulary are none of these: reading text would copy the line
    translator = Translator.load(run.folder.path, device="cpu", reading="exact")
    for keywords in ({"beam": 1}, {"beam": 4}, {"sample": heedful.Sampling(seed=1), "n_best": 4}):
        free, bound = (
            translator.translate("a b c", max_length=30, rules=rules, **keywords)
            for rules in (None, "no-repeat")
        )
        written = [bound.tokens, *(one.tokens for one in bound.alternatives)]
        assert all(a != b for row in written for a, b in pairwise(row))
        assert free.tokens != bound.tokens or keywords != {"beam": 1}
    ruled = RunConfig().with_settings({"search.rules": "no-repeat"})
    assert ruled.search.rules == "no-repeat"
    chosen = {None: "no-repeat", "no-repeat": "no-repeat", "": ""}
    for rules, used in chosen.items():
        assert heedful.SearchOptions(rules=rules).over(ruled.search).rules == used
    with pytest.raises(SettingError, match="no loaded plugin has a rule 'other'"):
        RunConfig().with_settings({"search.rules": "other"})
    with pytest.raises(
        SettingError, match=r"'other' is not registered; name the plugin's file with --plugin"
    ):
        heedful.SearchOptions(rules="other")
    options = heedful.SearchOptions(rules="no-repeat")
    with pytest.raises(SettingError, match="does not support --rules"):
        check_engine("ctranslate2", options, {})
