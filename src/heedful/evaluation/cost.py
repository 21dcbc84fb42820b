"""
Training cost in floating-point operations.

Two ways to say it. The paper multiplies the training time by the number of GPUs and an estimate of
what each sustains (Table 2 and its footnote); that measures the machine that was used up. The other
way counts what the model computes, from its shapes; that measures the model.

Counted are products, a multiply-add as two operations, as everybody counts them (Kaplan et al.
2020, “Scaling Laws for Neural Language Models”, section 2.1). Sums, norms, softmax and the update
of the weights are a few per cent more and left out; looking an embedding up multiplies nothing. The
backward pass has two products for each one of the forward pass.
"""

from dataclasses import dataclass, fields

from heedful.model.encoder_decoder import EncoderDecoder

# Section 6.1, footnote 5: “2.8, 3.7, 6.0 and 9.5 TFLOPS for K80, K40, M40 and P100, respectively”.
SUSTAINED_TFLOPS = {"K80": 2.8, "K40": 3.7, "M40": 6.0, "P100": 9.5}
_BACKWARD = 2
Number = int | float


@dataclass(frozen=True)
class Work:
    """
    The number of positions that a model computes.

    Masked positions are computed too, so the causal half of the decoder's self-attention and
    padding count.
    """

    source: Number
    target: Number
    """Positions of either side, padding included unless it is left out."""
    predicted: Number
    """Target positions with an output projection, without padding in training."""
    source_source: Number
    target_target: Number
    target_source: Number
    """Query-key pairs summed over the sentences, for encoder, decoder and cross-attention."""

    @classmethod
    def of_batch(cls, rows: int, source: int, target: int, predicted: int) -> "Work":
        """Count the positions of one batch; all rows are as long as the longest."""
        return cls(
            rows * source,
            rows * target,
            predicted,
            rows * source * source,
            rows * target * target,
            rows * target * source,
        )


@dataclass(frozen=True)
class ForwardFlops:
    """Forward operations per position."""

    source: int
    target: int
    """Operations for a source and for a target position, whatever the lengths."""
    predicted: int
    """Operations of the output projection for a position."""
    source_source: int
    target_target: int
    target_source: int
    """Operations for a pair of positions."""

    @classmethod
    def of(cls, model: EncoderDecoder) -> "ForwardFlops":
        """Count the operations of a model."""
        # Keys and values of the memory are computed from the source's states, once per layer, and
        # so belong to the source's positions.
        encoder, decoder = model.encoder.flops(), model.decoder.flops()
        words = 0 if model.next_word is None else model.next_word.flops()
        return cls(
            source=encoder.each + decoder.source + words,
            target=decoder.each,
            predicted=2 * model.output.weight.numel(),
            source_source=encoder.own_pair,
            target_target=decoder.own_pair,
            target_source=decoder.source_pair,
        )

    def forward(self, work: Work) -> Number:
        """Sum a forward pass."""
        # Includes the output projection, which search computes at every step too.
        return sum(getattr(self, part.name) * getattr(work, part.name) for part in fields(work))

    def training(self, work: Work) -> Number:
        """Sum a forward and a backward pass."""
        # Every product has two in the backward pass: the gradients of input and weights, or of both
        # inputs in attention.
        return (1 + _BACKWARD) * self.forward(work)


def paper_flops(hours: Number, devices: int, sustained_tflops: float) -> float:
    """
    Estimate the cost of a training as the paper does.

    Section 6.1: “multiplying the training time, the number of GPUs used, and an estimate of the
    sustained single-precision floating-point capacity of each GPU”.

    The base and the big model of Table 2, 12 hours and 3.5 days on eight P100:

    >>> f"{paper_flops(12, 8, SUSTAINED_TFLOPS['P100']):.1e}"
    '3.3e+18'
    >>> f"{paper_flops(3.5 * 24, 8, SUSTAINED_TFLOPS['P100']):.1e}"
    '2.3e+19'
    """
    return hours * 3600 * devices * sustained_tflops * 1e12
