"""A model's penalty is trained on, weighted by tokens, and reported apart from its loss."""

import json

import pytest

from heedful.model.transformer import Transformer
from heedful.training import trainer as trainer_module
from heedful.training.distributed import RankGroup
from heedful.training.state import LogSums, TrainState
from tests.unit.training.test_trainer import trainer

STRENGTH = 0.25


class Penalized(Transformer):
    """
    Pays for the first weight of its source table, more in a batch of longer rows.

    So its gradient is known: of that weight, the strength times the longest row.
    """

    def states(self, source, target_in):
        self.length = float(target_in.size(1))
        return super().states(source, target_in)

    def penalty(self):
        return STRENGTH * self.length * self.embed_source.weight[0, 0]


def penalized(**settings):
    made = trainer(**settings)
    made.model.__class__ = Penalized
    return made


def first_step(made, ranks=1):
    """Gradients and sums of the first batch, and the tokens times the longest row of each part."""
    made.model.eval()
    rows = made.batches.epoch(0)[0]
    parts = [part for share in made.batches.cut(rows, ranks) for part in share]
    batches = [made.collate(part) for part in parts]
    weight = sum(batch.target_tokens * batch.target_in.size(1) for batch in batches)
    totals = made._forward_backward(1, *made._own_share(rows))
    gradients = [gradient.clone() for gradient in made.optimizer.gradients]
    return gradients, totals, weight


@pytest.mark.parametrize("micro", [40, 1000])
def test_its_gradient_is_weighted_by_the_tokens_of_each_micro_batch(micro):
    plain, before, weight = first_step(trainer(micro=micro))
    with_it, after, _ = first_step(penalized(micro=micro))
    differences = [one - other for one, other in zip(with_it, plain, strict=True)]
    sums = sorted(float(difference.abs().sum()) for difference in differences)
    assert sums[-1] == pytest.approx(STRENGTH * weight, rel=1e-4)
    assert sums[-2] < 1e-4 * sums[-1]
    assert (after.loss, after.nll) == pytest.approx((before.loss, before.nll))
    weight_now = penalized().model.embed_source.weight[0, 0].item()
    assert after.penalty == pytest.approx(STRENGTH * weight * weight_now, rel=1e-5)
    assert before.penalty == 0.0


def test_two_ranks_add_up(monkeypatch):
    monkeypatch.setattr(trainer_module.RankGroup, "all_reduce", lambda self, values: values)
    monkeypatch.setattr(
        trainer_module.RankGroup, "all_reduce_gradients", lambda self, tensors: None
    )
    changes, penalties, weight = [], 0.0, 0
    for rank in (0, 1):
        plain, made = trainer(), penalized()
        plain.ranks = made.ranks = RankGroup(rank, 2)
        without, _, weight = first_step(plain, ranks=2)
        with_it, totals, _ = first_step(made, ranks=2)
        penalties += totals.penalty
        changes += [one - other for one, other in zip(with_it, without, strict=True)]
    assert sum(float(change.sum()) for change in changes) == pytest.approx(
        STRENGTH * weight, rel=1e-4
    )
    weight_now = penalized().model.embed_source.weight[0, 0].item()
    assert penalties == pytest.approx(STRENGTH * weight * weight_now, rel=1e-5)


def test_the_log_has_its_mean_and_the_perplexity_is_without_it(tmp_path):
    lines = []
    for make, name in ((trainer, "plain"), (penalized, "penalized")):
        made = make(steps=1, log=tmp_path / f"{name}.jsonl")
        with made.log:
            made.run()
        lines.append(json.loads((tmp_path / f"{name}.jsonl").read_text().splitlines()[-1]))
    plain, with_it = lines
    assert "penalty" not in plain
    assert with_it["penalty"] != 0.0
    for name in ("loss", "nll", "perplexity"):
        assert with_it[name] == pytest.approx(plain[name])
    assert with_it["gradient_norm"] > plain["gradient_norm"]


def test_a_checkpoint_of_an_older_version_has_no_sum_of_it():
    state = {
        "step": 0,
        "counters": {"step": 0, "seconds": 0.0},
        "best": [],
        "without_better": 0,
        "since_log": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    }
    assert TrainState.from_dict(state).since_log == LogSums(1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
