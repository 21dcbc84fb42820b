"""
Token cutoff: some token embeddings of a batch become zero (Shen et al. 2020; Gao et al. 2022).

::

    E   E   E   E   E          E   0   E   E   E      each embedding is cut with a probability
    p1  p2  p3  p4  p5    ->   p1  p2  p3  p4  p5     positions stay

The symbols that begin a target and end a source are never cut, as in the authors' code.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from heedful.model.encoder_decoder import EncoderDecoder


@contextmanager
def cut_embeddings(model: EncoderDecoder, probability: float) -> Iterator[None]:
    """Within the context, set each token embedding to zero with a given probability."""

    def cut(module: nn.Module, arguments: Any, out: Tensor) -> Tensor:
        del module
        (ids,) = arguments  # (batch, time)
        zeros = torch.rand(ids.shape, device=ids.device) < probability
        zeros &= (ids != model.start_token) & (ids != model.end_token)
        return out.masked_fill(zeros.unsqueeze(-1), 0.0)

    # both embeddings are the same module if the two sides share a table
    tables = dict.fromkeys((model.embed_source, model.embed_target))
    handles = [table.register_forward_hook(cut) for table in tables]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
