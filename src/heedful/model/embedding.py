"""
Token embeddings, positions and the output layer: sections 3.4 and 3.5 of the paper.

Three layouts of sinusoids are in use. The paper's text interleaves sine and cosine; the
authors' code puts all sines before all cosines and spaces the wavelengths a little differently;
others group like the code and space like the paper. None has a longest position: tables grow with
the text.

The logits of a whole batch are by far the largest tensor of a model (tokens x vocabulary), so the
loss takes the output layer's matrix and computes a chunk of them at a time.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.errors import SettingError
from heedful.kernels.api import lookup


class TokenEmbedding(nn.Module):
    """
    Token embeddings, scaled by sqrt(d_model).

    Parameters
    ----------
    vocabulary : int
        Number of rows.
    d_model : int
        Width.
    scale : bool, default True
        Whether to multiply by sqrt(d_model), as section 3.4 says.
    zero_token : int, optional
        A token whose embedding is always zero.

    Notes
    -----
    One table may serve the source, the target and the output projection (section 3.4). The authors'
    code starts decoding from a zero vector: `zero_token` (their padding symbol) has that embedding.
    """

    def __init__(
        self, vocabulary: int, d_model: int, scale: bool = True, zero_token: int | None = None
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(vocabulary, d_model))
        self.scale = math.sqrt(d_model) if scale else 1.0
        self.zero_token = zero_token

    def forward(self, ids: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time d_model"]:
        """
        Look up and scale the embeddings of the tokens.

        Parameters
        ----------
        ids : Tensor of int, shape (batch, time)
            Token ids.

        Returns
        -------
        Tensor of float, shape (batch, time, d_model)
            The scaled embeddings.

        Notes
        -----
        Section 3.4.
        """
        out = lookup(ids, self.weight) * self.scale  # (batch, time, d_model)
        if self.zero_token is not None:
            out = out.masked_fill((ids == self.zero_token).unsqueeze(-1), 0.0)
        return out


def paper_rates(d_model: int) -> Float[Tensor, " half"]:
    """
    Compute the angular frequency of each pair of columns.

    Parameters
    ----------
    d_model : int
        Width, even.

    Returns
    -------
    Tensor of float64, shape (d_model / 2,)
        ``10000^(-2i/d)``.

    Notes
    -----
    Section 3.5: wavelengths from 2 pi to nearly 10000 * 2 pi.
    """
    return 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)


def code_rates(d_model: int) -> Float[Tensor, " half"]:
    """
    Compute the angular frequencies as the authors' code does.

    Parameters
    ----------
    d_model : int
        Width, even.

    Returns
    -------
    Tensor of float64, shape (d_model / 2,)
        The last is exactly 1 / 10000.

    Notes
    -----
    See `halves_sinusoid`.
    """
    half = d_model // 2
    step = math.log(10000.0) / max(half - 1, 1)
    return torch.exp(-step * torch.arange(half, dtype=torch.float64))


def interleaved_sinusoid(first: int, length: int, d_model: int) -> Float[Tensor, "length d_model"]:
    """
    Compute the sinusoids as printed in the paper.

    Parameters
    ----------
    first : int
        Number of the first position.
    length : int
        How many positions.
    d_model : int
        Width, even.

    Returns
    -------
    Tensor of float, shape (length, d_model)
        ``sin(pos / 10000^(2i/d))`` in column 2i, the cosine in column 2i + 1.

    Notes
    -----
    Section 3.5. Computed in double precision, so that position 100,000 is as exact as position 1.
    """
    positions = torch.arange(first, first + length, dtype=torch.float64)
    angles = torch.outer(positions, paper_rates(d_model))
    return torch.stack((angles.sin(), angles.cos()), dim=2).flatten(1).float()


def halves_sinusoid(first: int, length: int, d_model: int) -> Float[Tensor, "length d_model"]:
    """
    Compute the sinusoids as the authors' code does.

    Parameters
    ----------
    first : int
        Number of the first position.
    length : int
        How many positions.
    d_model : int
        Width, even, at least 4.

    Returns
    -------
    Tensor of float, shape (length, d_model)
        Sines in the first half of the columns, cosines in the second.

    Notes
    -----
    tensor2tensor 3d9c62f2, ``get_timing_signal_1d``: wavelengths from 2 pi to exactly 10000 * 2 pi,
    so the step of the exponent is log(10000) / (d/2 - 1), not the paper's 2 / d.
    """
    positions = torch.arange(first, first + length, dtype=torch.float64)
    angles = torch.outer(positions, code_rates(d_model))
    return torch.cat((angles.sin(), angles.cos()), dim=1).float()


def grouped_sinusoid(first: int, length: int, d_model: int) -> Float[Tensor, "length d_model"]:
    """
    Compute the paper's sinusoids, all sines before all cosines.

    Parameters
    ----------
    first : int
        Number of the first position.
    length : int
        How many positions.
    d_model : int
        Width, even.

    Returns
    -------
    Tensor of float, shape (length, d_model)
        The columns of `interleaved_sinusoid`, the even ones first.

    Notes
    -----
    Hugging Face's Marian and Sockeye have it so. A model with one layout becomes one with the other
    by reordering its dimensions.
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
    Sinusoidal position encodings for text of any length.

    Parameters
    ----------
    d_model : int
        Width, even.
    layout : {'interleaved', 'halves', 'grouped'}, default 'interleaved'
        The paper's text, the authors' code, or sines before cosines with the paper's wavelengths.
    position_offset : int, default 0
        Number of the first position; some toolkits count from 1.

    Notes
    -----
    The table is computed on demand, doubles when it is too short, and is not part of a checkpoint.
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
        """
        Return the encodings of some positions.

        Parameters
        ----------
        start : int
            Index of the first position, counted from 0.
        length : int
            Number of positions.

        Returns
        -------
        Tensor of float, shape (length, d_model)
            The encodings.

        Notes
        -----
        Section 3.5; the hypothesis there is that a fixed offset is a linear map of these rows.
        """
        table = self.table  # another thread may replace it by a shorter one
        if start + length > table.size(0):
            rows = max(256, 2 * (start + length))
            table = SINUSOIDS[self.layout](self.position_offset, rows, self.d_model).to(table)
            self.table = table
        return table[start : start + length]


class NoPositions(nn.Module):
    """
    No positions: zeros are added.

    Parameters
    ----------
    d_model : int
        Width.

    Notes
    -----
    A Transformer without positions knows an order only from the decoder's mask; a convolution knows
    it from its kernel (Gehring et al. 2017, section 5.4).
    """

    zero: Tensor

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.register_buffer("zero", torch.zeros(1, d_model), persistent=False)

    def forward(self, start: int, length: int) -> Float[Tensor, "length d_model"]:
        """
        Return zeros.

        Parameters
        ----------
        start : int
            Index of the first position.
        length : int
            Number of positions.

        Returns
        -------
        Tensor of float, shape (length, d_model)
            Zeros, which take no memory of their own.

        Notes
        -----
        Dropout follows as it does after positions.
        """
        return self.zero.expand(length, -1)


class LearnedPositions(nn.Module):
    """
    Learned position embeddings (row E of the paper's Table 3).

    Parameters
    ----------
    d_model : int
        Width.
    rows : int
        Number of positions with a vector of their own.

    Notes
    -----
    Positions beyond the table share its last row, so that a long text is translated as well as
    possible instead of being refused.
    """

    def __init__(self, d_model: int, rows: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(rows, d_model))

    def forward(self, start: int, length: int) -> Float[Tensor, "length d_model"]:
        """
        Return the embeddings of some positions.

        Parameters
        ----------
        start : int
            Index of the first position, counted from 0.
        length : int
            Number of positions.

        Returns
        -------
        Tensor of float, shape (length, d_model)
            The embeddings.

        Notes
        -----
        Table 3 (E): “nearly identical results to the base model”.
        """
        rows = torch.arange(start, start + length, device=self.weight.device)
        return self.weight[rows.clamp_(max=self.weight.size(0) - 1)]


class OutputLayer(nn.Module):
    """
    Decoder states to logits: the last product of figure 1.

    Parameters
    ----------
    weight : torch.nn.Parameter, shape (vocabulary, d_model)
        The output matrix; `TiedOutput` takes the target's embedding instead.
    bias : torch.nn.Parameter, shape (vocabulary,), optional
        Added to the logits; the paper has none.

    Notes
    -----
    Section 3.4. A prepacked matrix is another module in the same place
    (`heedful.model.inference`).
    """

    def __init__(self, weight: nn.Parameter, bias: nn.Parameter | None = None) -> None:
        super().__init__()
        self.weight, self.bias = weight, bias

    def forward(
        self, states: Float[Tensor, "*batch d_model"]
    ) -> Float[Tensor, "*batch vocabulary"]:
        """
        Compute logits over the vocabulary.

        Parameters
        ----------
        states : Tensor of float, shape (..., d_model)
            Decoder states.

        Returns
        -------
        Tensor of float, shape (..., vocabulary)
            Unnormalized log-probabilities.

        Notes
        -----
        Section 3.4; here the table is not scaled.
        """
        return nn.functional.linear(states, self.weight, self.bias)

    def log_probabilities(
        self, states: Float[Tensor, "*batch d_model"]
    ) -> Float[Tensor, "*batch vocabulary"]:
        """
        Compute log-probabilities over the vocabulary.

        Parameters
        ----------
        states : Tensor of float, shape (..., d_model)
            Decoder states.

        Returns
        -------
        Tensor of float32, shape (..., vocabulary)
            Natural logarithms; their exponentials sum to one.

        Notes
        -----
        The softmax is computed in fp32.
        """
        return torch.log_softmax(self(states).float(), dim=-1)


class TiedOutput(OutputLayer):
    """
    The output layer whose matrix is that of an embedding.

    Parameters
    ----------
    embedding : torch.nn.Module
        An embedding with a `weight` of shape (vocabulary, d_model).
    bias : torch.nn.Parameter, shape (vocabulary,), optional
        Added to the logits; the paper has none.

    Notes
    -----
    Section 3.4. The matrix is read from the embedding at each use, so the two stay one when the
    embedding gets another (`load_state_dict(assign=True)`, `to_empty`), and it is stored once.
    """

    def __init__(self, embedding: nn.Module, bias: nn.Parameter | None = None) -> None:
        nn.Module.__init__(self)
        # in a tuple, which torch does not search for parts: the embedding is one of the model
        self._embedding = (embedding,)
        self.bias = bias

    @property
    def weight(self) -> nn.Parameter:  # type: ignore[override]
        """The embedding's matrix itself; replace this module to untie the two."""
        weight: nn.Parameter = self._embedding[0].weight  # type: ignore[assignment]
        return weight


Positions = SinusoidalPositions | LearnedPositions | NoPositions


def build_positions(layout: str, d_model: int, rows: int, offset: int = 0) -> Positions:
    """Build the position encoding of one side; learned ones have `rows`."""
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
