"""Checkpoints of fairseq's `transformer`, and its forward pass in NumPy."""

import argparse
import math

import numpy as np
import torch

from tests.support.old_models import (
    Drawn,
    attention,
    gelu,
    gelu_by_tanh,
    layer_norm,
    log_softmax,
    relu,
    sines_then_cosines,
    swish,
)

WORDS = {"en": [f"w{n}" for n in range(14)], "fr": [f"m{n}" for n in range(10)]}
ACTIVATIONS = {"relu": relu, "gelu": gelu, "gelu_accurate": gelu_by_tanh, "swish": swish}


def options(**changes):
    """What argparse had gathered when such a model was trained."""
    return {
        "arch": "transformer",
        "task": "translation",
        "source_lang": "en",
        "target_lang": "fr",
        "encoder_embed_dim": 16,
        "encoder_ffn_embed_dim": 24,
        "encoder_layers": 2,
        "encoder_attention_heads": 4,
        "encoder_normalize_before": False,
        "encoder_learned_pos": False,
        "decoder_embed_dim": 16,
        "decoder_ffn_embed_dim": 24,
        "decoder_layers": 2,
        "decoder_attention_heads": 4,
        "decoder_normalize_before": False,
        "decoder_learned_pos": False,
        "decoder_input_dim": 16,
        "decoder_output_dim": 16,
        "share_all_embeddings": False,
        "share_decoder_input_output_embed": False,
        "no_scale_embedding": False,
        "layernorm_embedding": False,
        "adaptive_softmax_cutoff": None,
        "no_token_positional_embeddings": False,
        "no_cross_attention": False,
        "encoder_layerdrop": 0.2,
        "activation_fn": "relu",
        "dropout": 0.3,
        "max_source_positions": 40,
        "max_target_positions": 12,
        **changes,
    }


def weights(given, rows, seed=1):
    """Draw the tensors of a state dictionary of fairseq 0.10 and later."""
    drawn, width = Drawn(seed), given["encoder_embed_dim"]
    closed = not given.get("no_decoder_final_norm")
    for side, language in (("encoder", "en"), ("decoder", "fr")):
        drawn.vector(f"{side}.version", 1)
        drawn.tensors[f"{side}.version"][:] = 3
        drawn.matrix(f"{side}.embed_tokens.weight", rows[language], width)
        longest = given[f"max_{'source' if side == 'encoder' else 'target'}_positions"]
        if given[f"{side}_learned_pos"]:
            drawn.matrix(f"{side}.embed_positions.weight", longest + 2, width)
        else:
            drawn.vector(f"{side}.embed_positions._float_tensor", 1)
        inner = given[f"{side}_ffn_embed_dim"]
        for n in range(given[f"{side}_layers"]):
            layer = f"{side}.layers.{n}"
            for kind in ("self_attn", "encoder_attn")[: 1 + (side == "decoder")]:
                for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    drawn.linear(f"{layer}.{kind}.{part}", width, width)
                drawn.norm(f"{layer}.{kind}_layer_norm", width)
            drawn.linear(f"{layer}.fc1", inner, width)
            drawn.linear(f"{layer}.fc2", width, inner)
            drawn.norm(f"{layer}.final_layer_norm", width)
        if given[f"{side}_normalize_before"] and (side == "encoder" or closed):
            drawn.norm(f"{side}.layer_norm", width)
    tensors = drawn.tensors
    if given["share_all_embeddings"]:
        tensors["decoder.embed_tokens.weight"] = tensors["encoder.embed_tokens.weight"]
    if given["share_all_embeddings"] or given["share_decoder_input_output_embed"]:
        tensors["decoder.output_projection.weight"] = tensors["decoder.embed_tokens.weight"]
    else:
        drawn.matrix("decoder.output_projection.weight", rows["fr"], width)
    return tensors


def write(folder, given, *, joined=False, form="args", zipped=True, filled=0, change=None):
    """Write a checkpoint and its dictionaries; returns the tensors."""
    words = {side: list(some) for side, some in WORDS.items()}
    if joined:
        words = dict.fromkeys(("en", "fr"), sorted({*words["en"], *words["fr"]}))
    for side, some in words.items():
        some = [*some, *(f"madeupword{n:04d}" for n in range(filled))]
        words[side] = some
        lines = "".join(f"{word} {100 - n}\n" for n, word in enumerate(some))
        (folder / f"dict.{side}.txt").write_text(lines, encoding="utf-8")
    tensors = weights(given, {side: len(some) + 4 for side, some in words.items()})
    stored = dict(tensors) if change is None else change(dict(tensors))
    state = {
        "model": {name: torch.from_numpy(array) for name, array in stored.items()},
        "optimizer_history": [{"num_updates": 7, "lr_scheduler_state": {"best": np.float64(1.5)}}],
        "extra_state": {"train_iterator": {"epoch": 2}, "val_loss": 3.25},
        "last_optimizer_state": {"state": {0: {"exp_avg": torch.ones(3)}}},
        "args": argparse.Namespace(**given) if form == "args" else None,
    }
    if form != "args":
        state["cfg"] = {
            "_name": None,
            "common": {"seed": 1},
            "task": {"_name": "translation", "source_lang": "en", "target_lang": "fr"},
            "generation": {"beam": 3, "lenpen": 0.6, "max_len_a": 1.0, "max_len_b": 10},
            "model": argparse.Namespace(**given) if form == "cfg" else nested(given),
        }
    torch.save(state, folder / "model.pt", _use_new_zipfile_serialization=zipped)
    return tensors


def nested(given):
    """The options in the form of configurations of 2021 and later."""
    found = {"_name": "transformer", "encoder": {}, "decoder": {}, "quant_noise": {"pq": 0.0}}
    for name, value in given.items():
        side, _, rest = name.partition("_")
        if side in found:
            found[side][rest] = value
        elif name not in ("arch", "task", "source_lang", "target_lang"):
            found[name] = value
    return found


class Fairseq:
    """Its forward pass, after the files named in references: encoder, decoder, layer, positions."""

    def __init__(self, tensors, given):
        self.t = {name: array.astype(np.float64) for name, array in tensors.items()}
        self.o = given
        self.f = ACTIVATIONS[given["activation_fn"]]

    def norm(self, name, x):
        return layer_norm(x, self.t[f"{name}.weight"], self.t[f"{name}.bias"], 1e-5)

    def linear(self, name, x):
        return x @ self.t[f"{name}.weight"].T + self.t[f"{name}.bias"]

    def embed(self, side, ids):
        width = self.o["encoder_embed_dim"]
        scale = 1.0 if self.o["no_scale_embedding"] else math.sqrt(width)
        places = [1 + 1 + n for n in range(len(ids))]  # padding is 1; the first word is at 2
        if self.o[f"{side}_learned_pos"]:
            position = self.t[f"{side}.embed_positions.weight"][places]
        else:
            position = sines_then_cosines(places, width)
        return scale * self.t[f"{side}.embed_tokens.weight"][ids] + position

    def attend(self, name, x, memory, heads, causal=False):
        q, k, v = (
            self.linear(f"{name}.{part}_proj", y)
            for part, y in (("q", x), ("k", memory), ("v", memory))
        )
        return self.linear(f"{name}.out_proj", attention(q, k, v, heads, causal))

    def block(self, side, norm, x, f):
        if self.o[f"{side}_normalize_before"]:
            return x + f(self.norm(norm, x))
        return self.norm(norm, x + f(x))

    def log_probabilities(self, source, target_in):
        x = self.embed("encoder", source)
        heads = self.o["encoder_attention_heads"]
        for n in range(self.o["encoder_layers"]):
            at = f"encoder.layers.{n}"
            x = self.block(
                "encoder",
                f"{at}.self_attn_layer_norm",
                x,
                lambda y, at=at: self.attend(f"{at}.self_attn", y, y, heads),
            )
            x = self.block(
                "encoder",
                f"{at}.final_layer_norm",
                x,
                lambda y, at=at: self.linear(f"{at}.fc2", self.f(self.linear(f"{at}.fc1", y))),
            )
        memory = self.norm("encoder.layer_norm", x) if "encoder.layer_norm.bias" in self.t else x
        x = self.embed("decoder", target_in)
        heads = self.o["decoder_attention_heads"]
        for n in range(self.o["decoder_layers"]):
            at = f"decoder.layers.{n}"
            x = self.block(
                "decoder",
                f"{at}.self_attn_layer_norm",
                x,
                lambda y, at=at: self.attend(f"{at}.self_attn", y, y, heads, causal=True),
            )
            x = self.block(
                "decoder",
                f"{at}.encoder_attn_layer_norm",
                x,
                lambda y, at=at: self.attend(f"{at}.encoder_attn", y, memory, heads),
            )
            x = self.block(
                "decoder",
                f"{at}.final_layer_norm",
                x,
                lambda y, at=at: self.linear(f"{at}.fc2", self.f(self.linear(f"{at}.fc1", y))),
            )
        if "decoder.layer_norm.bias" in self.t:
            x = self.norm("decoder.layer_norm", x)
        return log_softmax(x @ self.t["decoder.output_projection.weight"].T)
