"""
The output projection and softmax of figure 1, from decoder states to the vocabulary.

The logits of a whole batch are by far the largest tensor of a model (tokens x vocabulary), so
nothing here keeps more than a chunk of them unless the caller wants logits.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

# About this many logits are computed at once: enough for fast products, and they fit into a large
# cache (32 MiB in fp32). A GPU computes more, for it takes longer to begin a kernel than to run one
# of few rows. Both were chosen by hand.
_CHUNK_LOGITS, _CHUNK_ROWS = 1 << 23, 2048
_GPU_CHUNK_LOGITS, _GPU_CHUNK_ROWS = 1 << 28, 8192


def logits(
    states: Float[Tensor, "*batch d_model"],
    weight: Float[Tensor, "vocabulary d_model"],
    bias: Float[Tensor, " vocabulary"] | None = None,
) -> Float[Tensor, "*batch vocabulary"]:
    """
    Multiply states by the output matrix.

    Parameters
    ----------
    states : Tensor of float, shape (..., d_model)
        Decoder states.
    weight : Tensor of float, shape (vocabulary, d_model)
        The output matrix, in most models the embedding itself.
    bias : Tensor of float, shape (vocabulary,), optional
        Added to every row; the paper has none.

    Returns
    -------
    Tensor of float, shape (..., vocabulary)
        Unnormalised log-probabilities.

    Notes
    -----
    Section 3.4; here the table is not scaled.
    """
    return nn.functional.linear(states, weight, bias)


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
            Unnormalised log-probabilities.

        Notes
        -----
        See `logits`.
        """
        return logits(states, self.weight, self.bias)

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


def chunk_rows(rows: int, vocabulary: int, device: torch.device | None = None) -> Iterator[slice]:
    """
    Compute how many rows of logits to compute at a time.

    Parameters
    ----------
    rows : int
        Number of positions.
    vocabulary : int
        Number of classes.
    device : torch.device, optional
        Where the logits are computed; the CPU if None.

    Yields
    ------
    slice
        Consecutive parts that cover all rows.

    Notes
    -----
    At most about eight million logits in a chunk, on a GPU 270 million, but at least 64 rows:
    products of fewer rows are slow.
    """
    numbers, most = _CHUNK_LOGITS, _CHUNK_ROWS
    if device is not None and device.type != "cpu":
        numbers, most = _GPU_CHUNK_LOGITS, _GPU_CHUNK_ROWS
    size = max(64, min(most, numbers // vocabulary // 32 * 32))
    for start in range(0, rows, size):
        yield slice(start, min(start + size, rows))


@torch.no_grad()
def token_log_probabilities(
    states: Float[Tensor, "rows d_model"],
    targets: Int[Tensor, " rows"],
    weight: Float[Tensor, "vocabulary d_model"],
    bias: Float[Tensor, " vocabulary"] | None = None,
) -> Float[Tensor, " rows"]:
    """
    Compute the log-probability of one given token for each state.

    Parameters
    ----------
    states : Tensor of float, shape (rows, d_model)
        Decoder states.
    targets : Tensor of int, shape (rows,)
        The token whose log-probability is computed.
    weight : Tensor of float, shape (vocabulary, d_model)
        The output matrix.
    bias : Tensor of float, shape (vocabulary,), optional
        Added to every row of logits.

    Returns
    -------
    Tensor of float32, shape (rows,)
        Natural logarithms.

    Notes
    -----
    Without gradients; the softmax is taken in fp32.
    """
    result = torch.empty(len(targets), dtype=torch.float32, device=states.device)
    for part in chunk_rows(len(targets), weight.size(0), states.device):
        scores = logits(states[part], weight, bias).float()
        chosen = scores.gather(1, targets[part].unsqueeze(1)).squeeze(1)
        result[part] = chosen - scores.logsumexp(dim=1)
    return result
