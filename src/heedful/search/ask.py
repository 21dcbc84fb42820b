"""What every search asks a model: how probable each token is, given what is written so far."""

from collections.abc import Callable

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.model.seq2seq import Seq2Seq, State

NextLogProbabilities = Callable[[Tensor, State], tuple[Tensor, State]]
"""From newest tokens (rows,) and a state to log-probabilities (rows, vocabulary) and a state."""

# What is done leaves the batch when it is so large a part of it: leaving copies what is kept of
# all that stay, and every size of a batch has products of its own to prepare.
LEAVING = 1 / 4


def begin(
    model: Seq2Seq, source: Int[Tensor, "sentences source"]
) -> tuple[NextLogProbabilities, State, Int[Tensor, " sentences"]]:
    """
    Read the source and stand before the first target token.

    Parameters
    ----------
    model : Seq2Seq
        In evaluation mode.
    source : Tensor of int, shape (sentences, source)
        Padded ids, on the model's device.

    Returns
    -------
    next_log_probabilities : callable
        From the newest token of each row and the state to the log-probabilities of the next token
        in fp32, shape (rows, vocabulary), and the next state.
    state : State
        Before the first token, one row a sentence.
    tokens : Tensor of int, shape (sentences,)
        What stands before the first token.

    Notes
    -----
    The only place where a search meets the model, so tests can put tables of probabilities here.
    """
    state = model.start(model.encode(source))
    tokens = torch.full((len(source),), model.start_token, device=source.device)

    def next_log_probabilities(tokens: Tensor, state: State) -> tuple[Tensor, State]:
        states, state = model.step(state, tokens)
        return model.log_probabilities(states), state

    return next_log_probabilities, state, tokens
