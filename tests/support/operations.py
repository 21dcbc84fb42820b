"""Operations as torch's own counter finds them while a model runs."""

import json
import re
from collections.abc import Callable

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from heedful.config.load import load_config
from heedful.config.model import ModelConfig
from heedful.config.recipes import recipe_names
from heedful.families.build import build_model
from heedful.kernels.loss import plain_loss
from heedful.model.flops import RowLengths
from heedful.model.initialize import initialize
from tests.support.families import HERE
from tests.support.models import draw_gates

_WIDTHS = {
    "d_model": 32,
    "d_ff": 48,
    "encoder_d_ff": 40,
    "decoder_d_ff": 56,
    "d_k": 5,
    "d_v": 7,
    "hidden_size": 32,
    "encoder_hidden_size": 24,
    "decoder_hidden_size": 40,
    "attention_size": 20,
    "readout_size": 32,
    "projection_size": 32,
    "channels": 12,
    "out_embed_dim": 24,
    "count": 8,
    "groups": 4,
}
_MOST_LAYERS = 3
_ALIKE = {"heads": 2, "dropout": 0.1}
"""Of what needs no more than one value to be tested."""


def small_recipes() -> dict[str, ModelConfig]:
    """All built-in recipes, narrow and shallow; of those that are then alike the first."""
    found: dict[str, ModelConfig] = {}
    seen = set()
    for name in recipe_names():
        values = _narrowed(load_config(name).model.model_dump())
        if (values["encoder"], values["decoder"]) == ("recurrent", "transformer"):
            values["recurrent"]["encoder_hidden_size"] = values["d_model"] // 2
        if (key := json.dumps(values, sort_keys=True)) not in seen:
            seen.add(key)
            found[name] = ModelConfig(**values)
    return found


def _narrowed(values: dict) -> dict:
    """Replace the sizes in the settings of a model."""
    found = {}
    for name, value in values.items():
        if isinstance(value, dict):
            found[name] = _narrowed(value)
        elif name in _ALIKE:
            found[name] = _ALIKE[name]
        elif name in _WIDTHS and value is not None:
            found[name] = _WIDTHS[name]
        elif name.endswith("_layers") and isinstance(value, int):
            found[name] = min(value, _MOST_LAYERS)
        elif name.endswith("_layers") and isinstance(value, str) and "(" in value:
            shorter = re.sub(r"(\d+)x", lambda match: f"{min(2, int(match[1]))}x", value)
            found[name] = re.sub(r"\((\d+),", lambda match: f"({int(match[1]) // 16},", shorter)
        else:
            found[name] = value
    if found.get("projection_size"):  # to fewer than there are
        found["hidden_size"] = 48
    return found


def model_of(config: ModelConfig):
    """Build a model in training mode, whose gates are drawn."""
    vocabularies = (31, 31) if config.tie_embeddings == "all" else (29, 37)
    model = build_model(config, *vocabularies, max_length=400)
    initialize(model, 1)
    draw_gates(model)
    return model.train()


class CountedBatch:
    """A batch of random ids; with `padded`, of sentences that differ in length."""

    def __init__(
        self, padded: bool, source_time: int = 7, target_time: int = 5, rows: int = 5
    ) -> None:
        self.lengths = source, target = (
            RowLengths.padded(_tokens(rows, source_time, padded, 0)),
            RowLengths.padded(_tokens(rows, target_time, padded, 1)),
        )
        self.source, self.target = _ids(source), _ids(target)
        self.real = self.target != 0

    def alone(self) -> "list[CountedBatch]":
        """Make a batch of each sentence."""
        sentences = []
        for row in range(len(self.source)):
            source, target = (int(side.tokens[row]) for side in self.lengths)
            sentence = CountedBatch(False, source, target, rows=1)
            sentence.source = self.source[row, None, :source]
            sentence.target = self.target[row, None, :target]
            sentences.append(sentence)
        return sentences

    def forward(self, model) -> None:
        """Compute the logits of the real tokens."""
        model.project(model.states(self.source, self.target)[self.real])


def count(call: Callable[..., object], *arguments: object, more: dict | None = None) -> int:
    """
    Count the operations of a call as torch does, products with a vector too.

    `more`: how to count further functions, by their names in torch.

    Not inside the fused kernels of a processor, which are switched off.
    """

    def vector(matrix, _, *, out_shape=None, **__):
        return 2 * matrix[0] * matrix[1]

    mapping = {torch.ops.aten.mv: vector, **(more or {})}
    counter = FlopCounterMode(display=False, custom_mapping=mapping)
    with sdpa_kernel(SDPBackend.MATH), counter:
        call(*arguments)
    return counter.get_total_flops()


class EverythingIsRead:
    """
    Lets gradients reach what a recurrent loop begins and ends with.

    Two products backwards are counted for each one forwards. Torch leaves out those of a first
    state of zeros, and of last states and contexts that nothing reads.
    """

    def __init__(self, monkeypatch) -> None:
        self.results: list[torch.Tensor] = []
        if "recurrent" not in HERE:
            return
        from heedful.families.recurrent.cells import RecurrentLayer
        from heedful.families.recurrent.decoder import RecurrentDecoder

        zero_state, start = RecurrentLayer.zero_state, RecurrentDecoder.start
        advance = RecurrentDecoder._advance

        def learned_zero(layer, rows, like):
            return tuple(part.requires_grad_() for part in zero_state(layer, rows, like))

        def learned_start(decoder, memory):
            state = start(decoder, memory)
            if state.fed is not None:
                state.fed.requires_grad_()
            return state

        def noted(*arguments, **options):
            step = advance(*arguments, **options)
            contexts = () if step.context is None else (step.context,)
            self.results += [*contexts, *(part for layer in step.state.layers for part in layer)]
            return step

        monkeypatch.setattr(RecurrentLayer, "zero_state", learned_zero)
        monkeypatch.setattr(RecurrentDecoder, "start", learned_start)
        monkeypatch.setattr(RecurrentDecoder, "_advance", noted)

    def train(self, batch: CountedBatch, model) -> None:
        """Train on a batch, with a gradient of zero for every result of the loop."""
        self.results.clear()
        states = model.states(batch.source, batch.target)[batch.real]
        loss, _ = plain_loss(
            states, batch.target[batch.real], model.output.weight, model.output.bias
        )
        (loss + 0.0 * sum(result.sum() for result in self.results)).backward()


def _tokens(rows: int, time: int, padded: bool, seed: int) -> np.ndarray:
    """Draw the lengths of sentences, of which one is the longest."""
    if not padded:
        return np.full(rows, time)
    lengths = np.random.default_rng(seed).integers(2, time, rows)
    lengths[seed] = time
    return lengths


def _ids(lengths: RowLengths) -> torch.Tensor:
    """Draw ids, zero at padding."""
    ids = torch.randint(4, 29, (len(lengths.tokens), lengths.longest))
    return ids * (torch.arange(lengths.longest) < torch.tensor(lengths.tokens).unsqueeze(1))
