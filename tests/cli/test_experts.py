"""Mixtures of experts, by the commands of every model."""

import json

import pytest

from tests.support.commands import not_exported, resumes_alike, train_arguments

pytestmark = pytest.mark.family("experts")

SETTINGS = (
    "model.experts.count=4",
    "train.steps=6",
    "train.batch_tokens=256",
    "train.micro_batch_tokens=128",
    "train.checkpoint_steps=3",
    "train.validate_steps=none",
    "train.ema_decay=0.5",
)


@pytest.fixture(scope="module", params=["noisy", "balanced"])
def gating(request):
    return f"model.experts.gating={request.param}"


@pytest.fixture(scope="module")
def run(heedful_cli, text, gating, tmp_path_factory):
    out = tmp_path_factory.mktemp("experts") / "run"
    done = heedful_cli(*train_arguments(text, out, *SETTINGS, gating))
    assert done.returncode == 0, done.stderr
    assert "experts: their load is balanced within each micro-batch" in done.stderr
    return out


def test_a_resumed_run_has_the_same_bytes(heedful_cli, text, gating, run, tmp_path):
    settings = (*SETTINGS, gating)
    resumes_alike(heedful_cli, text, run, tmp_path / "again", settings, 3, 6)


def test_the_log_and_info_show_the_load(heedful_cli, run, gating):
    line = json.loads((run / "log.jsonl").read_text().splitlines()[-1])
    is_balanced = "balanced" in gating
    # a balanced gate gives every expert as much
    assert (line["expert_spread"] < 1e-6) == is_balanced and line["expert_spread"] < 1
    assert ("unserved" in line) == is_balanced
    assert "penalty" in line
    done = heedful_cli("info", run)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("% of tokens") == 4
    shown = next(text for text in done.stdout.splitlines() if "feed_forward: " in text)
    shares = [float(word) for word in shown.split(": ")[1].split()[:4]]
    assert sum(shares) == pytest.approx(200, abs=5)


def test_it_averages_and_translates_in_every_precision(heedful_cli, run):
    assert heedful_cli("average", run).returncode == 0
    for precision in ("fp32", "bf16", "int8"):
        done = heedful_cli(
            "translate", run, "--precision", precision, "--max-length", "5", stdin="a dog\n"
        )
        assert done.returncode == 0 and done.stdout.count("\n") == 1, done.stderr


def test_no_format_can_express_it(run, tmp_path):
    not_exported(run, tmp_path, "`model.experts.count` is 4")
