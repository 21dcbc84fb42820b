"""The trainer with another objective than the likelihood."""

import json

import pytest
import torch

from heedful.training import trainer as trainer_module
from heedful.training.distributed import RankGroup
from heedful.training.state import LogSums, TrainState
from tests.unit.training.objective.test_candidates import objective
from tests.unit.training.test_trainer import trainer


def judged(kind="reward", **settings):
    made = trainer(**settings)
    made.objective = objective(kind)
    return made


def first_step(made, ranks=1):
    rows = made.batches.epoch(0)[0]
    totals = made._forward_backward(1, *made._own_share(rows))
    flat = torch.cat([gradient.flatten() for gradient in made.optimizer.gradients])
    return flat.clone(), totals, len(rows)


@pytest.mark.parametrize("kind", ["reward", "risk"])
def test_micro_batches_and_ranks_add_up_to_the_batch(monkeypatch, kind):
    whole, totals, pairs = first_step(judged(kind, micro=1000))
    cut, same, _ = first_step(judged(kind, micro=40))
    torch.testing.assert_close(cut, whole, atol=1e-5, rtol=1e-4)
    assert totals.pairs == same.pairs == pairs
    assert (same.loss, same.figure) == pytest.approx((totals.loss, totals.figure), rel=1e-4)
    monkeypatch.setattr(trainer_module.RankGroup, "all_reduce", lambda self, values: values)
    shared = torch.zeros_like(whole)
    for rank in (0, 1):
        made = judged(kind)
        made.ranks = RankGroup(rank, 2)
        shared += first_step(made, ranks=2)[0]
    torch.testing.assert_close(shared, whole, atol=1e-5, rtol=1e-4)


def test_in_bf16_the_parts_are_added_up_in_fp32():
    exact, _, _ = first_step(judged())
    rounded, _, _ = first_step(judged(precision="bf16"))
    assert rounded.dtype == torch.float32
    assert torch.isfinite(rounded).all()
    # samples may differ where rounding tips a draw; the references' part has the same direction
    assert float(torch.cosine_similarity(exact, rounded, dim=0)) > 0.5


@pytest.mark.parametrize("kind", ["reward", "risk"])
def test_the_log_has_its_mean_beside_the_loss(tmp_path, kind):
    made = judged(kind, steps=2, log=tmp_path / "log.jsonl")
    with made.log:
        made.run()
    assert made.model.training
    line = json.loads((tmp_path / "log.jsonl").read_text().splitlines()[-1])
    assert 0.0 <= line[kind] <= 2.0
    assert line["perplexity"] > 1.0
    missing = "risk" if kind == "reward" else "reward"
    assert missing not in line
    assert made.train_state.since_log == LogSums()


def test_a_rewarded_word_comes_more_often():
    def words_that_are_e(texts, reference):
        return [text.split().count("e") / max(1, len(text.split())) for text in texts]

    def mean(made):
        return float(first_step(made)[1].figure) / float(first_step(made)[1].pairs)

    made = trainer(steps=30, warmup=2)
    made.objective = objective(metric=words_that_are_e, likelihood_weight=0.0)
    before = mean(made)
    made.optimizer.zero_grad()
    made.run()
    assert mean(made) > before + 0.2


def test_a_checkpoint_of_a_version_without_it_has_no_sum_of_it():
    state = {
        "step": 0,
        "counters": {"step": 0, "seconds": 0.0},
        "best": [],
        "without_better": 0,
        "since_log": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0],
    }
    assert TrainState.from_dict(state).since_log == LogSums(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0)
