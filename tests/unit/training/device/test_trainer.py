"""The loop of a GPU on a processor, where graphs are plain calls and attention is a loop."""

import json
import math
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from heedful.config.model import ModelConfig
from heedful.data.batching import BatchOrder, Collator
from heedful.data.encoded.dataset import FlatIds
from heedful.errors import DeviceError, TrainingFailed
from heedful.families.build import build_model
from heedful.kernels.graphs import Graph
from heedful.model.initialize import initialize
from heedful.training.callbacks import Callback, Callbacks
from heedful.training.device.optimizations import Optimizations
from heedful.training.device.packed import Room, pack
from heedful.training.device.step import DeviceStep
from heedful.training.device.trainer import DeviceTrainer
from heedful.training.distributed import RankGroup
from heedful.training.log import RunLog
from heedful.training.optimizer import MixedPrecisionOptimizer
from heedful.training.schedule import Schedule
from heedful.training.state import Counters, TrainState
from heedful.training.trainer import Trainer
from tests.support.models import train_config

GENERATOR = np.random.default_rng(0)
SOURCES, TARGETS = (
    [GENERATOR.integers(4, 20, GENERATOR.integers(2, 9)).tolist() for _ in range(60)]
    for _ in range(2)
)
COLLATOR = Collator(0, 2, 3)
EXPLANATION = Path(__file__).parents[4] / "docs" / "explain" / "gpu.md"
SLOW = Optimizations(compiled=False, graphs=False, ahead=False)


class Pairs(BatchOrder):
    """Batches of pairs in memory, padded or laid out in a room."""

    def collate(self, rows):
        return COLLATOR.batch([SOURCES[i] for i in rows], [TARGETS[i] for i in rows])

    def room(self, batches):
        lengths = self.source_lengths, self.target_lengths
        return Room.of_batches(batches, *lengths, self.micro_batch_tokens + 10)

    def pack(self, rows, room):
        sides = ([side[i] for i in rows] for side in (SOURCES, TARGETS))
        flat = (
            FlatIds(np.concatenate(side).astype(np.uint16), np.array([*map(len, side)]))
            for side in sides
        )
        return pack(*flat, COLLATOR, room)


class SavedWeights(list):
    """Record the requested checkpoints, and the weights at each."""

    trainer = None

    def save(self, reason):
        self.append((reason, self.trainer.train_state.counters.step, weights(self.trainer)))
        return Path()


def weights(made):
    return {name: tensor.clone() for name, tensor in made.optimizer.weights().items()}


def trainer(
    kind=DeviceTrainer,
    steps=6,
    count=36,
    tokens=72,
    micro=24,
    precision="fp32",
    log=None,
    ema_decay=None,
    dropout=0.0,
    optimizations=None,
    validate=None,
    model_settings=None,
    device="cpu",
    train_state=None,
    **plan,
):
    shape = {"d_model": 16, "d_ff": 32, "heads": 2, "encoder_layers": 2, "decoder_layers": 1}
    # a bias of keys has no gradient but rounding, which Adam enlarges
    shape["projection_bias"] = False
    settings = {**shape, "dropout": dropout, **(model_settings or {})}
    model = build_model(ModelConfig(**settings), 20, 20, max_length=12)
    initialize(model, 1)
    model.to(device)
    source, target = (
        np.array([len(pair) + 1 for pair in side[:count]], dtype=np.int32)
        for side in (SOURCES, TARGETS)
    )
    pairs = Pairs(source, target, tokens, micro, "real", 1, padding_cost=0.0, left_out=1 << 30)
    notes = SavedWeights()
    settings = train_config(steps, ema_decay=ema_decay, **plan)
    made = kind(
        model,
        MixedPrecisionOptimizer(model, precision, settings),
        pairs,
        pairs.collate,
        settings,
        Schedule(warmup=10, d_model=16),
        train_state or TrainState(),
        RankGroup(),
        RunLog(log, 0, steps, quiet=True),
        notes,
        validate,
        **({} if optimizations is None else {"optimizations": optimizations}),
    )
    notes.trainer = made
    return made


@pytest.fixture
def lines_by_steps(monkeypatch):
    """Log by steps alone: on a busy machine, more lines come by the clock, and steps wait."""
    for module in ("trainer", "device.trainer"):
        monkeypatch.setattr(f"heedful.training.{module}.LOG_SECONDS", math.inf)


def run(made):
    with made.log:
        return made.run()


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# Several parts add gradients up, whatever the model is; one part holds more sentences.
@pytest.mark.parametrize(
    ("changes", "micro"),
    [
        ({}, 24),
        ({"ema_decay": 0.9, "clip_norm": 0.05}, 24),
        ({"label_smoothing": 0.0, "model_settings": {"tie_embeddings": "none"}}, 24),
        ({}, 200),
        ({"model_settings": {"norm": "pre"}}, 200),
        ({"model_settings": {"positions": "learned"}}, 200),
        ({"model_settings": {"causal_mask": False}}, 200),
        ({"model_settings": {"attention": {"window": 4}}}, 200),
    ],
    ids=str,
)
def test_weights_and_log_are_those_of_the_plain_loop(changes, micro, tmp_path, lines_by_steps):
    made = [
        trainer(kind, micro=micro, log=tmp_path / kind.__name__, **changes)
        for kind in (Trainer, DeviceTrainer)
    ]
    for one in made:
        assert run(one) == "steps"
    expected, found = map(weights, made)
    for name, weight in expected.items():
        torch.testing.assert_close(found[name], weight, rtol=1e-4, atol=1e-5)
    plain, device = (lines(tmp_path / kind.__name__)[-1] for kind in (Trainer, DeviceTrainer))
    for name in ("step", "source_tokens", "target_tokens", "learning_rate"):
        assert device[name] == plain[name]
    for name in ("loss", "nll", "gradient_norm"):
        assert device[name] == pytest.approx(plain[name], rel=1e-4)
    assert device["padding"] == 0.0
    assert "waiting" not in plain


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_optimizations_and_a_second_run_change_no_number(precision):
    made = [
        trainer(steps=3, count=12, optimizations=optimizations, dropout=0.2, precision=precision)
        for optimizations in (Optimizations(), Optimizations(), SLOW)
    ]
    for one in made:
        run(one)
    first, *others = map(weights, made)
    for other in others:
        for name, weight in first.items():
            assert torch.equal(other[name], weight)


def test_numbers_are_read_late_but_what_is_due_has_its_own_weights():
    """A checkpoint of a step holds the weights of just that step."""
    often, seldom = (trainer(micro=72, checkpoint_steps=every) for every in (1, 3))
    for one in (often, seldom):
        run(one)
    assert [step for _, step, _ in seldom.checkpoints] == [3, 6]
    at = {step: saved for _, step, saved in often.checkpoints}
    for _, step, saved in seldom.checkpoints:
        for name, weight in saved.items():
            assert torch.equal(at[step][name], weight)


@pytest.mark.parametrize("bad_step", [1, 3])
def test_a_step_that_is_not_finite_leaves_weights_and_moments_of_before_it(
    bad_step, tmp_path, lines_by_steps
):
    # with enough pairs that the epoch goes on after the bad step
    make = partial(trainer, count=60, ema_decay=0.9)
    whole = make(steps=bad_step - 1, checkpoint_steps=1) if bad_step > 1 else make()
    before = weights(whole)
    if bad_step > 1:
        run(whole)
        before = weights(whole)
    moments = whole.optimizer.moments()

    made, started = make(log=tmp_path / "log"), []
    start = made._start

    def poisoned(device_step, step, prepared):
        started.append(step)
        if step != bad_step:
            return start(device_step, step, prepared)
        # a learning rate cannot do it: the gradient must be bad, and only in this step, since the
        # next step has started when this one fails
        weight = made.model.embed_source.weight
        hook = weight.register_hook(lambda gradient: gradient * float("nan"))
        results = start(device_step, step, prepared)
        hook.remove()
        return results

    made._start = poisoned
    with pytest.raises(TrainingFailed, match=f"at step {bad_step} "):
        run(made)
    assert started[-1] == bad_step + 1
    for name, weight in weights(made).items():
        assert torch.equal(weight, before[name])
    for name, moment in made.optimizer.moments().items():
        assert torch.equal(moment, moments[name])
    assert made.train_state.counters.step == bad_step - 1
    refused = lines(tmp_path / "log")[-1]
    assert refused["step"] == bad_step
    assert refused["refused"]["pairs"]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_resumed_run_ends_with_the_bytes_of_one_that_never_stopped(precision):
    make = partial(trainer, steps=8, precision=precision, dropout=0.2, ema_decay=0.9)
    whole, saved = make(checkpoint_steps=4), {}

    def save(reason):
        state = whole.train_state
        moments = {name: moment.clone() for name, moment in whole.optimizer.moments().items()}
        saved[state.counters.step] = json.dumps(asdict(state)), weights(whole), moments

    whole.checkpoints.save = save
    run(whole)
    text, *tensors = saved[4]  # the second step of the second epoch
    counters = Counters(**json.loads(text)["counters"])
    assert counters.position == 1
    resumed = make(train_state=TrainState(counters))
    resumed.optimizer.load(*tensors, counters.step)
    run(resumed)
    assert resumed.train_state.counters.step == 8
    for before, after in (
        (whole.optimizer.weights(), resumed.optimizer.weights()),
        (whole.optimizer.moments(), resumed.optimizer.moments()),
    ):
        assert before.keys() == after.keys()
        for name, tensor in before.items():
            assert torch.equal(tensor, after[name]), name


def test_every_line_but_the_first_has_the_share_of_waiting(tmp_path, lines_by_steps, monkeypatch):
    for module in ("trainer", "device.trainer"):
        monkeypatch.setattr(f"heedful.training.{module}.LOG_STEPS", 2)
    made = trainer(log=tmp_path / "log", micro=72)

    def slowly(self, *arguments):
        time.sleep(0.05)  # longer than the step, which waits for it
        return Pairs.pack(self, *arguments)

    made.batches.__class__ = type("Slow", (Pairs,), {"pack": slowly})
    run(made)
    first, *later = lines(tmp_path / "log")
    assert "waiting" not in first
    assert [line["step"] for line in later] == [4, 6]
    assert all(0 < line["waiting"] <= 1 for line in later)


def test_waiting_is_the_share_of_the_time_since_the_line_before(monkeypatch):
    made, clock = trainer(), iter((10.0, 14.0, 15.0))
    times = SimpleNamespace(monotonic=lambda: next(clock))
    monkeypatch.setattr("heedful.training.device.trainer.time", times)
    figures = []
    for waited in (1.0, 3.0, 3.0):
        made._waited = waited
        figures.append(made._more_of_log())
    assert figures == [{}, {"waiting": 0.5}, {"waiting": 0.0}]


@pytest.mark.parametrize("place", ["__init__", "take"])
def test_a_lack_of_memory_names_the_setting_to_lower(place, monkeypatch):
    def fail(*_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    monkeypatch.setattr(DeviceStep, place, fail)
    advice = r"24 tokens per side do not; lower train\.micro_batch_tokens \(it is 24; "
    with pytest.raises(DeviceError, match=advice) as caught:
        run(trainer())
    rule = "has little effect unless sentences are almost as long as a micro-batch"
    assert f"A lower data.max_length {rule}." in str(caught.value)
    assert f"A lower `data.max_length` {rule}, because" in EXPLANATION.read_text(encoding="utf-8")


def test_another_error_of_a_step_is_not_called_a_lack_of_memory(monkeypatch):
    def fail(*_):
        raise RuntimeError("an illegal memory access was encountered")

    monkeypatch.setattr(DeviceStep, "take", fail)
    with pytest.raises(RuntimeError, match="an illegal memory access was encountered"):
        run(trainer())


@pytest.mark.parametrize("reason", ["SIGTERM", "enough"])
def test_a_run_ends_after_the_step_that_was_started(reason):
    made, callback = trainer(steps=50, micro=72), Callback()
    if reason != "SIGTERM":
        made.callbacks = Callbacks([callback])
    start = made._start

    def stopping(device_step, step, prepared):
        if step == 4 and made.callbacks.members:
            callback.stop(reason)  # from another thread, for example
        elif step == 4:
            made.stop.reason = reason
        return start(device_step, step, prepared)

    made._start = stopping
    assert run(made) == reason
    assert made.train_state.counters.step == 4
    assert [(reason, step) for reason, step, _ in made.checkpoints] == [("last", 4)]


def test_validations_and_the_end_of_an_epoch_are_where_the_plain_loop_has_them():
    seen = {}
    for kind in (Trainer, DeviceTrainer):
        made = trainer(
            kind,
            steps=11,
            micro=72,
            validate_steps=4,
            validate=lambda: {"valid_loss": 1.0, "bleu": 1.0},
        )
        made.log.validation = lambda line, kind=kind: seen.setdefault(kind, []).append(line["step"])
        run(made)
        counters = made.train_state.counters
        seen[kind] += [counters.epoch, counters.position, counters.target_tokens]
    assert seen[DeviceTrainer] == seen[Trainer]


def test_a_failure_of_the_thread_that_lays_out_is_raised_and_ends_it():
    import threading

    made = trainer()
    made.batches.__class__ = type("Broken", (Pairs,), {"pack": lambda *_: 1 / 0})
    with pytest.raises(ZeroDivisionError):
        run(made)
    assert not [one for one in threading.enumerate() if one.name == "heedful-ahead"]


@pytest.mark.parametrize("follows", [True, False])
def test_only_a_callback_that_asks_for_every_step_makes_the_device_wait(follows):
    class OfLines(Callback):
        def on_log(self, line):
            pass

    class OfSteps(Callback):
        def on_step(self, figures):
            seen.append(figures["step"])

    made, finish, waits, seen = trainer(micro=72), DeviceTrainer._finish, [], []
    made.callbacks = Callbacks([OfSteps() if follows else OfLines()])

    def counting(started, is_last):
        waits.append(is_last)
        return finish(made, started, is_last)

    made._finish = counting
    run(made)
    assert len(waits) == 6
    assert all(waits) == follows
    assert seen == ([1, 2, 3, 4, 5, 6] if follows else [])


def test_a_longer_text_leaves_the_positions_where_graphs_read_them():
    made = trainer(steps=1)
    positions = made.model.target_positions
    run(made)
    address = positions.table.data_ptr()
    positions(0, 2 * len(positions.table))  # as a long translation of a validation does
    assert positions.table.data_ptr() != address
    assert address in [table.data_ptr() for table in made._step._tables]


def test_kernels_are_imported_before_a_compiler_meets_them(monkeypatch):
    """A compiler cannot import modules, so layers would not be compiled."""
    from heedful.training.device import step

    calls = []
    monkeypatch.setattr(step, "has_packed_kernel", lambda x: calls.append("kernels"))
    made = trainer(steps=1)
    layer = made.model.encoder.layers.first
    layer.register_forward_pre_hook(lambda *_: calls.append("layer"))
    run(made)
    assert calls[0] == "kernels"


def test_whatever_the_compiler_raises_layers_are_computed_without_it(monkeypatch):
    from heedful.training.device import step

    class TooManyShapes(Exception):
        """Of no kind, as torch's own is."""

    class Rehearsed(Graph):
        """Runs the work when it is recorded, as on a GPU."""

        def __init__(self, work, *rest):
            work()
            super().__init__(work, *rest)

    monkeypatch.setattr(step, "Graph", Rehearsed)

    def fail(*_):
        raise TooManyShapes("limit of 8\nwith more lines")

    made, said = trainer(steps=2), []
    made.log.say = said.append
    fit = made._fit_room

    def with_compiler(batches):
        device_step = fit(batches)
        device_step._run = fail
        return device_step

    made._fit_room = with_compiler
    assert run(made) == "steps"
    assert said[0] == "torch's compiler failed, so layers are not compiled: limit of 8"
