"""
Forced decoding: log-probabilities of given translations.

The module also computes the rank of each token, and the model's most probable tokens.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.data.batching import Collator
from heedful.kernels.api import chunk_rows
from heedful.model.contracts import Seq2Seq
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.search.rules import DecodingRule, apply_all

Ids = Sequence[int]

# Number of positions whose scores over the whole vocabulary are in memory at once.
_ROWS = 64


@torch.inference_mode()
def target_ranks(
    model: Seq2Seq,
    source: Int[Tensor, "batch source"],
    target_in: Int[Tensor, "batch target"],
    target_out: Int[Tensor, "batch target"],
    vocabulary: int,
) -> list[list[int]]:
    """
    Compute the rank of every target token in the model's distribution; equal scores share a rank.

    If all ranks are 1 and no scores are equal, greedy search finds the same translation.
    `vocabulary`: number of real ids; later ids are padding of the output matrix and do not count.
    """
    states = model.states(source, target_in)
    real = target_out != model.padding
    states, targets = states[real], target_out[real]  # (tokens, d_model), (tokens,)
    ranks = torch.empty_like(targets)
    for part in chunk_rows(len(targets), vocabulary):
        scores = model.project(states[part])[:, :vocabulary]  # (part, vocabulary)
        chosen = scores.gather(1, targets[part].unsqueeze(1))  # (part, 1)
        ranks[part] = (scores > chosen).sum(dim=1) + 1
    return [row.tolist() for row in ranks.split(real.sum(dim=1).tolist())]


@torch.inference_mode()
def best_candidates(
    model: Seq2Seq,
    source: Int[Tensor, "1 source"],
    target_in: Int[Tensor, "1 target"],
    target_out: Int[Tensor, "1 target"],
    *,
    rules: Sequence[DecodingRule] = (),
    wanted: int = 10,
) -> list[list[tuple[int, float]]]:
    """
    Find the model's most probable tokens at every position of a given translation.

    Returns for each position the most probable tokens with their probabilities, best first. The
    given token is always included, if necessary as an additional last entry.

    One pass over the given target computes all positions; the probabilities equal those of a search
    up to rounding. A given token that a rule forbids keeps the model's probability.
    """
    states = model.states(source, target_in)[0]
    target = target_out[0]
    candidates: list[list[tuple[int, float]]] = []
    for states_part, own_tokens in zip(states.split(_ROWS), target.split(_ROWS), strict=True):
        scores = model.log_probabilities(states_part)
        own = scores.gather(1, own_tokens.unsqueeze(1)).squeeze(1).exp()  # (places,)
        nothing, first = target.new_empty(len(states_part), 0), target.new_zeros(len(states_part))
        best = apply_all(rules, scores, nothing, first).topk(min(wanted, scores.size(1)), dim=1)
        columns = (best.indices, best.values.exp(), own_tokens, own)
        for tokens, values, token, probability in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            row = [pair for pair in zip(tokens, values, strict=True) if pair[1] > 0.0]
            others = token not in dict(row)
            candidates.append([*row, (token, probability)] if others else row)
    return candidates


@torch.inference_mode()
def pair_log_probabilities(
    model: EncoderDecoder, collator: Collator, sources: Sequence[Ids], targets: Sequence[Ids]
) -> list[list[float]]:
    """
    Compute the log-probability of every target token, as a search reports it for its choices.

    `sources, targets`: ids of the pairs, without special symbols.
    """
    batch = collator.batch(sources, targets).to(model.device)
    states = model.states(batch.source, batch.target_in)
    real = batch.target_out != model.padding
    flat = token_log_probabilities(
        states[real], batch.target_out[real], model.output.weight, model.output.bias
    )
    return [part.tolist() for part in flat.split([len(target) + 1 for target in targets])]


@torch.no_grad()
def token_log_probabilities(
    states: Float[Tensor, "rows d_model"],
    targets: Int[Tensor, " rows"],
    weight: Float[Tensor, "vocabulary d_model"],
    bias: Float[Tensor, " vocabulary"] | None = None,
) -> Float[Tensor, " rows"]:
    """Compute the log-probability, in fp32, of one target token for each state."""
    result = torch.empty(len(targets), dtype=torch.float32, device=states.device)
    for part in chunk_rows(len(targets), weight.size(0), states.device):
        scores = nn.functional.linear(states[part], weight, bias).float()
        chosen = scores.gather(1, targets[part].unsqueeze(1)).squeeze(1)
        result[part] = chosen - scores.logsumexp(dim=1)
    return result
