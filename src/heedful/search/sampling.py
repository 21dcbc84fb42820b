"""
Sampling from the model's distribution, token by token.

The random number of a draw depends on only four numbers: the seed and the indices of the line, the
sample and the token. SplitMix64's mixing function (Steele, Lea and Flood 2014) converts them to 64
bits, and 48 of these bits form the uniform random number. The drawn token is the token whose
interval of the cumulative distribution contains this number. So the samples of a line do not depend
on the other lines of the batch. Rounding in another batch shape can change a token only if a
cumulative probability and the uniform number agree to about seven digits.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from heedful.model.contracts import Seq2Seq
from heedful.search.greedy import decode_stepwise
from heedful.search.hypothesis import Hypothesis
from heedful.search.observer import SearchObserver
from heedful.search.rules import DecodingRule
from heedful.search.settings import Sampling, SearchOptions
from heedful.search.step import start_decoding

# SplitMix64: an odd number near 2^64 / golden ratio, and the two multipliers of its mixer.
_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
# With 48 bits, u x total stays below the total in fp64, so an interval always contains it.
_BITS = 48


@torch.inference_mode()
def sample(
    model: Seq2Seq,
    source: Int[Tensor, "sentences source"],
    limits: Sequence[int],
    settings: SearchOptions,
    lines: Sequence[int] | None = None,
    rules: Sequence[DecodingRule] = (),
    observer: SearchObserver | None = None,
) -> list[list[Hypothesis]]:
    """
    Draw `n_best` translations of each sentence of a batch.

    `limits`: maximum number of target tokens of each sentence, not counting the end symbol.
    `lines`: a number for each sentence, such as its index in its text, on which the draws depend;
    its row in the batch if None.

    Samples are not sorted: the best of several samples is not a random sample. The decoder's state
    is repeated for every sample, so samples may end at different steps.
    """
    next_log_probabilities, state, tokens = start_decoding(model, source)
    sampling, samples = settings.sample or Sampling(), settings.n_best
    # (sentences * samples,): sentence, line, and sample index of each walk
    owners = torch.arange(len(limits), device=source.device).repeat_interleave(samples)
    numbers = range(len(limits)) if lines is None else lines
    line_of = torch.tensor(list(numbers), device=source.device)[owners]
    number_of = torch.arange(samples, device=source.device).repeat(len(limits))

    def draw(scores: Tensor, walks: Tensor, step: int) -> Tensor:
        chance = uniforms(sampling.seed, line_of[walks], number_of[walks], step)
        return choose(filter_scores(scores, sampling), chance)

    drawn = decode_stepwise(
        next_log_probabilities,
        state.select(owners, owners),
        tokens[owners],
        [limits[owner] for owner in owners.tolist()],
        draw,
        end_token=model.end_token,
        penalty=settings.penalty,
        rules=rules,
        samples=samples,
        observer=observer,
    )
    return [drawn[row * samples : (row + 1) * samples] for row in range(len(limits))]


def filter_scores(
    scores: Float[Tensor, "rows vocabulary"], sampling: Sampling
) -> Float64[Tensor, "rows vocabulary"]:
    """
    Apply temperature, top-k and top-p; return the normalized probabilities.

    `scores`: log-probabilities of the next token; minus infinity for forbidden tokens.

    Probabilities are renormalized after each filter, so `top_p` refers to probabilities among the
    `top_k` tokens. The sums are fp64, because a sum over a large vocabulary decides the draw.
    """
    scores = scores.double() / sampling.temperature
    if 0 < sampling.top_k < scores.size(1):
        least = scores.topk(sampling.top_k, dim=1).values[:, -1:]  # (rows, 1)
        scores = scores.masked_fill(scores < least, float("-inf"))
    probabilities = torch.softmax(scores, dim=1)
    if sampling.top_p < 1.0:
        # A token is kept if the more probable tokens have a total probability below `top_p`, so the
        # first token is always kept.
        falling, order = probabilities.sort(dim=1, descending=True, stable=True)
        before = falling.cumsum(dim=1) - falling
        falling = falling.masked_fill(before >= sampling.top_p, 0.0)
        probabilities = torch.zeros_like(probabilities).scatter(1, order, falling)
        probabilities /= probabilities.sum(dim=1, keepdim=True)
    return probabilities


def choose(
    probabilities: Float64[Tensor, "rows vocabulary"], chance: Float64[Tensor, " rows"]
) -> Int[Tensor, " rows"]:
    """
    Find the token whose interval of the cumulative distribution contains `chance`, in [0, 1).

    Inversion of the cumulative distribution needs one random number per draw; Gumbel noise would
    need one for each token of the vocabulary.
    """
    cumulative = probabilities.cumsum(dim=1)  # (rows, vocabulary)
    aim = chance.unsqueeze(1) * cumulative[:, -1:]  # (rows, 1)
    tokens = torch.searchsorted(cumulative, aim, right=True).squeeze(1)  # (rows,)
    # Only NaN from the model gives an id beyond the vocabulary; the caller detects it by the score.
    return tokens.clamp_(max=probabilities.size(1) - 1)


def uniforms(
    seed: int, lines: Int[Tensor, " rows"], samples: Int[Tensor, " rows"], step: int
) -> Float64[Tensor, " rows"]:
    """
    Compute a uniform number in [0, 1) per row from seed, line, sample and position.

    The numbers are counter-based, without a generator state. So rows can end or be reordered, and
    do not depend on the other rows of the batch.
    """
    bits = _mix(torch.full_like(lines, seed))
    for word in (lines, samples, torch.full_like(lines, step)):
        bits = _mix(bits ^ word)
    return _shift_right(bits, 64 - _BITS).double() * 2.0**-_BITS


def _mix(x: Int[Tensor, " rows"]) -> Int[Tensor, " rows"]:
    """Apply one step of SplitMix64; int64 wraps around as uint64 does."""
    x = x + _to_signed(_STEP)
    x = (x ^ _shift_right(x, 30)) * _to_signed(_FIRST)
    x = (x ^ _shift_right(x, 27)) * _to_signed(_SECOND)
    return x ^ _shift_right(x, 31)


def _shift_right(x: Int[Tensor, " rows"], bits: int) -> Int[Tensor, " rows"]:
    """Shift right and fill with zeros; torch's own shift repeats the sign bit."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def _to_signed(number: int) -> int:
    """Convert 64 bits to a signed integer."""
    return number - (1 << 64) if number >> 63 else number
