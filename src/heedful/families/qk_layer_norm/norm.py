"""
Norm of queries and keys: ``(x - mean(x)) / sqrt(var(x) + epsilon) * gain``, over one head.

It has no bias. A bias of the keys would add the same number to all scores of a query, which a
softmax ignores.
"""

from functools import partial

from torch import nn

build_qk_norm = partial(nn.LayerNorm, bias=False)
