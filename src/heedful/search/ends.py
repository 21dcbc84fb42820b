"""Rules about the end symbol: when a translation may end, and when it must."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class LeastLength:
    """
    Let no translation end before it has some tokens.

    Attributes
    ----------
    tokens : int
        How many, the end symbol not counted.
    end_token : int
        The end symbol.

    Notes
    -----
    fairseq and Joey NMT ask for one token unless told otherwise, so they never give an empty line.
    """

    tokens: int
    end_token: int

    def __call__(
        self,
        scores: Float[Tensor, "rows vocabulary"],
        written: Int[Tensor, "rows length"],
        sentences: Int[Tensor, " rows"],
    ) -> Float[Tensor, "rows vocabulary"]:
        """Forbid the end while a translation is too short; the scores are changed in place."""
        del sentences
        if written.size(1) < self.tokens:
            scores[:, self.end_token] = float("-inf")
        return scores


class ForcedEnd:
    """
    End each translation at its limit, at no cost or at the end's own probability.

    Parameters
    ----------
    limits : sequence of int
        Most tokens of each sentence, the end symbol not counted.
    end_token : int
        The end symbol.
    device : torch.device, optional
        Where the scores are; the processor when absent.
    is_free : bool, default True
        Whether the end has the log-probability zero.

    Notes
    -----
    ``forced_eos_token_id`` of Hugging Face is free, so the score of such a translation is better
    than what the model says. fairseq counts what the model says; an end that another rule forbids
    is free there too.
    """

    def __init__(
        self,
        limits: Sequence[int],
        end_token: int,
        device: torch.device | None = None,
        *,
        is_free: bool = True,
    ) -> None:
        self.limits = torch.tensor(list(limits), device=device)
        self.first, self.end_token, self.is_free = min(limits), end_token, is_free

    def __call__(
        self,
        scores: Float[Tensor, "rows vocabulary"],
        written: Int[Tensor, "rows length"],
        sentences: Int[Tensor, " rows"],
    ) -> Float[Tensor, "rows vocabulary"]:
        """Allow the end alone in rows that are at their limit."""
        if written.size(1) < self.first:
            return scores
        only = torch.full_like(scores, float("-inf"))
        end = scores[:, self.end_token]
        is_free = end.isneginf() | self.is_free
        only[:, self.end_token] = end.masked_fill(is_free, 0.0)
        full = self.limits[sentences] <= written.size(1)
        return torch.where(full.unsqueeze(1), only, scores)
