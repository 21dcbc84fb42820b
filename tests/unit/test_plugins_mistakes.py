"""Mistakes in plugins that show only when the parts are used."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from heedful import plugins
from heedful.bench.random_run import make_random_run
from heedful.config.load import load_config
from heedful.config.model import ModelConfig
from heedful.errors import HeedfulError, PluginError
from heedful.families.build import build_model
from heedful.plugins import failure_of_plugin, load_plugin, loaded_plugins, unload_plugin
from heedful.translation.translator import Translator
from tests.support.models import batch
from tests.support.plugins import HEAD, write_plugin

FAMILY = f"{HEAD}from heedful.families.family import Family\n"
SMALL = {"d_model": 16, "d_ff": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}


@pytest.fixture(autouse=True)
def nothing_stays():
    """Forget what a test registers."""
    yield
    for plugin in loaded_plugins():
        unload_plugin(plugin)


def random_translator(folder, *settings, precision="fp32"):
    """A translator with random weights, which reads lines exactly."""
    folder.mkdir()
    run = make_random_run(folder, load_config("tiny", settings), 50)
    return Translator.load(run.folder.path, device="cpu", precision=precision, reading="exact")


SLOPES = f"""{FAMILY}
import torch
from heedful.model.score_bias import ScoreBias

class Slopes(ScoreBias):
    def __init__(self, heads):
        super().__init__()
        SET

    def forward(self, distance):
        slopes = SLOPES
        return -slopes[:, None, None].to(distance.device) * distance[:, None].abs()

class Alibi(Family):
    positions = ("alibi",)

    def build_score_bias(self, settings, side, layer_config):
        return Slopes(layer_config.heads)

plugins.FAMILIES.register("alibi", Alibi())
"""


@pytest.mark.parametrize(
    ("assignment", "slopes"),
    [
        ("self.heads = heads", "0.5 ** torch.arange(1, 1 + self.heads)"),
        ("self.register_buffer('slopes', 0.5 ** torch.arange(1, 1 + heads))", "self.slopes"),
    ],
)
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_a_score_bias_needs_no_parameters(tmp_path, assignment, slopes, precision):
    load_plugin(write_plugin(tmp_path, SLOPES.replace("SET", assignment).replace("SLOPES", slopes)))
    translator = random_translator(tmp_path / "run", "model.positions=alibi", precision=precision)
    lines = ["a b c", "d"]
    together = translator.translate(lines, beam=2, max_length=6)
    alone = [translator.translate(line, beam=2, max_length=6) for line in lines]
    assert [one.tokens for one in together] == [one.tokens for one in alone]


MIXER = f"""{FAMILY}
import torch
from heedful.model.parts import Mixer

class Mine(Mixer):
    def forward(self, queries_from, keys_from, layout=None):
        return RESULT

    def flops(self, lengths, leaves_out):
        return 0

class Mines(Family):
    encoder_mixers = ("mine",)

    def build_mixer(self, side, layer_config):
        return Mine()

plugins.FAMILIES.register("mines", Mines())
"""


@pytest.mark.parametrize(
    ("result", "returned"),
    [
        ("queries_from", "but returned a Tensor"),
        ("(queries_from[..., :1], None)", r"but returned states of shape \(.*, 1\)"),
    ],
)
def test_a_mixer_must_return_states_and_weights(tmp_path, result, returned):
    load_plugin(write_plugin(tmp_path, MIXER.replace("RESULT", result)))
    config = ModelConfig(**SMALL, attention={"encoder": "mine"})
    model = build_model(config, 20, 20, max_length=12)
    with pytest.raises(
        PluginError, match=f"forward of Mine must return a tuple of the new .*{returned}"
    ):
        model.states(*batch())


RULE = f"""{HEAD}
plugins.RULES.register("mine", lambda *_: lambda scores, written, sentences: SCORES)
"""


@pytest.mark.parametrize("scores", ["scores.fill_(float('-inf'))", "scores * float('nan')"])
def test_a_rule_without_finite_scores_is_named(tmp_path, scores):
    load_plugin(write_plugin(tmp_path, RULE.replace("SCORES", scores)))
    translator = random_translator(tmp_path / "run")
    with pytest.raises(HeedfulError, match=r"a rule of `search\.rules` \(mine\) forbids every"):
        translator.translate("a b", rules="mine")
    assert translator.translate("a b", max_length=3).tokens is not None


def test_a_failure_in_another_process_is_found_by_the_text_of_its_traceback(tmp_path):
    text = f"{HEAD}\ndef broken(source, target, generator):\n    return source.split()[7], target\n"
    path = write_plugin(tmp_path, f"{text}plugins.AUGMENTATIONS.register('broken', broken)\n")
    load_plugin(path)
    change = plugins.AUGMENTATIONS["broken"]
    with ProcessPoolExecutor(1, get_context("fork")) as pool:
        error = pool.submit(_call, "broken").exception()
    assert isinstance(error, IndexError)
    assert f"{path} must run without an error, but its line 4" in str(failure_of_plugin(error))
    with pytest.raises(IndexError) as caught:
        change("a", "b", None)
    assert "its line 4 raises IndexError" in str(failure_of_plugin(caught.value))


def _call(name):
    plugins.AUGMENTATIONS[name]("a", "b", None)


def test_a_failure_outside_of_plugins_names_those_that_are_loaded(tmp_path):
    error = AttributeError("'Tensor' object has no attribute 'loss'")
    assert failure_of_plugin(error) is None
    path = load_plugin(write_plugin(tmp_path, RULE.replace("SCORES", "scores"))).path
    message = str(failure_of_plugin(error))
    assert f"may have returned a wrong type or shape ({path})" in message
    assert "AttributeError: 'Tensor' object has no attribute 'loss'" in message
    assert failure_of_plugin(OSError(28, "No space left on device")) is None
