"""A plan of a training on GPUs: memory and hours from a measured rate."""

from dataclasses import replace

import pytest
import torch

from heedful.config.load import load_config
from heedful.config.model import ModelConfig
from heedful.errors import SettingError
from heedful.families.build import build_model
from heedful.training.device.plan import Devices, PlannedTraining, plan_lines

SMALL = {"d_model": 16, "d_ff": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}
SGD = ("train.optimizer=sgd", "train.schedule=constant", "train.learning_rate=1")


def planned(settings=(), share=1.0, **model):
    """A training like the base model's, of a small model."""
    config = load_config("paper-base", settings)
    with torch.device("meta"):
        built = build_model(ModelConfig(**SMALL | model), 40, 40, max_length=64)
    return PlannedTraining.of(built, config.train, share)


def test_hours_follow_from_the_measured_rate():
    training = planned()
    assert training.hours(Devices(25_000.0)) == pytest.approx(100_000 / 3600)
    assert planned(share=0.5).hours(Devices(25_000.0)) == pytest.approx(50_000 / 3600)


def test_second_passes_take_time_and_memory():
    two = planned(("train.objective=simcut", "train.second_pass_start=0.5"))
    assert two.hours(Devices(25_000.0)) == pytest.approx(1.5 * 100_000 / 3600)
    assert two.states() == 2 * planned().states()


def test_several_devices_divide_the_batch_and_add_their_gradients_up():
    training = replace(planned(), parameters=1_000_000)
    compute, exchange = training.step_seconds(Devices(25_000.0, 4, 2.0))
    assert compute == pytest.approx(1 / 4)
    # three quarters of 4 MB twice, at 2 GB/s
    assert exchange == pytest.approx(2 * 0.75 * 4e6 / 2e9)
    assert training.step_seconds(Devices(25_000.0)) == (1.0, 0.0)
    with pytest.raises(SettingError, match="--device-count above 1 needs --device-bandwidth"):
        Devices(1.0, 2)


@pytest.mark.parametrize(
    ("settings", "size"),
    [
        ((), 18),
        (("train.precision=fp32",), 16),
        (("train.ema_decay=0.9",), 22),
        (SGD, 10),
        ((*SGD, "train.momentum=0.9"), 14),
    ],
)
def test_a_parameter_takes_its_copies_gradient_and_moments(settings, size):
    training = planned(settings)
    assert training.state == size * training.parameters


def test_kept_states_are_those_that_a_forward_pass_keeps():
    """In fp32 the same states are kept by a model with numbers."""
    settings = ("train.precision=fp32",)
    counted = planned(settings, dropout=0.0, activation="relu")
    model = build_model(ModelConfig(**SMALL, dropout=0.0), 40, 40, max_length=64)
    places = {}

    def keep(tensor):
        places[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    ids = torch.ones(8, 25, dtype=torch.long)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model.train().states(ids, ids)
    weights = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    size = sum(
        tensor.untyped_storage().nbytes()
        for place, tensor in places.items()
        if place not in weights
    )
    # a processor's kernels keep a little more or less than the plain ones
    assert counted.token_bytes == pytest.approx(size / 200, rel=0.35)


def test_states_grow_with_the_layers_and_the_micro_batch():
    shallow, deep = planned(), planned(encoder_layers=2)
    assert 1.2 < deep.token_bytes / shallow.token_bytes < 2
    parts = planned(("train.micro_batch_tokens=5000",))
    assert parts.states() == pytest.approx(shallow.states() / 5)
    assert shallow.states(5) == pytest.approx(shallow.states() / 5)
    assert parts.states(2) == parts.states()


def test_a_plan_marks_what_is_computed():
    training = replace(planned(), parameters=100_000_000, token_bytes=80_000.0)
    single = plan_lines(training, Devices(50_000.0))
    assert single == [
        "memory      3.8 GB: 1.8 GB of weights, gradients and moments, 2.0 GB of a "
        "micro-batch's activations, computed",
        "one device  13.9 hours (computed) for 100,000 steps of 25,000 target tokens at 50,000 a "
        "second",
    ]
    several = plan_lines(training, Devices(5_000_000.0, 8, 100.0))
    assert several[1].startswith("one device  8.3 minutes (computed) for")
    assert several[2] == (
        "8 devices   at least 12.7 minutes (computed): a step of 0.62 ms, and 7.00 ms to add up "
        "gradients at 100 GB/s. This is a lower bound, because several GPUs train with padding, "
        "while the given rate is usually that of one GPU without padding."
    )
    unknown = plan_lines(replace(training, token_bytes=None), Devices(1.0))[0]
    assert unknown.endswith("the memory for a batch is not known for this model, computed")
