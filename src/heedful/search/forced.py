"""
Forced decoding: what a model thinks of a translation that is given.

The log-probabilities are in `heedful.model.output`; here is how many other tokens the model would
have preferred at each place.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.model.output import chunk_rows, logits
from heedful.model.seq2seq import Seq2Seq


@torch.inference_mode()
def target_ranks(
    model: Seq2Seq,
    source: Int[Tensor, "batch source"],
    target_in: Int[Tensor, "batch target"],
    target_out: Int[Tensor, "batch target"],
    vocabulary: int,
) -> list[list[int]]:
    """
    Find the rank of every given token among all that could stand in its place.

    Parameters
    ----------
    model : Seq2Seq
        In evaluation mode.
    source : Tensor of int, shape (batch, source)
        Padded ids, on the model's device.
    target_in : Tensor of int, shape (batch, target)
        What the decoder reads: the start token, then the target.
    target_out : Tensor of int, shape (batch, target)
        The target, then the end symbol.
    vocabulary : int
        Ids from here on are filling and do not count.

    Returns
    -------
    list of list of int
        For each pair its tokens' ranks, the end symbol's last; 1 is the most probable token.

    Notes
    -----
    Equally probable tokens share the better rank. A translation whose ranks are all 1 is what
    greedy search finds.
    """
    states = model(source, target_in)
    real = target_out != model.padding
    states, targets = states[real], target_out[real]
    table, bias = model.output()
    ranks = torch.empty_like(targets)
    for part in chunk_rows(len(targets), table.size(0)):
        scores = logits(states[part], table, bias)[:, :vocabulary]
        chosen = scores.gather(1, targets[part].unsqueeze(1))
        ranks[part] = (scores > chosen).sum(dim=1) + 1
    return [row.tolist() for row in ranks.split(real.sum(dim=1).tolist())]
