"""
A small task that a correct training loop learns and a subtly wrong one does not.

Of the model's other readings: tests/soak/test_learns.py.
"""

import json
import random

import pytest

from heedful.alignment.links import GoldLinks, LinkCounts, count_links, write_links
from heedful.evaluation.validation import score_bleu

PAIRS = 8000


def reversals(count, seed):
    """Write letters on one side and the same letters backwards on the other."""
    chooser = random.Random(seed)
    lines = []
    while len(lines) < count:
        letters = chooser.choices("abcdefgh", k=chooser.randint(2, 5))
        lines.append((" ".join(letters), " ".join(reversed(letters))))
    return lines


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reverse")
    pairs = reversals(PAIRS, seed=1)
    (folder / "train.x").write_text("".join(f"{x}\n" for x, _ in pairs))
    (folder / "train.y").write_text("".join(f"{y}\n" for _, y in pairs))
    return folder


def test_reversing_letters_is_learned_as_the_paper_says(heedful_cli, task, tmp_path):
    learn_to_reverse(heedful_cli, task, tmp_path / "run")


@pytest.mark.family("recurrent")
def test_reversing_letters_is_learned_by_a_recurrent_model(heedful_cli, task, tmp_path):
    reading = (
        "model.encoder=recurrent",
        "model.decoder=recurrent",
        "model.encoder_layers=1",
        "model.decoder_layers=1",
        "train.schedule=cosine",
        "train.learning_rate=0.01",
        "train.warmup=30",
    )
    learn_to_reverse(heedful_cli, task, tmp_path / "run", *reading)


@pytest.mark.family("convs2s")
def test_reversing_letters_is_learned_by_convolutions(heedful_cli, task, tmp_path):
    reading = (
        "model.encoder=convs2s",
        "model.decoder=convs2s",
        "model.positions=learned",
        "model.convs2s.encoder_layers=2x(64,3)",
        "model.convs2s.decoder_layers=2x(64,3)",
        "train.schedule=cosine",
        "train.learning_rate=0.01",
        "train.warmup=30",
        "train.clip_norm=1",
        "train.steps=200",
    )
    learn_to_reverse(heedful_cli, task, tmp_path / "run", *reading)


def learn_to_reverse(heedful_cli, task, out, *reading):
    """Train in fp32, translate and align; that bf16 learns the same is in test_trajectory.py."""
    settings = (
        "data.vocabulary_size=21",
        "model.dropout=0.0",
        "train.precision=fp32",
        "train.steps=300",
        "train.batch_tokens=300",
        "train.warmup=100",
        "train.checkpoint_steps=20",
        *reading,
    )
    files = ("--source", task / "train.x", "--target", task / "train.y", "--out", out)
    chosen = [part for setting in settings for part in ("--set", setting)]
    done = heedful_cli("train", "tiny", *files, *chosen, timeout=500)
    assert done.returncode == 0, done.stderr
    assert heedful_cli("average", out).returncode == 0

    known = set(reversals(PAIRS, seed=1))
    unseen = [pair for pair in reversals(300, seed=2) if pair not in known]
    assert len(unseen) > 100
    lines = "".join(f"{source}\n" for source, _ in unseen)
    done = heedful_cli("translate", out, "--precision", "fp32", stdin=lines)
    found = done.stdout.splitlines()
    right = sum(line == target for line, (_, target) in zip(found, unseen, strict=True))
    assert right / len(unseen) >= 0.9
    assert score_bleu([target for _, target in unseen], "")(found) >= 90

    # Word i of n is written where word n - 1 - i was read, and attention must show it.
    gold = [frozenset((n - 1 - i, i) for i in range(n)) for n in lengths(unseen)]
    diagonal = [frozenset((i, i) for i in range(n)) for n in lengths(unseen)]
    (task / "unseen.x").write_text(lines)
    (task / "unseen.y").write_text("".join(f"{target}\n" for _, target in unseen))
    (task / "gold").write_text("".join(write_links(links) + "\n" for links in gold))
    files = ("--source", task / "unseen.x", "--target", task / "unseen.y")
    options = ("--gold", task / "gold", "--format", "jsonl", "--precision", "fp32")
    done = heedful_cli("score", out, *files, *options)
    best = json.loads(done.stdout.splitlines()[0])
    counted = map(count_links, diagonal, [GoldLinks(links, links) for links in gold])
    assert sum(counted, LinkCounts()).error_rate > 0.8
    assert best["error_rate"] < 0.1


def lengths(pairs):
    """Count the words of each pair."""
    return [len(source.split()) for source, _ in pairs]
