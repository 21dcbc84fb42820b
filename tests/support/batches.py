"""Corpora of given lengths, for batching."""

import numpy as np
from hypothesis import strategies as st

from heedful.data.batching import BatchOrder


def text(pairs, seed=0):
    """Lengths as in a corpus: few long sentences, sides that follow one another."""
    generator = np.random.default_rng(seed)
    target = np.clip(generator.gamma(2.5, 12.0, pairs), 2, 200).astype(int)
    source = np.clip(target * generator.normal(0.9, 0.15, pairs), 2, 200).astype(int)
    return list(zip(source.tolist(), target.tolist(), strict=True))


pairs = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=120)


def order(lengths, **changes):
    values = {"batch_tokens": 200, "micro_batch_tokens": 100, "counting": "real", "seed": 1}
    source, target = (np.array(side, dtype=np.int32) for side in zip(*lengths, strict=True))
    return BatchOrder(source, target, **{**values, **changes})
