"""
Token embeddings, positions and the output layer: sections 3.4 and 3.5 of the paper.

Three layouts of sinusoids are in use. The paper's text interleaves sine and cosine
(``interleaved``). The authors' code puts all sines before all cosines, with slightly different
wavelengths (``halves``). Other toolkits have the order of the code and the wavelengths of the paper
(``grouped``).

The logits of a whole batch are by far the largest tensor of a model (tokens x vocabulary). The loss
therefore takes the output layer's matrix and computes the logits in chunks.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.errors import ArgumentError, SettingError
from heedful.kernels.api import lookup


class TokenEmbedding(nn.Module):
    """
    Token embeddings, scaled by sqrt(d_model) unless `scale` is false.

    The source, the target and the output projection may share one table (section 3.4). The authors'
    code starts decoding from a zero vector: the embedding of `zero_token`, their padding symbol.
    """

    def __init__(
        self, vocabulary: int, d_model: int, scale: bool = True, zero_token: int | None = None
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(vocabulary, d_model))
        self.scale = math.sqrt(d_model) if scale else 1.0
        self.zero_token = zero_token

    def forward(self, ids: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time d_model"]:
        """Look up and scale the embeddings of the tokens."""
        try:
            out = lookup(ids, self.weight) * self.scale  # (batch, time, d_model)
        except IndexError:  # only a CPU checks the ids
            raise ArgumentError(
                f"token ids must be from 0 to {len(self.weight) - 1:,}, because the vocabulary has "
                f"{len(self.weight):,} tokens, but they range from {int(ids.min()):,} to "
                f"{int(ids.max()):,}."
            ) from None
        if self.zero_token is not None:
            out = out.masked_fill((ids == self.zero_token).unsqueeze(-1), 0.0)
        return out


def paper_rates(d_model: int) -> Float[Tensor, " half"]:
    """Compute the angular frequency ``10000^(-2i/d)`` of each pair of columns (section 3.5)."""
    return 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)


def code_rates(d_model: int) -> Float[Tensor, " half"]:
    """Compute the authors' angular frequencies, from 1 to exactly 1 / 10000 (`halves_sinusoid`)."""
    half = d_model // 2
    step = math.log(10000.0) / max(half - 1, 1)
    return torch.exp(-step * torch.arange(half, dtype=torch.float64))


def interleaved_sinusoid(first: int, length: int, d_model: int) -> Float[Tensor, "length d_model"]:
    """
    Compute the paper's sinusoids of ``pos / 10000^(2i/d)``: sines in columns 2i, cosines in 2i + 1.

    The angles are computed in fp64, so position 100,000 is as exact as position 1.
    """
    positions = torch.arange(first, first + length, dtype=torch.float64)
    angles = torch.outer(positions, paper_rates(d_model))
    return torch.stack((angles.sin(), angles.cos()), dim=2).flatten(1).float()


def halves_sinusoid(first: int, length: int, d_model: int) -> Float[Tensor, "length d_model"]:
    """
    Compute the sinusoids of the authors' code: sines in the first half of the columns.

    In tensor2tensor 3d9c62f2, wavelengths range from 2 pi to exactly 10000 * 2 pi
    (``get_timing_signal_1d``). So the step of the exponent is log(10000) / (d/2 - 1), not the
    paper's log(10000) / (d/2). `d_model` is at least 4.
    """
    positions = torch.arange(first, first + length, dtype=torch.float64)
    angles = torch.outer(positions, code_rates(d_model))
    return torch.cat((angles.sin(), angles.cos()), dim=1).float()


def grouped_sinusoid(first: int, length: int, d_model: int) -> Float[Tensor, "length d_model"]:
    """
    Compute the paper's sinusoids with all sines before all cosines.

    Sockeye and Hugging Face's Marian have this layout. Reordering the dimensions of a model
    converts between this layout and ``interleaved``.
    """
    paper = interleaved_sinusoid(first, length, d_model)
    return torch.cat((paper[:, 0::2], paper[:, 1::2]), dim=1)


SINUSOIDS = {
    "interleaved": interleaved_sinusoid,
    "halves": halves_sinusoid,
    "grouped": grouped_sinusoid,
}


class SinusoidalPositions(nn.Module):
    """
    Sinusoidal positional encodings for text of any length, in one of the three layouts.

    The first position is `position_offset`, because some toolkits count from 1. The table is
    computed on demand, grows to twice the required length, and is not part of a checkpoint.
    """

    table: Tensor

    def __init__(self, d_model: int, layout: str = "interleaved", position_offset: int = 0) -> None:
        super().__init__()
        if d_model % 2:
            raise SettingError(
                f"`d_model` must be even for sines and cosines, but is {d_model}; choose an even "
                "width, or learned positions."
            )
        self.d_model, self.layout, self.position_offset = d_model, layout, position_offset
        self.register_buffer("table", torch.empty(0, d_model), persistent=False)

    def forward(self, start: int, length: int) -> Float[Tensor, "length d_model"]:
        """Return the encodings of `length` positions; `start` counts from 0."""
        table = self.table  # another thread may replace `self.table` by a shorter table
        if start + length > table.size(0):
            rows = max(256, 2 * (start + length))
            table = SINUSOIDS[self.layout](self.position_offset, rows, self.d_model).to(table)
            self.table = table
        return table[start : start + length]


class NoPositions(nn.Module):
    """
    Zeros instead of positional encodings.

    A Transformer without positions can infer the order of tokens only from the decoder's mask. A
    convolution infers the order from its kernel (Gehring et al. 2017, section 5.4).
    """

    zero: Tensor

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.register_buffer("zero", torch.zeros(1, d_model), persistent=False)

    def forward(self, start: int, length: int) -> Float[Tensor, "length d_model"]:
        """Return zeros, as a view that needs no additional memory."""
        return self.zero.expand(length, -1)


class LearnedPositions(nn.Module):
    """
    Learned position embeddings (row E of the paper's Table 3): “nearly identical results”.

    Positions beyond the table share its last row, so texts of any length can be translated.
    """

    def __init__(self, d_model: int, rows: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(rows, d_model))

    def forward(self, start: int, length: int) -> Float[Tensor, "length d_model"]:
        """Return the embeddings of `length` positions; `start` counts from 0."""
        rows = torch.arange(start, start + length, device=self.weight.device)
        return self.weight[rows.clamp_(max=self.weight.size(0) - 1)]


class OutputLayer(nn.Module):
    """
    The last linear layer of figure 1, which maps decoder states to logits; no bias by default.

    A module with a prepacked matrix may replace this module (`heedful.model.inference`).
    """

    def __init__(self, weight: nn.Parameter, bias: nn.Parameter | None = None) -> None:
        super().__init__()
        self.weight, self.bias = weight, bias

    def forward(
        self, states: Float[Tensor, "*batch d_model"]
    ) -> Float[Tensor, "*batch vocabulary"]:
        """Compute logits over the vocabulary; the matrix is not scaled here."""
        return nn.functional.linear(states, self.weight, self.bias)

    def log_probabilities(
        self, states: Float[Tensor, "*batch d_model"]
    ) -> Float[Tensor, "*batch vocabulary"]:
        """Compute natural log-probabilities over the vocabulary; the softmax is in fp32."""
        return torch.log_softmax(self(states).float(), dim=-1)


class TiedOutput(OutputLayer):
    """
    An output layer that shares the matrix of an embedding (section 3.4).

    The matrix is read from the embedding at each use. So the output and the embedding stay tied
    when the embedding's matrix is replaced (`load_state_dict(assign=True)`, `to_empty`), and the
    matrix is stored once.
    """

    def __init__(self, embedding: nn.Module, bias: nn.Parameter | None = None) -> None:
        nn.Module.__init__(self)
        # torch finds no submodules in a tuple; the embedding is already a submodule of the model
        self._embedding = (embedding,)
        self.bias = bias

    @property
    def weight(self) -> nn.Parameter:  # type: ignore[override]
        """The embedding's matrix itself; replace this module to untie the output."""
        return self._embedding[0].weight  # type: ignore[return-value]


Positions = SinusoidalPositions | LearnedPositions | NoPositions


def build_positions(layout: str, d_model: int, rows: int, offset: int = 0) -> Positions:
    """Build the positional encoding of one side; a learned encoding has `rows` positions."""
    if layout == "learned":
        return LearnedPositions(d_model, rows)
    if layout == "none":
        return NoPositions(d_model)
    return SinusoidalPositions(d_model, layout, offset)


def build_output(
    embed_target: TokenEmbedding, width: int, *, is_tied: bool, has_bias: bool
) -> OutputLayer:
    """Build the output layer; an untied matrix has the width of the decoder's states."""
    rows = embed_target.weight.size(0)
    bias = nn.Parameter(torch.zeros(rows)) if has_bias else None
    if is_tied:
        return TiedOutput(embed_target, bias)
    return OutputLayer(nn.Parameter(torch.zeros(rows, width)), bias)
