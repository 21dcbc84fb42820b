"""
Workloads of measurements: sentence pairs of given lengths, and their operation counts.

Only the operations of real tokens count. Padding that a toolkit processes is not counted, so
percentages of the peak rate measure only useful work.
"""

import random
from collections.abc import Sequence

import numpy as np
import torch

from heedful.config.schema import RunConfig
from heedful.families.build import build_model, padded_vocabulary
from heedful.model.contracts import training_flops
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.model.flops import RowLengths
from heedful.tokenization.tokenizer import END, PAD, START

Ids = list[list[int]]

_SPECIAL = 4
# The lengths in a batch differ from their mean by at most this share: 20 to 30 for a mean of 25.
_SPREAD = 0.2


def spread_lengths(mean: int, count: int) -> list[int]:
    """
    Generate lengths around a mean.

    Returns lengths from a fifth below the mean to a fifth above it, evenly spaced, at least 1 each.

    The lengths are deterministic, because random batches would differ slightly in size.
    """
    low, high = mean * (1 - _SPREAD), mean * (1 + _SPREAD)
    return [max(1, round(float(length))) for length in np.linspace(low, high, count)]


def synthetic_pairs(
    vocabulary: int, source_length: int, target_length: int, tokens: int, seed: int = 1
) -> tuple[Ids, Ids]:
    """
    Generate a batch of sentence pairs with random token ids.

    `source_length, target_length`: mean number of tokens in a sentence, including its end symbol.

    Source and target lengths vary independently within the spread.
    """
    drawn = random.Random(seed)
    count = max(1, tokens // max(source_length, target_length))

    def side(mean: int) -> Ids:
        lengths = spread_lengths(mean, count)
        drawn.shuffle(lengths)
        return [
            [drawn.randrange(_SPECIAL, vocabulary) for _ in range(length - 1)] for length in lengths
        ]

    return side(source_length), side(target_length)


def build(config: RunConfig, vocabulary: int) -> EncoderDecoder:
    """Build the model of a recipe for a given vocabulary size, without a tokenizer."""
    rows = padded_vocabulary(vocabulary, config.data.vocabulary_multiple)
    return build_model(
        config.model,
        rows,
        rows,
        max_length=config.data.max_length + 1,
        padding=PAD,
        start_token=START,
        end_token=END,
    )


def step_flops(
    config: RunConfig, vocabulary: int, source_lengths: Sequence[int], target_lengths: Sequence[int]
) -> int:
    """
    Count the operations of a training step of a recipe without allocating its weights.

    `source_lengths, target_lengths`: number of tokens in each sentence, including special symbols.

    The masked half of the decoder's self-attention counts too, as everywhere in heedful.
    """
    with torch.device("meta"):
        model = build(config, vocabulary)
    lengths = map(RowLengths.unpadded, (source_lengths, target_lengths))
    return training_flops(model, *lengths)


def shape_of(config: RunConfig, vocabulary: int) -> dict[str, object]:
    """Describe the model of a recipe for another toolkit."""
    return {
        **config.model.model_dump(),
        "vocabulary": padded_vocabulary(vocabulary, config.data.vocabulary_multiple),
        "pad": PAD,
        "start_token": START,
        "end_token": END,
    }
