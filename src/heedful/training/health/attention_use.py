"""
A check that attention is used: where the decoder attends, and its loss without attention.

::

    weights of each layer, averaged over heads   ── entropy, largest weights, diagonal
    memory whose states all equal their mean     ── nats lost with uniform attention
    memory of another sentence                   ── nats lost with another source

Attention weights sum to one, and values are affine in the states of the memory. So if all states of
a memory equal their mean, any weights have the effect of uniform weights. The initial state of a
recurrent decoder is unchanged.

A decoder that has not learned to attend often uses the first state as a constant. In an encoder
that reads forward, this state differs from all others.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.data.batching import Batch
from heedful.model.contracts import DecoderInput
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.model.halves import Memory
from heedful.search.scoring import token_log_probabilities

# Minimum number of source tokens, end symbol included, of sentences whose attention is checked. In
# shorter sentences the first position is often the correct position.
SHORTEST = 5
# After 600 steps, a small GNMT on Multi30k attends to the first position for 96 to 100% of its
# tokens; with guided attention it does so for 6%. The thresholds were chosen by hand.
MOST_ON_ONE_PLACE = 0.9
LEAST_NATS = 0.1


Figures = Mapping[str, float]


@dataclass(frozen=True)
class HeldOutSample:
    """A sample of held-out pairs, in batches of similar length, and the model to check."""

    model: EncoderDecoder
    batches: tuple[Batch, ...]


class AttentionUse:
    """The check that the decoder uses its attention to the source."""

    name = "attention"
    """Key of the figures in a validation line of the log."""

    def measure(self, sample: HeldOutSample) -> Figures | None:
        """
        Measure the increase of the loss without attention, and where the decoder attends.

        The positions are measured in the layer that attends least to the first or last position.
        The model must be in evaluation mode. Returns None if no attention can be measured.
        """
        model = sample.model
        if not model.decoder.attends or not sample.batches:
            return None
        batches = [batch.to(model.device) for batch in sample.batches]
        with torch.inference_mode():
            memories = [model.encode(batch.source) for batch in batches]
            if all(_alike(memory) for memory in memories):
                return None
            losses = [_losses(model, *pair) for pair in zip(batches, memories, strict=True)]
            places = [_places(model, batch) for batch in batches]
        true, uniform, other_source, tokens = map(sum, zip(*losses, strict=True))
        figures = _figures([place for place in places if place is not None])
        nats = {"nats_of_uniform": uniform - true, "nats_of_other_source": other_source - true}
        figures |= {name: float(value) / tokens for name, value in nats.items()}
        if type(model.decoder_input) is not DecoderInput:
            figures["source_input"] = 1.0
        return figures

    def warning(self, figures: Figures) -> str | None:
        """
        Warn if most attention is on the first or last position, or if it hardly lowers the loss.

        A decoder whose input contains states of the source may work well with little attention.
        """
        if figures.get("source_input"):
            return None
        first, last = figures.get("first", 0.0), figures.get("last", 0.0)
        nats = figures["nats_of_uniform"]
        if max(first, last) > MOST_ON_ONE_PLACE:
            place = "first" if first >= last else "last"
            share = f"{max(first, last):.0%}"
            fault = f"{share} of the target tokens attend most to the {place} source position"
        elif nats < LEAST_NATS:
            fault = f"uniform attention would raise the loss by only {nats:.2f} nats per token"
        else:
            return None
        return (
            f"attention is not used: {fault}, so the model translates as if it had no attention. "
            "A recurrent decoder seldom recovers, but a Transformer may only need more steps. Try "
            "guided attention (train.guided_attention=1), another learning rate, a longer warm-up "
            "or larger initial weights. For a recurrent encoder, use layers that read both ways "
            "(model.recurrent.direction=bidirectional), or fewer layers."
        )

    def summary(self, figures: Figures) -> str:
        """Describe where the decoder attends, and how far the loss rises without attention."""
        costs = (
            f"the loss would rise by {figures['nats_of_uniform']:.2f} nats per token with uniform "
            f"attention, and by {figures['nats_of_other_source']:.2f} with another sentence's "
            "source"
        )
        if figures.get("source_input"):
            costs += "; the decoder's input contains states of the source, too"
        if "entropy" not in figures:
            return costs
        return (
            f"layer {figures['layer']:.0f}: entropy {figures['entropy']:.2f}, "
            f"{figures['first']:.0%} of the largest weights at the first position and "
            f"{figures['last']:.0%} at the last, correlation with the diagonal "
            f"{figures['diagonal']:+.2f}; {costs}"
        )


def _alike(memory: Memory) -> bool:
    """Return whether all positions of each source have the same encoder state."""
    places = memory.mask[:, 0, 0].unsqueeze(2)  # (batch, source, 1)
    return bool(((memory.states == memory.states[:, :1]) | ~places).all())


def _losses(model: EncoderDecoder, batch: Batch, memory: Memory) -> tuple[float, float, float, int]:
    """Sum negative log-probabilities: with the source, uniform attention, or another source."""
    others = model.encode(batch.source.roll(1, 0))  # (batch, source)
    memories = (memory, _uniform(memory), others)
    true, uniform, other_source = (_loss(model, kind, batch) for kind in memories)
    return true, uniform, other_source, int((batch.target_out != model.padding).sum())


def _loss(model: EncoderDecoder, memory: Memory, batch: Batch) -> float:
    """Sum the negative log-probabilities of a batch's targets."""
    real = batch.target_out != model.padding
    states = model.decode(memory, batch.target_in)[real]  # (tokens, d_model)
    output = model.output
    chosen = token_log_probabilities(states, batch.target_out[real], output.weight, output.bias)
    return -float(chosen.double().sum())


def _uniform(memory: Memory) -> Memory:
    """Replace each state with the mean of the states of its sentence."""
    real = memory.mask[:, 0, 0].unsqueeze(2)  # (batch, source, 1)
    mean = (memory.states * real).sum(dim=1, keepdim=True) / real.sum(dim=1, keepdim=True)
    return replace(memory, states=mean.expand_as(memory.states).contiguous())


class _Places:
    """Statistics of where the target tokens of a batch attend, for each layer."""

    def __init__(
        self,
        weights: Float[Tensor, "layers batch target source"],
        real: Bool[Tensor, "batch target"],
        source: Bool[Tensor, "batch source"],
    ) -> None:
        lengths = source.sum(dim=1)
        rows = real & (lengths >= SHORTEST).unsqueeze(1)  # (batch, target)
        last = (lengths - 1).unsqueeze(1).expand_as(rows)[rows]  # (tokens,)
        targets = (real.sum(dim=1) - 1).clamp(min=1).unsqueeze(1).expand_as(rows)[rows]
        order = torch.arange(real.size(1), device=real.device).expand_as(rows)[rows]
        chosen = weights[:, rows]  # (layers, tokens, source)
        largest = chosen.argmax(dim=2)  # (layers, tokens)
        self.entropy = torch.special.entr(chosen).sum(dim=2)
        self.first, self.last = largest == 0, largest == last
        self.looked_at, self.own = largest / last, order / targets


def _places(model: EncoderDecoder, batch: Batch) -> _Places | None:
    """Compute where a batch's target tokens attend; None if no layer has weights."""
    weights = model.attention(batch.source, batch.target_in).cross
    if not weights:
        return None
    means = torch.stack([layer.float().mean(dim=1) for layer in weights])
    return _Places(means, batch.target_out != model.padding, batch.source != model.padding)


def _figures(places: list[_Places]) -> dict[str, float]:
    """Average the statistics of the layer that attends least to the first or last position."""
    if not sum(place.own.numel() for place in places):
        return {}

    def together(name: str) -> Tensor:
        return torch.cat([getattr(place, name).double() for place in places], dim=-1).cpu()

    first, last = together("first").mean(dim=1), together("last").mean(dim=1)  # (layers,)
    layer = int(torch.maximum(first, last).argmin())
    own, looked_at = together("own"), together("looked_at")[layer]
    diagonal = torch.corrcoef(torch.stack([own, looked_at]))[0, 1].nan_to_num(0.0)
    return {
        "layer": float(layer + 1),
        "entropy": float(together("entropy")[layer].mean()),
        "first": float(first[layer]),
        "last": float(last[layer]),
        "diagonal": float(diagonal),
    }
