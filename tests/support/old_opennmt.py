"""Checkpoints of OpenNMT-py's Transformer, and its forward pass in NumPy."""

import argparse
import math
import sys
import types
from collections import Counter, defaultdict

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
    sines_then_cosines,
)

SOURCE = ["<unk>", "<blank>", *[f"w{n}" for n in range(15)]]
TARGET = ["<unk>", "<blank>", "<s>", "</s>", *[f"m{n}" for n in range(12)]]
EMBEDDING = "{}.embeddings.make_embedding"


def options(**changes):
    """The checkpoint of a training of version 3; version 2 has a part of it."""
    return {
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "model_task": "seq2seq",
        "enc_layers": 2,
        "dec_layers": 1,
        "heads": 4,
        "transformer_ff": 24,
        "hidden_size": 16,
        "position_encoding": True,
        "position_encoding_type": "SinusoidalInterleaved",
        "max_relative_positions": 0,
        "pos_ffn_activation_fn": "relu",
        "self_attn_type": "scaled-dot",
        "share_embeddings": False,
        "share_decoder_embeddings": False,
        "copy_attn": False,
        "layer_norm": "standard",
        "norm_eps": 1e-6,
        "dropout": [0.1],
        "add_qkvbias": True,
        "add_ffnbias": True,
        "generator_function": "softmax",
        **changes,
    }


def weights(given, words):
    """Draw the state dictionaries of model and generator."""
    drawn, width, inner = Drawn(2), given["hidden_size"], given["transformer_ff"]
    sinusoids = (
        sines_then_cosines
        if given["position_encoding_type"] == "SinusoidalConcat"
        else sines_and_cosines_in_turn
    )

    def attend(name):
        for part in ("linear_keys", "linear_values", "linear_query", "final_linear"):
            drawn.linear(f"{name}.{part}", width, width, given["add_qkvbias"])

    def feed(name):
        drawn.linear(f"{name}.w_1", inner, width, given["add_ffnbias"])
        drawn.linear(f"{name}.w_2", width, inner, given["add_ffnbias"])
        drawn.norm(f"{name}.layer_norm", width)

    for side, pieces in zip(("encoder", "decoder"), words, strict=True):
        at = EMBEDDING.format(side)
        drawn.matrix(f"{at}.emb_luts.0.weight", len(pieces), width)
        table = sinusoids(range(300), width)[:, None].astype(np.float32)
        drawn.tensors[f"{at}.pe.pe"] = table
        drawn.norm(f"{side}.layer_norm", width)
    for n in range(given["enc_layers"]):
        attend(f"encoder.transformer.{n}.self_attn")
        feed(f"encoder.transformer.{n}.feed_forward")
        drawn.norm(f"encoder.transformer.{n}.layer_norm", width)
    for n in range(given["dec_layers"]):
        at = f"decoder.transformer_layers.{n}"
        attend(f"{at}.self_attn")
        attend(f"{at}.context_attn")
        feed(f"{at}.feed_forward")
        drawn.norm(f"{at}.layer_norm_1", width)
        drawn.norm(f"{at}.layer_norm_2", width)
    drawn.linear("generator", len(words[1]), width)
    drawn.tensors["generator.bias"][words[1].index("</s>")] += 3  # translations end soon
    tables = [f"{EMBEDDING.format(side)}.emb_luts.0.weight" for side in ("encoder", "decoder")]
    if given["share_embeddings"]:
        drawn.tensors[tables[1]] = drawn.tensors[tables[0]]
    if given["share_decoder_embeddings"]:
        drawn.tensors["generator.weight"] = drawn.tensors[tables[1]]
    return drawn.tensors


def write(path, given, *, version=3, words=(SOURCE, TARGET)):
    """Write a checkpoint; returns the tensors."""
    tensors = weights(given, words)
    prefix = "" if version == 3 else "0."
    state = {
        "model": {n: torch.from_numpy(a) for n, a in tensors.items() if n[:4] != "gene"},
        "generator": {
            n.replace("generator.", prefix): torch.from_numpy(a)
            for n, a in tensors.items()
            if n[:4] == "gene"
        },
        "opt": argparse.Namespace(**given),
        "optim": {"training_step": 5, "state": torch.ones(2)},
    }
    if version == 3:
        state["vocab"] = {"src": words[0], "tgt": words[1], "decoder_start_token": "<s>"}
        torch.save(state, path)
    else:
        with pretended_torchtext() as classes:
            state["vocab"] = fields(*words, *classes, version)
            torch.save(state, path, _use_new_zipfile_serialization=False)
    return tensors


class pretended_torchtext:  # noqa: N801
    """The modules that are named in checkpoints of version 2, as long as one is written."""

    NAMES = (
        "torchtext.data.field.Field",
        "torchtext.vocab.Vocab",
        "onmt.inputters.text_dataset.TextMultiField",
    )

    def __enter__(self):
        classes = []
        for path in self.NAMES:
            module, _, name = path.rpartition(".")
            parts = module.split(".")
            for n in range(len(parts)):
                sys.modules.setdefault(".".join(parts[: n + 1]), types.ModuleType(parts[n]))
            made = type(name, (), {"__module__": module})
            setattr(sys.modules[module], name, made)
            classes.append(made)
        factory = sys.modules["torchtext.vocab"].Vocab
        factory.__module__ = "torchtext.vocab"
        return classes

    def __exit__(self, *error):
        for name in [n for n in sys.modules if n.split(".")[0] in ("torchtext", "onmt")]:
            del sys.modules[name]


def fields(source, target, field, vocab, multi, version):
    """The objects that version 2 (or 1) pickles to hold two lists of words."""
    found = {}
    for side, pieces in (("src", source), ("tgt", target)):
        words = vocab()
        words.itos = list(pieces)
        words.stoi = defaultdict(int, {piece: n for n, piece in enumerate(pieces)})
        words.freqs = Counter(pieces)
        one = field()
        one.vocab, one.pad_token, one.tokenize = words, "<blank>", str.split if 0 else None
        both = multi()
        both.fields = [(side, one)]
        found[side] = both if version == 2 else words
    return found if version == 2 else list(found.items())


class OpenNmt:
    """Its forward pass, after transformer.py of encoders and decoders, and embeddings.py."""

    def __init__(self, tensors, given):
        self.t = {name: array.astype(np.float64) for name, array in tensors.items()}
        self.o = given
        self.f = {"relu": relu, "gelu": gelu}[given["pos_ffn_activation_fn"]]

    def norm(self, name, x):
        t = self.t
        return layer_norm(x, t[f"{name}.weight"], t[f"{name}.bias"], self.o["norm_eps"])

    def linear(self, name, x):
        return x @ self.t[f"{name}.weight"].T + self.t.get(f"{name}.bias", 0.0)

    def embed(self, side, ids):
        at = EMBEDDING.format(side)
        table, positions = self.t[f"{at}.emb_luts.0.weight"], self.t[f"{at}.pe.pe"]
        return table[ids] * math.sqrt(table.shape[1]) + positions[: len(ids), 0]

    def attend(self, name, query, memory, causal=False):
        q = self.linear(f"{name}.linear_query", query)
        k = self.linear(f"{name}.linear_keys", memory)
        v = self.linear(f"{name}.linear_values", memory)
        return self.linear(f"{name}.final_linear", attention(q, k, v, self.o["heads"], causal))

    def feed(self, name, x):
        inner = self.f(self.linear(f"{name}.w_1", self.norm(f"{name}.layer_norm", x)))
        return self.linear(f"{name}.w_2", inner) + x

    def log_probabilities(self, source, target_in):
        x = self.embed("encoder", source)
        for n in range(self.o["enc_layers"]):
            at = f"encoder.transformer.{n}"
            y = self.norm(f"{at}.layer_norm", x)
            x = self.feed(f"{at}.feed_forward", self.attend(f"{at}.self_attn", y, y) + x)
        memory = self.norm("encoder.layer_norm", x)
        x = self.embed("decoder", target_in)
        for n in range(self.o["dec_layers"]):
            at = f"decoder.transformer_layers.{n}"
            y = self.norm(f"{at}.layer_norm_1", x)
            x = self.attend(f"{at}.self_attn", y, y, causal=True) + x
            y = self.norm(f"{at}.layer_norm_2", x)
            x = self.feed(f"{at}.feed_forward", self.attend(f"{at}.context_attn", y, memory) + x)
        return log_softmax(self.linear("generator", self.norm("decoder.layer_norm", x)))
