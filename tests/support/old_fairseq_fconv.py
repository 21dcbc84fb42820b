"""Checkpoints of fairseq's `fconv`, written from its layout; its pass is `numpy_convs2s`."""

import argparse

import numpy as np
import torch

from tests.support import numpy_convs2s
from tests.support.old_fairseq import WORDS
from tests.support.old_models import log_softmax


def options(**changes):
    """What argparse had gathered when such a model was trained."""
    return {
        "arch": "fconv_iwslt_de_en",
        "task": "translation",
        "source_lang": "en",
        "target_lang": "fr",
        "dropout": 0.2,
        "encoder_embed_dim": 8,
        "encoder_layers": "[(6, 3)] * 2",
        "decoder_embed_dim": 8,
        "decoder_layers": "[(6, 3)] * 2 + [(4, 2)]",
        "decoder_out_embed_dim": 8,
        "decoder_attention": "True",
        "share_input_output_embed": False,
        "max_source_positions": 20,
        "max_target_positions": 12,
        **changes,
    }


def shapes(given, side):
    """Channels, kernel and residual of each layer."""
    return [(*shape, 1)[:3] for shape in eval(given[f"{side}_layers"])]


def attending(given):
    """Numbers of the layers that attend, from 1."""
    layers, chosen = len(shapes(given, "decoder")), eval(given["decoder_attention"])
    chosen = [chosen] * layers if isinstance(chosen, bool) else chosen
    return [number for number, one in enumerate(chosen, start=1) if one]


def weights(given, rows, version=2):
    """Draw the tensors of a state dictionary."""
    generator = np.random.default_rng(4)
    tensors = {"decoder.version": np.array([version], np.float32)}

    def draw(name, *shape):
        values = generator.normal(0, 0.5, shape)
        if name.endswith("weight_g"):
            values = np.abs(values) + 0.5
        tensors[name] = values.astype(np.float32)

    def linear(name, outputs, inputs):
        draw(f"{name}.weight_g", outputs, 1)
        draw(f"{name}.weight_v", outputs, inputs)
        draw(f"{name}.bias", outputs)

    for side, language in (("encoder", "en"), ("decoder", "fr")):
        width, below = given[f"{side}_embed_dim"], shapes(given, side)[0][0]
        longest = given[f"max_{'source' if side == 'encoder' else 'target'}_positions"]
        draw(f"{side}.embed_tokens.weight", rows[language], width)
        draw(f"{side}.embed_positions.weight", longest + 2, width)
        linear(f"{side}.fc1", below, width)
        inputs = [below]
        for number, (channels, kernel, residual) in enumerate(shapes(given, side)):
            name = f"{side}.convolutions.{number}"
            oldest = version < 2 and side == "decoder"
            draw(f"{name}.weight_g", *((kernel, 1, 1) if oldest else (1, 1, 2 * channels)))
            draw(f"{name}.weight_v", kernel, inputs[-1], 2 * channels)
            draw(f"{name}.bias", 2 * channels)
            if residual and inputs[-residual] != channels:
                linear(f"{side}.projections.{number}", channels, inputs[-residual])
            if side == "decoder" and number + 1 in attending(given):
                linear(f"decoder.attention.{number}.in_projection", width, channels)
                linear(f"decoder.attention.{number}.out_projection", channels, width)
            inputs.append(channels)
        outputs = width if side == "encoder" else given["decoder_out_embed_dim"]
        linear(f"{side}.fc2", outputs, inputs[-1])
    if given["share_input_output_embed"]:
        tensors["decoder.fc3.weight"] = tensors["decoder.embed_tokens.weight"]
        draw("decoder.fc3.bias", rows["fr"])
    else:
        linear("decoder.fc3", rows["fr"], given["decoder_out_embed_dim"])
    return tensors


def write(folder, given, version=2, change=lambda tensors: tensors):
    """Write a checkpoint and its dictionaries; returns the tensors."""
    for side, words in WORDS.items():
        lines = "".join(f"{word} {100 - n}\n" for n, word in enumerate(words))
        (folder / f"dict.{side}.txt").write_text(lines, encoding="utf-8")
    tensors = weights(given, {side: len(words) + 4 for side, words in WORDS.items()}, version)
    stored = change(dict(tensors))
    state = {
        "model": {name: torch.from_numpy(array) for name, array in stored.items()},
        "args": argparse.Namespace(**given),
        "extra_state": {"epoch": 2},
    }
    torch.save(state, folder / "model.pt")
    return tensors


def ours(tensors):
    """Put the tensors into the form of `numpy_convs2s`, in double precision."""
    found = {}
    for name, array in tensors.items():
        array = array.astype(np.float64)
        module, end = name.rsplit(".", 1)
        module = module.replace("_projection", "_proj")
        g = tensors.get(f"{module.replace('_proj', '_projection')}.weight_g")
        if end == "weight_v":
            axes = tuple(axis for axis, size in enumerate(g.shape) if size == 1)
            array = array * g / np.sqrt((array**2).sum(axes, keepdims=True))
            kernel = array.transpose(2, 0, 1) if array.ndim == 3 else array[:, None]
            found[f"{module}.weight"] = kernel
        elif end != "weight_g":
            found[f"{module}.{end}"] = array
    return found


def log_probabilities(tensors, given, source, target_in):
    """The pass of one pair of ids, in double precision."""
    found = ours(tensors)

    def embedded(side, ids):
        places = [2 + place for place in range(len(ids))]  # padding is 1
        return (
            found[f"{side}.embed_tokens.weight"][ids]
            + found[f"{side}.embed_positions.weight"][places]
        )

    states, _ = numpy_convs2s.states(
        found,
        embedded("encoder", source),
        embedded("decoder", target_in),
        shapes(given, "encoder"),
        shapes(given, "decoder"),
        attending(given),
    )
    matrix = found["decoder.fc3.weight"].reshape(-1, states.shape[1])
    return log_softmax(states @ matrix.T + found["decoder.fc3.bias"])
