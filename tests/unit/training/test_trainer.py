"""The training loop on a toy task, with real parts and no files but the log."""

import json
import math
import os
import signal
import time
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch

from heedful.config.model import ModelConfig
from heedful.data.batching import BatchOrder, Collator
from heedful.errors import DeviceError, SettingError, TrainingFailed
from heedful.families.build import build_model
from heedful.model.initialize import initialize
from heedful.training import trainer as trainer_module
from heedful.training.distributed import RankGroup, refuse_separate_processes
from heedful.training.log import RunLog
from heedful.training.optimizer import MixedPrecisionOptimizer
from heedful.training.schedule import Schedule
from heedful.training.state import Counters, LogSums, StepTotals, TrainState
from heedful.training.train import _signals
from heedful.training.trainer import Trainer, seed_dropout
from tests.support.models import train_config

GENERATOR = np.random.default_rng(0)
PAIRS = [GENERATOR.integers(4, 20, GENERATOR.integers(2, 9)).tolist() for _ in range(60)]
NORMS = ["layer", pytest.param("batch", marks=pytest.mark.family("batch_norm"))]


class Notes(list):
    """Record the requested checkpoints."""

    trainer = None

    def save(self, reason):
        self.append((reason, self.trainer.train_state.counters.step))
        return Path()


def trainer(
    steps=6,
    micro=120,
    precision="fp32",
    validate=None,
    log=None,
    ema_decay=None,
    warmup=10,
    schedule=None,
    rule=None,
    norm_kind="layer",
    **plan,
):
    shape = {"d_model": 16, "d_ff": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}
    config = ModelConfig(**shape, norm_kind=norm_kind)
    model = build_model(config, 20, 20, max_length=12)
    initialize(model, 1)
    lengths = np.array([len(pair) + 1 for pair in PAIRS], dtype=np.int32)
    collator = Collator(0, 2, 3)
    notes = Notes()
    settings = train_config(steps, ema_decay=ema_decay, **(rule or {}), **plan)
    made = Trainer(
        model,
        MixedPrecisionOptimizer(model, precision, settings),
        BatchOrder(lengths, lengths, 120, micro, "real", 1),
        lambda rows: collator.batch([PAIRS[i] for i in rows], [PAIRS[i] for i in rows]),
        settings,
        schedule or Schedule(warmup=warmup, d_model=16),
        TrainState(),
        RankGroup(),
        RunLog(log, 0, steps, quiet=True),
        notes,
        validate,
    )
    notes.trainer = made
    return made


def weights(made):
    return {name: tensor.clone() for name, tensor in made.optimizer.weights().items()}


def test_training_ends_with_a_checkpoint_at_the_last_step():
    made = trainer(checkpoint_steps=2)
    assert made.run() == "steps"
    assert made.checkpoints == [("regular", 2), ("regular", 4), ("regular", 6)]
    assert made.train_state.counters.target_tokens > 0


def test_the_same_seed_gives_the_same_weights_and_another_does_not():
    first, second, other = (trainer(micro=40) for _ in range(3))
    other.config = train_config(6, seed=2)
    for made in (first, second, other):
        made.run()
    for name, tensor in weights(first).items():
        assert torch.equal(tensor, weights(second)[name])
    assert not torch.equal(
        weights(first)["embed_source.weight"], weights(other)["embed_source.weight"]
    )


@pytest.mark.parametrize("norm_kind", NORMS)
def test_trying_the_largest_batch_touches_neither_weights_nor_randomness(norm_kind):
    for precision in ("fp32", "bf16"):
        tried, plain = (
            trainer(micro=40, precision=precision, norm_kind=norm_kind) for _ in range(2)
        )
        torch.manual_seed(5)
        before = torch.get_rng_state()
        tried.check_memory()
        assert torch.equal(torch.get_rng_state(), before)
        tried.run()
        plain.run()
        for name, tensor in weights(plain).items():
            assert torch.equal(tensor, weights(tried)[name])


def test_a_lack_of_memory_names_the_setting_to_change(monkeypatch):
    made = trainer()

    def too_much(*_):
        return torch.empty(1 << 60)  # the allocator itself says that it cannot

    monkeypatch.setattr(made, "_forward_backward", too_much)
    with pytest.raises(DeviceError, match=r"lower train\.micro_batch_tokens \(it is 120"):
        made.check_memory()


@pytest.mark.parametrize("norm_kind", NORMS)
def test_no_step_is_taken_on_a_loss_that_is_no_number(tmp_path, norm_kind):
    made = trainer(steps=5, micro=40, log=tmp_path / "log.jsonl", norm_kind=norm_kind)
    made.run()
    before = weights(made)
    made.config = train_config(9)
    with torch.no_grad():
        made.model.embed_source.weight[7] = math.nan
    poisoned = weights(made)
    failure = r"at step 6 .* no step was taken, .* are in the last line of log\.jsonl"
    with made.log, pytest.raises(TrainingFailed, match=failure):
        made.run()
    report = json.loads((tmp_path / "log.jsonl").read_text().splitlines()[-1])
    assert report["refused"]["loss"] == "nan"
    assert len(report["refused"]["pairs"]) > 3
    after = weights(made)
    for name in before:
        assert torch.equal(poisoned[name].nan_to_num(), after[name].nan_to_num())


def test_clipping_bounds_the_mean_gradient():
    seen = []
    for clip in (None, 1e-3):
        made = trainer(steps=1, micro=40, clip_norm=clip)
        step = made.optimizer.step

        def record(rate, scale, made=made, step=step):
            seen.append(made.optimizer.gradient_norm() * scale)
            step(rate, scale)

        made.optimizer.step = record
        made.run()
    assert seen[0] > 1e-3
    assert seen[1] == pytest.approx(1e-3, rel=1e-4)


def test_early_stopping_waits_for_patience_and_remembers_the_best():
    scores = iter([1.0, 3.0, 2.0, 1.0, 9.0])

    def validate():
        return {"valid_loss": 1.0, "valid_perplexity": 2.7, "bleu": next(scores)}

    made = trainer(steps=50, validate=validate, validate_steps=2, patience=2, keep_best=2)
    assert made.run() == "patience"
    assert made.train_state.counters.step == 8
    assert [(entry["step"], entry["bleu"]) for entry in made.train_state.best] == [
        (4, 3.0),
        (6, 2.0),
    ]
    assert made.checkpoints == [("best", 2), ("best", 4), ("best", 6), ("last", 8)]
    assert made.run() == "patience"  # and stays so when it is asked again
    assert made.train_state.counters.step == 8
    assert len(made.checkpoints) == 4


def test_a_validation_sees_the_weights_that_are_saved():
    seen = []

    def validate():
        seen.append(made.model.embed_source.weight.detach().clone())
        return {"valid_loss": 1.0, "valid_perplexity": 2.7}

    made = trainer(steps=3, validate=validate, validate_steps=3, ema_decay=0.9)
    made.run()
    saved, trained = made.optimizer.weights(), made.optimizer.moments()
    assert torch.equal(seen[0], saved["embed_source.weight"])
    assert not torch.equal(seen[0], trained["master.embed_source.weight"])


def test_a_run_that_is_over_writes_nothing():
    made = trainer(steps=3)
    made.run()
    written = list(made.checkpoints)
    assert made.run() == "steps"
    assert made.checkpoints == written


def test_keeping_no_best_writes_none():
    def validate():
        return {"valid_loss": 1.0, "valid_perplexity": 2.7, "bleu": 5.0}

    made = trainer(steps=4, validate=validate, validate_steps=1, keep_best=0)
    made.run()
    assert made.checkpoints == [("last", 4)]


def test_a_step_is_written_once_with_its_strongest_reason():
    scores = iter([1.0, 2.0, 3.0])

    def validate():
        return {"valid_loss": 1.0, "valid_perplexity": 2.7, "bleu": next(scores)}

    made = trainer(steps=6, validate=validate, validate_steps=2, checkpoint_steps=4)
    made.run()
    assert made.checkpoints == [("best", 2), ("regular", 4), ("last", 6)]


def test_minutes_end_a_run_and_earlier_sittings_count():
    made = trainer(steps=1000, minutes=0.001)
    made.clock.earlier = 1.0
    assert made.run() == "minutes"
    assert made.train_state.counters.step == 0


def test_minutes_end_a_run_with_a_validation_as_steps_do():
    seen = []

    def validate():
        seen.append(made.train_state.counters.step)
        return {"valid_loss": 1.0, "valid_perplexity": 2.7}

    made = trainer(steps=1000, minutes=5.0, validate=validate, validate_steps=400)
    collate = made.collate

    def late(rows):
        if made.train_state.counters.step == 2:
            made.clock.earlier = 300.0
        return collate(rows)

    made.collate = late
    assert made.run() == "minutes"
    assert seen == [3]
    assert [entry["step"] for entry in made.train_state.best] == [3]
    stopped = trainer(steps=1000, validate=validate, validate_steps=400)
    stopped.stop.reason = "SIGTERM"
    with stopped.log:
        assert stopped.run() == "SIGTERM"
    assert seen == [3]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"warmup": 1000}, "inside the warm-up of"),
        ({"warmup": 3}, ""),
        (
            {"warmup": 3, "objective": "simcut", "second_pass_start": 0.5},
            "before second passes begin at step 2,501",
        ),
        ({"warmup": 3, "objective": "simcut", "second_pass_start": 2}, ""),
    ],
)
def test_minutes_that_end_too_soon_are_told_of_early_and_at_the_end(capsys, settings, told):
    made = trainer(steps=5000, minutes=5.0, **settings)
    made.log = RunLog(None, 0, 5000)
    made.log._console.quiet = False
    collate = made.collate

    def at_pace(rows):
        # a second for each step, then the end
        step = made.train_state.counters.step
        made.clock._start = time.monotonic() - (step if step < 15 else 300)
        return collate(rows)

    made.collate = at_pace
    assert made.run() == "minutes"
    said = [line for line in capsys.readouterr().err.splitlines() if "minutes" in line]
    assert len(said) == (2 if told else 0)
    assert all(told in line for line in said)
    if said:
        assert "will end near step " in said[0]
        assert "ended at step 16" in said[1]


@pytest.mark.parametrize(
    ("best_by", "best"), [("bleu", 4), ("chrf", 2), ("cer", 3), ("exact_match", 1), ("loss", 5)]
)
def test_the_chosen_metric_says_which_validation_is_best(best_by, best):
    columns = {
        "valid_loss": [5.0, 4.0, 3.0, 2.0, 1.0],
        "bleu": [1.0, 2.0, 3.0, 4.0, 3.5],
        "chrf": [1.0, 9.0, 3.0, 4.0, 5.0],
        "cer": [90.0, 80.0, 10.0, 40.0, 50.0],
        "exact_match": [7.0, 2.0, 3.0, 4.0, 5.0],
    }
    rows = iter(zip(*columns.values(), strict=True))

    def validate():
        return dict(zip(columns, next(rows), strict=True)) | {
            "valid_perplexity": 1.0,
            "samples": [{"source": "a"}],
        }

    made = trainer(steps=5, validate=validate, validate_steps=1, best_by=best_by)
    made.run()
    (entry,) = made.train_state.best
    assert entry["step"] == best
    assert "samples" not in entry
    assert made.train_state.without_better == 5 - best


def test_a_signal_ends_the_run_after_the_step():
    made = trainer(steps=1000)
    collate = made.collate

    def interrupted(rows):
        made.stop.reason = "SIGTERM"
        return collate(rows)

    made.collate = interrupted
    assert made.run() == "SIGTERM"
    assert made.checkpoints == [("last", 1)]


@pytest.mark.parametrize(
    ("number", "saved"),
    [
        (signal.SIGUSR1, [("last", 1), ("last", 6)]),
        (signal.SIGHUP, [("last", 1)]),
        (signal.SIGTERM, [("last", 1)]),
    ],
)
def test_each_signal_has_a_checkpoint_written(number, saved):
    made = trainer(steps=6)
    outside = signal.signal(number, signal.SIG_DFL)  # under nohup a hang-up is ignored
    collate, before = made.collate, signal.getsignal(number)

    def interrupted(rows):
        if made.train_state.counters.step == 0:
            os.kill(os.getpid(), number)
        return collate(rows)

    made.collate = interrupted
    with _signals(made.stop):
        reason = made.run()
    assert made.checkpoints == saved
    assert reason == ("steps" if number == signal.SIGUSR1 else number.name)
    assert signal.getsignal(number) == before
    signal.signal(number, outside)


@pytest.mark.parametrize(
    ("variables", "refused"),
    [
        ({}, ""),
        ({"SLURM_NTASKS": "4", "SLURM_PROCID": "0"}, ""),  # a batch script
        ({"SLURM_NTASKS": "4", "SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0"}, ""),
        (
            {"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "1"},
            "srun started 2 independent processes",
        ),
        (
            {"OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_RANK": "0"},
            "mpirun started 8 independent processes",
        ),
        ({"PMI_SIZE": "3", "PMI_RANK": "2"}, "mpiexec started 3 independent processes"),
        ({"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "1", "WORLD_SIZE": "1"}, ""),
        ({"WORLD_SIZE": "many"}, "must be a number of processes"),
        ({"WORLD_SIZE": "2", "RANK": "0"}, "the environment lacks MASTER_ADDR, MASTER_PORT"),
        ({"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "a", "MASTER_PORT": "1"}, ""),
    ],
)
def test_processes_that_are_not_one_job_are_refused(variables, refused):
    with pytest.raises(SettingError, match=refused) if refused else nullcontext():
        refuse_separate_processes(variables)


def test_the_log_of_a_resumed_run_is_that_of_one_that_never_stopped(tmp_path):
    whole = trainer(steps=50, log=tmp_path / "whole.jsonl")
    whole._logged_at = math.inf  # no line because ten seconds have passed
    with whole.log:
        whole.run()
    stopped = trainer(steps=50, log=tmp_path / "resumed.jsonl")
    stopped._logged_at, collate = math.inf, stopped.collate

    def interrupted(rows):
        if stopped.train_state.counters.step == 29:
            stopped.stop.reason = "SIGTERM"
        return collate(rows)

    stopped.collate = interrupted
    with stopped.log:
        assert stopped.run() == "SIGTERM"
    saved = json.loads(json.dumps(asdict(stopped.train_state)))
    resumed = trainer(steps=50, log=tmp_path / "resumed.jsonl")
    resumed.optimizer.load(stopped.optimizer.weights(), stopped.optimizer.moments(), 30)
    resumed.train_state = TrainState(
        Counters(**saved["counters"]), since_log=LogSums(*saved["since_log"])
    )
    resumed._logged_at = math.inf
    with resumed.log:
        resumed.run()
    timed = {"seconds", "target_tokens_per_second", "memory"}
    logs = [
        [
            {name: value for name, value in json.loads(line).items() if name not in timed}
            for line in (tmp_path / f"{name}.jsonl").read_text().splitlines()
        ]
        for name in ("whole", "resumed")
    ]
    assert [line["step"] for line in logs[0]] == [50]
    assert logs[1] == logs[0]


def test_log_lines_have_the_promised_fields(tmp_path):
    made = trainer(steps=60, log=tmp_path / "log.jsonl")
    with made.log:
        made.run()
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    # on a slow machine there are more
    assert {50, 60} <= {line["step"] for line in lines}
    assert set(lines[0]) == {
        "step",
        "loss",
        "nll",
        "perplexity",
        "learning_rate",
        "source_tokens",
        "target_tokens",
        "step_source_tokens",
        "step_target_tokens",
        "gradient_norm",
        "flops",
        "padding",
        "target_tokens_per_second",
        "seconds",
        "memory",
    }
    assert lines[1]["target_tokens"] > lines[0]["target_tokens"]
    assert 0 <= lines[0]["padding"] < 1
    assert lines[0]["perplexity"] == pytest.approx(math.exp(lines[0]["nll"]))


@pytest.mark.parametrize("share", [(0, 2), (1, 2)])
def test_the_gradients_of_two_ranks_add_up_to_those_of_one(share, monkeypatch):
    rank, world = share
    alone, part, rest = (trainer(micro=40) for _ in range(3))
    rows = alone.batches.epoch(0)[0]
    assert all(alone.batches.cut(rows, 2))
    monkeypatch.setattr(trainer_module.RankGroup, "all_reduce", lambda self, values: values)
    monkeypatch.setattr(
        trainer_module.RankGroup, "all_reduce_gradients", lambda self, tensors: None
    )
    part.ranks, rest.ranks = RankGroup(rank, world), RankGroup(1 - rank, world)
    for made in (alone, part, rest):
        made.model.eval()  # another cut draws other dropout
    totals, one, other = (
        made._forward_backward(1, *made._own_share(rows)) for made in (alone, part, rest)
    )
    totals, shares = totals.as_tensor(), one.plus(other).as_tensor()
    flops = StepTotals._fields.index("flops")  # another cut has other padding
    assert shares[flops] <= totals[flops]
    shares[flops] = totals[flops]
    torch.testing.assert_close(shares, totals)
    for whole, one, other in zip(
        alone.optimizer.gradients, part.optimizer.gradients, rest.optimizer.gradients, strict=True
    ):
        torch.testing.assert_close(one + other, whole, atol=1e-5, rtol=1e-5)


def test_dropout_is_drawn_as_after_torchs_own_seeding():
    word = int(np.random.SeedSequence([1, 3, 2]).generate_state(1, np.uint64)[0])
    torch.manual_seed(word)
    drawn = torch.rand(5)
    seed_dropout(torch.device("cpu"), 1, 3, 2)
    assert torch.equal(torch.rand(5), drawn)


def test_micro_batches_of_a_step_draw_dropout_of_their_own(monkeypatch):
    """Two ranks draw for their micro-batches what one process would draw for the same ones."""
    seeds = []
    monkeypatch.setattr(trainer_module, "seed_dropout", lambda device, *words: seeds.append(words))
    monkeypatch.setattr(trainer_module.RankGroup, "all_reduce", lambda self, values: values)
    monkeypatch.setattr(
        trainer_module.RankGroup, "all_reduce_gradients", lambda self, tensors: None
    )
    made = trainer(micro=40)
    rows = made.batches.epoch(0)[0]
    for rank in (0, 1):
        made.ranks = RankGroup(rank, 2)
        made._forward_backward(3, *made._own_share(rows))
    count = sum(map(len, made.batches.cut(rows, 2)))
    assert seeds == [(1, 3, index) for index in range(count)]


@pytest.mark.parametrize("form", ["uniform", "others"])
def test_padding_is_predicted_by_nobody_but_keeps_its_share_of_the_smoothing(form):
    """Two rows of different length: real positions count, padding does not, its class does."""
    made = trainer(smoothing_target=form)
    made.model.eval()
    collator = Collator(0, 2, 3)
    made.collate = lambda rows: collator.batch([[5, 6], [7]], [[8, 9, 10], [11]])
    loss, nll, *_ = made._forward_backward(1, [np.array([0, 1])], 0)
    expected_loss = expected_nll = 0.0
    for source, target in (([5, 6], [8, 9, 10]), ([7], [11])):
        alone = collator.batch([source], [target])
        logits = made.model.project(made.model.states(alone.source, alone.target_in))[0].detach()
        logs = torch.log_softmax(logits, dim=1)
        for position, token in enumerate([*target, 3]):
            wanted = torch.full((20,), 0.1 / (20 if form == "uniform" else 19))
            wanted[token] = 0.9 + (0.1 / 20 if form == "uniform" else 0.0)
            assert float(wanted.sum()) == pytest.approx(1.0)
            expected_loss -= float(wanted @ logs[position])
            expected_nll -= float(logs[position, token])
    assert loss == pytest.approx(expected_loss, rel=1e-5)
    assert nll == pytest.approx(expected_nll, rel=1e-5)


def test_checkpoints_come_by_minutes_too():
    made = trainer(steps=4, checkpoint_minutes=1e-9)
    made.run()
    assert made.checkpoints == [("regular", step) for step in (1, 2, 3, 4)]
