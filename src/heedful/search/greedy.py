"""Greedy search: always the most probable token."""

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.model.seq2seq import Seq2Seq
from heedful.search.ask import begin
from heedful.search.hypothesis import Hypothesis
from heedful.search.length import LengthPenalty
from heedful.search.rules import Rule
from heedful.search.walk import walk
from heedful.search.watch import Watch


@torch.inference_mode()
def greedy_search(
    model: Seq2Seq,
    source: Int[Tensor, "sentences source"],
    limits: Sequence[int],
    *,
    penalty: LengthPenalty,
    rules: Sequence[Rule] = (),
    watch: Watch | None = None,
) -> list[Hypothesis]:
    """
    Translate a batch of sentences by the most probable token at each step.

    Parameters
    ----------
    model : Seq2Seq
        In evaluation mode.
    source : Tensor of int, shape (sentences, source)
        Padded ids, on the model's device.
    limits : sequence of int
        Most target tokens of each sentence, the end symbol not counted.
    penalty : LengthPenalty
        Only for the score that is reported; greedy search does not compare lengths.
    rules : sequence of Rule, optional
        What may come next.
    watch : callable, optional
        Shown every sentence after every step.

    Returns
    -------
    list of Hypothesis
        One for each sentence.

    Notes
    -----
    Not beam search with one hypothesis: that goes on past a first end while something longer may
    score better. Validation uses this; it is several times cheaper.
    """
    return walk(
        *begin(model, source),
        limits,
        _most_probable,
        end_token=model.end_token,
        penalty=penalty,
        rules=rules,
        watch=watch,
    )


def _most_probable(scores: Tensor, walks: Tensor, step: int) -> Tensor:
    """Choose without chance, whichever row and step it is."""
    del walks, step
    return scores.argmax(dim=1)
