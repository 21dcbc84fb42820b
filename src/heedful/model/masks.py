"""Who may look at whom; a mask is called `may_attend` and is true where a look is allowed."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def padding_mask(ids: Int[Tensor, "batch time"], padding: int) -> Bool[Tensor, "batch 1 1 time"]:
    """
    Let everyone look at the real tokens and nobody at the padding.

    Parameters
    ----------
    ids : Tensor of int, shape (batch, time)
        Token ids.
    padding : int
        The id that fills short rows up.

    Returns
    -------
    Tensor of bool, shape (batch, 1, 1, time)
        True at real tokens.

    Notes
    -----
    A row needs at least one real token: a softmax over nothing is not a number.
    """
    return (ids != padding)[:, None, None, :]


def causal_mask(length: int, device: torch.device | None = None) -> Bool[Tensor, "1 1 time time"]:
    """
    Let each position look at itself and what came before it.

    Parameters
    ----------
    length : int
        Number of positions.
    device : torch.device, optional
        Where the mask is needed.

    Returns
    -------
    Tensor of bool, shape (1, 1, length, length)
        True on and below the diagonal.

    Notes
    -----
    Section 3.2.3: no information flows leftward in the decoder. Padding stands at the end of a
    row, so real positions never see it and no further mask is needed.
    """
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()[None, None]
