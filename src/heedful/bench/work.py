"""
What is computed: pairs of given lengths, and how many operations they need.

Only real tokens count as needed. A toolkit that computes padding computes more and gets no credit
for it, so shares of the product rate compare what is useful.
"""

import random
from collections.abc import Sequence

import numpy as np
import torch

from heedful.config.schema import RunConfig
from heedful.evaluation.cost import ForwardFlops, Work
from heedful.model.build import build_model, padded_vocabulary
from heedful.model.transformer import Transformer
from heedful.tokenization.tokenizer import END, PAD, START

Ids = list[list[int]]

_SPECIAL = 4
# Lengths of a batch lie within so much of their mean: 20 to 30 tokens for a mean of 25.
_SPREAD = 0.2


def spread_lengths(mean: int, count: int) -> list[int]:
    """
    Make lengths around a mean.

    Parameters
    ----------
    mean : int
        Their mean.
    count : int
        How many.

    Returns
    -------
    list of int
        From a fifth below the mean to a fifth above it, evenly, at least 1 each.

    Notes
    -----
    The same for everybody and every time: a drawn batch would be a little larger or smaller.
    """
    low, high = mean * (1 - _SPREAD), mean * (1 + _SPREAD)
    return [max(1, round(float(length))) for length in np.linspace(low, high, count)]


def synthetic_pairs(
    vocabulary: int, source_length: int, target_length: int, tokens: int, seed: int = 1
) -> tuple[Ids, Ids]:
    """
    Make a batch of pairs of random ids.

    Parameters
    ----------
    vocabulary : int
        Ids are below it.
    source_length, target_length : int
        Mean tokens of a sentence, its end symbol included.
    tokens : int
        About so many tokens of the longer side.
    seed : int, default 1
        Of the ids.

    Returns
    -------
    sources, targets : list of list of int
        Without special symbols.

    Notes
    -----
    Sources are as long as they like beside their targets, within the spread.
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


def training_work(source_lengths: Sequence[int], target_lengths: Sequence[int]) -> Work:
    """
    Count the positions of a training batch.

    Parameters
    ----------
    source_lengths, target_lengths : sequence of int
        Tokens of each sentence, special symbols included.

    Returns
    -------
    Work
        Without padding.

    Notes
    -----
    The causal half of the decoder's pairs counts whole, as it does everywhere in heedful.
    """
    source, target = np.array(source_lengths), np.array(target_lengths)
    return Work(
        int(source.sum()),
        int(target.sum()),
        int(target.sum()),
        int(source @ source),
        int(target @ target),
        int(target @ source),
    )


def search_work(source_lengths: Sequence[int], output_lengths: Sequence[int], beam: int) -> Work:
    """
    Count the positions of a search.

    Parameters
    ----------
    source_lengths : sequence of int
        Tokens of each source, its end symbol included.
    output_lengths : sequence of int
        Tokens of each translation, its end symbol included.
    beam : int
        Open hypotheses a sentence.

    Returns
    -------
    Work
        As if each search ended with the translation that it returned.

    Notes
    -----
    A step looks at the positions before it and at the source; keys and values of the source are
    made once a sentence.
    """
    source, output = np.array(source_lengths), np.array(output_lengths)
    return Work(
        int(source.sum()),
        beam * int(output.sum()),
        beam * int(output.sum()),
        int(source @ source),
        beam * int((output * (output + 1) // 2).sum()),
        beam * int(output @ source),
    )


def build(config: RunConfig, vocabulary: int) -> Transformer:
    """
    Build the model of a recipe for a vocabulary without a tokenizer.

    Parameters
    ----------
    config : RunConfig
        The recipe.
    vocabulary : int
        Symbols on both sides.

    Returns
    -------
    Transformer
        Weights not yet set.

    Notes
    -----
    As `heedful.runs.run.Run.build` does for one.
    """
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


def flops_of(config: RunConfig, vocabulary: int) -> ForwardFlops:
    """
    Count the operations of a recipe's model without building its weights.

    Parameters
    ----------
    config : RunConfig
        The recipe.
    vocabulary : int
        Symbols on both sides.

    Returns
    -------
    ForwardFlops
        A position's cost.

    Notes
    -----
    Takes no memory, however large the model.
    """
    with torch.device("meta"):
        return ForwardFlops.of(build(config, vocabulary))


def shape_of(config: RunConfig, vocabulary: int) -> dict[str, object]:
    """
    Tell another toolkit the shape of a recipe's model.

    Parameters
    ----------
    config : RunConfig
        The recipe.
    vocabulary : int
        Symbols on both sides.

    Returns
    -------
    dict
        The `model` table, the rows of the embedding, the special ids.

    Notes
    -----
    Plain values: who reads it knows nothing of heedful.
    """
    return {
        **config.model.model_dump(),
        "vocabulary": padded_vocabulary(vocabulary, config.data.vocabulary_multiple),
        "pad": PAD,
        "start_token": START,
        "end_token": END,
    }
