"""HEEDFUL_KERNELS=plain computes the same without any kernel of heedful."""

import json

import pytest
import torch

from heedful.data.toy_grammar.corpus import write_grammar_text

RECORD = """
import sys
from heedful.kernels import attention, dropout, linear
from heedful.kernels.native import layers, product
from heedful.cli.main import main
used = set()
def watch(owner, name):
    function = getattr(owner, name)
    def watched(*args, **kwargs):
        used.add(name)
        return function(*args, **kwargs)
    setattr(owner, name, watched)
for owner, name in (
    (product, "load_products"),
    (linear._Linear, "apply"),
    (linear._Lookup, "apply"),
    (linear._Split, "apply"),
    (linear._Join, "apply"),
    (attention._ShortAttention, "apply"),
    (attention._NativeShortAttention, "apply"),
    (dropout._AddThinned, "apply"),
):
    watch(owner, name)
try:
    main()
finally:
    print("used:", *sorted(used), file=sys.stderr)
"""

SCORES = """
import sys
from heedful.runs.run import Run
import torch
run, scores = Run.open(sys.argv[1]), {}
torch.manual_seed(1)
source, target = torch.randint(4, 200, (8, 12)), torch.randint(4, 200, (8, 10))
for precision in ("fp32", "int8"):
    model = run.load_model("last", torch.device("cpu"), precision)
    with torch.inference_mode():
        state, steps = model.start(model.encode(source)), []
        for step in range(10):
            states, state = model.step(state, target[:, step])
            steps.append(model.log_probabilities(states))
    scores[precision] = torch.stack(steps)
torch.save(scores, sys.argv[2])
"""


@pytest.fixture(scope="module")
def heedful(heedful_cli):
    """Run a command; returns it, and whether it used a kernel."""

    def run(kernels, *arguments, stdin=""):
        done = heedful_cli("-c", RECORD, *arguments, stdin=stdin, env={"HEEDFUL_KERNELS": kernels})
        used = done.stderr.rpartition("used:")[2].split()
        return done, bool(used)

    return run


@pytest.fixture(scope="module")
def runs(heedful, tmp_path_factory):
    """Two runs that differ in their kernels alone; dropout would draw other numbers."""
    home = tmp_path_factory.mktemp("kernels")
    write_grammar_text(home / "text", (500, 20, 20))
    found = {}
    for kernels in ("fast", "plain"):
        settings = ["train.steps=40", "train.warmup=20", "train.threads=1", "model.dropout=0"]
        settings += ["train.precision=fp32", "train.batch_tokens=512"]
        done, is_used = heedful(
            kernels,
            *("train", "tiny", "--source", home / "text/train.en"),
            *("--target", home / "text/train.fr", "--out", home / kernels),
            *(part for setting in settings for part in ("--set", setting)),
        )
        assert done.returncode == 0, done.stderr
        assert is_used == (kernels == "fast")
        found[kernels] = home / kernels
    return found


def mean_loss(run):
    """Loss of all tokens: lines are written by the clock, each the mean since the line before."""
    total = before = 0
    for line in map(json.loads, (run / "log.jsonl").read_text().splitlines()):
        if "loss" in line:
            total += line["loss"] * (line["target_tokens"] - before)
            before = line["target_tokens"]
    assert before
    return total / before


def test_losses_are_close(runs):
    assert mean_loss(runs["fast"]) == pytest.approx(mean_loss(runs["plain"]), rel=1e-3)


@pytest.fixture(scope="module")
def translate(heedful, runs):
    """Translate by the run with kernels."""
    source = (runs["fast"].parent / "text/test.en").read_text()

    def run(kernels, precision):
        command = ("translate", runs["fast"], "--precision", precision, "--reading", "exact")
        done, is_used = heedful(kernels, *command, stdin=source)
        assert done.returncode == 0, done.stderr
        assert is_used == (kernels == "fast")
        return done.stdout.splitlines()

    return run


def test_translations_are_equal(translate):
    fast, plain = (translate(kernels, "fp32") for kernels in ("fast", "plain"))
    assert len(fast) == 20 and len({*fast}) > 1
    assert fast == plain


def test_eight_bits_need_no_kernel(translate):
    assert len(translate("plain", "int8")) == 20


def test_eight_bits_are_as_near_to_fp32_either_way(heedful_cli, runs, tmp_path):
    # A sum that differs in its last digit may be rounded to the next of 255 steps, so two ways of
    # 8 bits differ as much from each other as from fp32, and so may a translation.
    scores = {}
    for kernels in ("fast", "plain"):
        file = tmp_path / f"{kernels}.pt"
        environment = {"HEEDFUL_KERNELS": kernels}
        done = heedful_cli("-c", SCORES, runs["fast"], file, env=environment)
        assert done.returncode == 0, done.stderr
        scores[kernels] = torch.load(file)
    exact = scores["fast"]["fp32"]
    torch.testing.assert_close(scores["plain"]["fp32"], exact, atol=1e-4, rtol=0)
    errors = [float((scores[name]["int8"] - exact).abs().mean()) for name in ("fast", "plain")]
    assert 0 < max(errors) < 1.5 * min(errors) < 0.1


@pytest.mark.parametrize("kernels", ["", "plain"])
def test_info_prints_the_kernels(heedful, kernels):
    done, _ = heedful(kernels, "info", "--json")
    description = json.loads(done.stdout)
    assert description["kernels"] == (kernels or "fast")
    assert ("HEEDFUL_KERNELS=plain" in description["compiled"]) == (kernels == "plain")


def test_an_unknown_value_is_refused(heedful):
    done, _ = heedful("slow", "info")
    assert done.returncode != 0
    assert "HEEDFUL_KERNELS in the environment must be fast or plain, but is 'slow'" in " ".join(
        done.stderr.split()
    )
