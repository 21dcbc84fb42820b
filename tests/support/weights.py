"""Checkpoints whose weights were changed after training, with the right checksums."""

import torch

from heedful.runs.checkpoint import TRAINING, load_checkpoint, save_checkpoint


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
