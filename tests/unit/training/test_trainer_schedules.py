"""The training loop with schedules and optimizers of other recipes."""

import json
from dataclasses import asdict
from functools import partial

import pytest
import torch

from heedful.errors import TrainingFailed
from heedful.runs.checkpoint import load_checkpoint, save_checkpoint
from heedful.settings.registries import SCHEDULES
from heedful.training.distributed import RankGroup
from heedful.training.schedule import Schedule
from heedful.training.state import TrainState
from tests.unit.training import test_trainer
from tests.unit.training.test_trainer import weights

# One micro-batch a step: schedules know of steps alone.
trainer = partial(test_trainer.trainer, micro=400)

# No better one at 3, 4, 6, 7, 8 and from 10 on; equal scores are ordered by the loss.
SCORES = [1.0, 3.0, 2.0, 3.0, 4.0, 4.0, 3.0, 2.0, 5.0, *[1.0] * 11]
LOSSES = [5.0, 4.0, 4.0, 4.5, 3.0, 3.0, 3.0, 3.0, 2.0, *[2.0] * 11]


def plateau(**settings):
    return Schedule("plateau", **({"warmup": 0, "peak": 0.4} | settings))


def validated(made):
    """Answer each validation by the step."""

    def validate():
        index = made.train_state.counters.step - 1
        return {"valid_loss": LOSSES[index], "valid_perplexity": 2.7, "bleu": SCORES[index]}

    made.validate = validate
    return made


def with_rates(made, rates):
    """Record the rate of every step."""
    step = made.optimizer.step

    def record(rate, scale):
        rates.append(rate)
        step(rate, scale)

    made.optimizer.step = record
    return made


@pytest.mark.parametrize("patience", [0, 1, 2, 5])
def test_plateau_lowers_the_rate_when_torchs_does(patience):
    reference = torch.optim.SGD([torch.zeros(1)], lr=0.4)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
        reference, "max", factor=0.3, patience=patience, threshold=0.0, min_lr=0.02
    )
    expected = []
    for score in SCORES:
        expected.append(reference.param_groups[0]["lr"])
        scheduler.step(score)
    schedule = plateau(decay_factor=0.3, patience=patience, minimum=0.02)
    made = validated(trainer(steps=len(SCORES), schedule=schedule, validate_steps=1))
    rates = []
    with_rates(made, rates).run()
    assert rates == pytest.approx(expected)
    assert len(set(rates)) > 1


def test_a_validation_in_the_warm_up_or_at_an_odd_end_lowers_no_rate():
    made = validated(trainer(steps=4, schedule=plateau(warmup=5), validate_steps=1))
    made.run()
    assert made.train_state.decays == 0
    made = validated(trainer(steps=3, schedule=plateau(), validate_steps=2))
    made.run()  # validated at steps 2 and 3, which is worse
    assert made.train_state.without_better == 0
    assert [entry["step"] for entry in made.train_state.best] == [2]
    assert made.train_state.decays == 0


@pytest.mark.parametrize("stop", [1, 5, 9, 11])
def test_a_run_that_is_extended_counts_as_one_that_never_ended(stop):
    whole, first, second = (
        validated(trainer(steps=steps, schedule=plateau(), validate_steps=2, patience=9))
        for steps in (14, stop, 14)
    )
    rates, halves = [], []
    with_rates(whole, rates).run()
    assert with_rates(first, halves).run() == "steps"  # validated at an odd step, too
    state = {**asdict(first.train_state), "step": stop}
    state["since_log"] = list(first.train_state.since_log)
    second.train_state = TrainState.from_dict(json.loads(json.dumps(state)))
    with_rates(second, halves).run()
    assert halves == rates
    for field in ("best_regular", "without_better", "decays", "bad_validations"):
        assert getattr(second.train_state, field) == getattr(whole.train_state, field)


def test_a_schedule_of_a_plugin_is_told_of_decays():
    SCHEDULES.register("mine", lambda schedule, step, decays: schedule.peak / (1 + decays))
    try:
        made = validated(
            trainer(steps=4, schedule=Schedule("mine", warmup=0, peak=0.4), validate_steps=1)
        )
        rates = []
        with_rates(made, rates).run()
    finally:
        SCHEDULES.forget(None)
    assert rates == pytest.approx([0.4, 0.4, 0.4, 0.2])


def test_a_lower_rate_is_told(capsys):
    made = validated(trainer(steps=3, schedule=plateau(), validate_steps=1))
    made.log._console.quiet = False
    made.run()
    assert "BLEU did not improve: the learning rate is now 0.2" in capsys.readouterr().err


def test_other_ranks_take_the_decays_of_the_first():
    class SecondRank(RankGroup):
        is_first = False

        def broadcast(self, value):
            heard.append(value)
            return 2.0 if len(heard) == 1 else 0.0

    heard = []
    made = validated(trainer(steps=3, schedule=plateau(), validate_steps=1))
    made.ranks = SecondRank()
    assert made._validate_if_due(1, ended=False) == (False, False)
    assert made.train_state.best == []
    assert made._learning_rate(2) == 0.1


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("stop", [2, 3, 7])
def test_plateau_and_momentum_go_on_bit_for_bit(precision, stop, tmp_path):
    def make():
        made = trainer(
            steps=12,
            precision=precision,
            schedule=plateau(peak=0.05, patience=1),
            rule={"optimizer": "sgd", "momentum": 0.9, "weight_decay": 0.1},
            validate_steps=1,
        )
        return validated(made)

    whole, first, second = make(), make(), make()
    rates, halves = [], []
    with_rates(whole, rates).run()
    collate = first.collate

    def interrupted(rows):
        if first.train_state.counters.step == stop - 1:
            first.stop.reason = "SIGTERM"
        return collate(rows)

    first.collate = interrupted
    assert with_rates(first, halves).run() == "SIGTERM"
    state = {
        **asdict(first.train_state),
        "step": stop,
        "since_log": list(first.train_state.since_log),
        "moments": list(first.optimizer.moment_kinds),
    }
    folder = tmp_path / "c"
    save_checkpoint(folder, first.optimizer.weights(), first.optimizer.moments(), state)
    saved = load_checkpoint(folder, with_training=True)
    second.optimizer.load(saved.model, saved.training, stop)
    second.train_state = TrainState.from_dict(saved.state)
    with_rates(second, halves).run()
    assert halves == rates
    assert len(set(rates)) == 4
    for one, other in (
        (weights(whole), weights(second)),
        (whole.optimizer.moments(), second.optimizer.moments()),
    ):
        assert one.keys() == other.keys()
        assert all(torch.equal(one[name], other[name]) for name in one)
    for field in ("best", "best_regular", "without_better", "decays", "bad_validations"):
        assert getattr(second.train_state, field) == getattr(whole.train_state, field)


def test_the_log_has_the_rate_of_its_step(tmp_path):
    log, schedule = tmp_path / "log.jsonl", Schedule("cosine", warmup=3, peak=0.1, steps=60)
    made = trainer(steps=60, log=log, schedule=schedule, rule={"optimizer": "sgd"})
    with made.log:
        made.run()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert lines[-1]["learning_rate"] == 0.0
    for line in lines:
        assert line["learning_rate"] == schedule.rate(line["step"])


@pytest.mark.parametrize(
    ("schedule", "setting"),
    [(Schedule(d_model=16), "train.learning_rate_factor,"), (plateau(), "train.learning_rate,")],
)
def test_a_loss_that_is_no_number_names_the_setting_of_the_rate(schedule, setting):
    made = trainer(steps=1, schedule=schedule)
    with torch.no_grad():
        made.model.embed_source.weight.fill_(float("nan"))
    with pytest.raises(TrainingFailed, match=f"with a lower {setting}"):
        made.run()
