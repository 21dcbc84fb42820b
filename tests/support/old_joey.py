"""Folders of Joey NMT's Transformer, and its forward pass in NumPy."""

import json
import math

import numpy as np
import torch

from tests.support.old_models import (
    Drawn,
    attention,
    gelu,
    layer_norm,
    log_softmax,
    relu,
    sines_and_cosines_in_turn,
    swish,
)

SPECIAL = ["<unk>", "<pad>", "<s>", "</s>"]
SOURCE = [*SPECIAL, *[f"w{n}" for n in range(15)]]
TARGET = [*SPECIAL, *[f"m{n}" for n in range(12)]]


def settings(encoder=None, decoder=None, scale=(True, True), tied=(False, False), **testing):
    """The settings of ``config.yaml``; JSON is YAML."""
    shape = {"type": "transformer", "num_layers": 2, "num_heads": 4, "hidden_size": 16}
    shape |= {"ff_size": 24, "dropout": 0.1}
    sides = []
    for scaled, changes in zip(scale, (encoder, decoder), strict=True):
        embeddings = {"embedding_dim": 16, "scale": scaled}
        sides.append({**shape, "embeddings": embeddings, **(changes or {})})
    return {
        "name": "old",
        "joeynmt_version": "2.3.0",
        "data": {"src": {"lang": "en", "level": "word"}, "trg": {"lang": "fr", "level": "word"}},
        "testing": {"beam_size": 3, "beam_alpha": 0.7, "max_output_length": 9, **testing},
        "training": {"epochs": 3},
        "model": {
            "tied_embeddings": tied[0],
            "tied_softmax": tied[1],
            "encoder": sides[0],
            "decoder": sides[1],
        },
    }


def weights(given, words):
    """Draw the tensors of `model_state`."""
    drawn, sides = Drawn(3), given["model"]
    for side, name, pieces in zip(("encoder", "decoder"), ("src", "trg"), words, strict=True):
        one = sides[side]
        width, inner = one["hidden_size"], one["ff_size"]
        drawn.matrix(f"{name}_embed.lut.weight", len(pieces), width)
        drawn.tensors[f"{side}.pe.pe"] = np.zeros((1, 9, width), np.float32)
        attentions, norms = (
            (["src_src_att"], ["layer_norm"])
            if side == "encoder"
            else (["trg_trg_att", "src_trg_att"], ["x_layer_norm", "dec_layer_norm"])
        )
        for n in range(one["num_layers"]):
            at = f"{side}.layers.{n}"
            for kind in attentions:
                for part in ("k_layer", "v_layer", "q_layer", "output_layer"):
                    drawn.linear(f"{at}.{kind}.{part}", width, width)
            for norm in (*norms, "feed_forward.layer_norm"):
                drawn.norm(f"{at}.{norm}", width)
            drawn.linear(f"{at}.feed_forward.pwff_layer.0", inner, width)
            drawn.linear(f"{at}.feed_forward.pwff_layer.3", width, inner)
        if one.get("layer_norm") == "pre":
            drawn.norm(f"{side}.layer_norm", width)
    drawn.matrix("decoder.output_layer.weight", len(words[1]), width)
    if sides["tied_embeddings"]:
        drawn.tensors["trg_embed.lut.weight"] = drawn.tensors["src_embed.lut.weight"]
    if sides["tied_softmax"]:
        drawn.tensors["decoder.output_layer.weight"] = drawn.tensors["trg_embed.lut.weight"]
    return drawn.tensors


def write(folder, given, words=(SOURCE, TARGET), offset=0.0):
    """Write the files of a training, optionally with large biases; returns the tensors."""
    tensors = weights(given, words)
    for name in tensors:  # norms take the offset away again, and with it digits
        tensors[name] = tensors[name] + np.float32(offset * name.endswith("pwff_layer.3.bias"))
    save(folder, given, words, tensors)
    return tensors


def save(folder, given, words, tensors):
    """Write settings, words and weights as a training leaves them."""
    folder.mkdir(exist_ok=True)
    (folder / "config.yaml").write_text(json.dumps(given), encoding="utf-8")
    for name, pieces in zip(("src", "trg"), words, strict=True):
        (folder / f"{name}_vocab.txt").write_text("\n".join([*pieces, ""]), encoding="utf-8")
    state = {
        "steps": 5,
        "best_ckpt_score": np.float64(12.5),
        "best_ckpt_iter": 5,
        "model_state": {name: torch.from_numpy(array) for name, array in tensors.items()},
        "optimizer_state": {"state": {0: {"step": torch.tensor(1.0)}}, "param_groups": [{}]},
        "train_iter_state": torch.ones(4, dtype=torch.uint8),
    }
    torch.save(state, folder / "best.ckpt")


class Joey:
    """Its forward pass, after encoders.py, decoders.py and transformer_layers.py of 2.3.0."""

    def __init__(self, tensors, given):
        self.t = {name: array.astype(np.float64) for name, array in tensors.items()}
        self.o = given["model"]

    def norm(self, name, x):
        return layer_norm(x, self.t[f"{name}.weight"], self.t[f"{name}.bias"], 1e-6)

    def linear(self, name, x):
        return x @ self.t[f"{name}.weight"].T + self.t[f"{name}.bias"]

    def embed(self, side, name, ids):
        x = self.t[f"{name}_embed.lut.weight"][ids]
        if self.o[side]["embeddings"]["scale"]:
            x = x * math.sqrt(x.shape[1])
        return x + sines_and_cosines_in_turn(range(len(ids)), x.shape[1])

    def attend(self, name, memory, query, heads, causal=False):
        k, v, q = (
            self.linear(f"{name}.{part}_layer", y)
            for part, y in (("k", memory), ("v", memory), ("q", query))
        )
        return self.linear(f"{name}.output_layer", attention(q, k, v, heads, causal))

    def around(self, before, norm, x, f):
        residual = x
        x = f(self.norm(norm, x) if before else x) + residual
        return x if before else self.norm(norm, x)

    def feed(self, name, kind, x):
        f = {"relu": relu, "gelu": gelu, "swish": swish}[kind]
        return self.linear(f"{name}.3", f(self.linear(f"{name}.0", x)))

    def stack(self, side, x, before, last, memory=None):
        one = self.o[side]
        heads, kind = one["num_heads"], one.get("activation", "relu")
        for n in range(one["num_layers"]):
            at = f"{side}.layers.{n}"

            def own(y, at=at):
                name = "src_src_att" if memory is None else "trg_trg_att"
                return self.attend(f"{at}.{name}", y, y, heads, causal=memory is not None)

            def across(y, at=at):
                return self.attend(f"{at}.src_trg_att", memory, y, heads)

            first = "layer_norm" if memory is None else "x_layer_norm"
            x = self.around(before, f"{at}.{first}", x, own)
            if memory is not None:
                x = self.around(before, f"{at}.dec_layer_norm", x, across)
            x = self.around(
                before,
                f"{at}.feed_forward.layer_norm",
                x,
                lambda y, at=at: self.feed(f"{at}.feed_forward.pwff_layer", kind, y),
            )
        return self.norm(f"{side}.layer_norm", x) if last else x

    def log_probabilities(self, source, target_in):
        encoder, decoder = self.o["encoder"], self.o["decoder"]
        memory = self.stack(
            "encoder",
            self.embed("encoder", "src", source),
            encoder.get("layer_norm", "pre") == "pre",  # the layers' default is not the stack's
            encoder.get("layer_norm", "post") == "pre",
        )
        tied = self.o["tied_embeddings"]
        x = self.stack(
            "decoder",
            self.embed("encoder" if tied else "decoder", "trg", target_in),
            decoder.get("layer_norm", "post") == "pre",
            decoder.get("layer_norm", "post") == "pre",
            memory,
        )
        return log_softmax(x @ self.t["decoder.output_layer.weight"].T)
