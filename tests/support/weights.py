"""Weights of checkpoints: changed after training, with the right checksums, and compared."""

import json

import pytest
import torch
from safetensors.torch import load

from heedful.runs.checkpoint import MODEL, TRAINING, load_checkpoint, save_checkpoint


def assert_same_weights(run, whole, step):
    """Fail unless a checkpoint of two runs has the same bytes; name the tensors that differ."""
    choices = [json.loads((out / "config.json").read_text())["choices"] for out in (run, whole)]
    assert choices[0] == choices[1]
    for file in (MODEL, TRAINING):
        contents = [(out / "checkpoints" / step / file).read_bytes() for out in (run, whole)]
        if contents[0] == contents[1]:
            continue
        tensors, expected = map(load, contents)
        assert tensors.keys() == expected.keys()
        apart = {name: (tensors[name] - expected[name]).abs().max().item() for name in tensors}
        pytest.fail(f"{file} differs by { {name: most for name, most in apart.items() if most} }")


def change_weights(place, change):
    """Replace each tensor of a checkpoint's weights by `change(name, tensor)`."""
    stored = load_checkpoint(place, with_training=(place / TRAINING).exists())
    model = {name: change(name, tensor.clone()) for name, tensor in stored.model.items()}
    training = {name: tensor.clone() for name, tensor in stored.training.items()}
    state = {name: value for name, value in stored.state.items() if name != "sha256"}
    save_checkpoint(place, model, training or None, state)


def spoil(place, number=float("nan"), name="decoder.layers.0.feed_forward.linear2.weight"):
    """Set one number of one tensor; return the tensor's name."""

    def change(tensor_name, tensor):
        if tensor_name == name:
            tensor.view(-1)[5] = number
        return tensor

    change_weights(place, change)
    return name


def overflow(place):
    """Make all matrices so large that their products overflow."""
    change_weights(place, lambda _, x: x if x.dim() < 2 else torch.copysign(x * 0 + 2e38, x))
