"""
Normalization by the root mean square: ``x / sqrt(mean(x^2) + epsilon) * gain``.

Layer norm subtracts the mean first and adds a bias at the end. This norm omits both (Zhang and
Sennrich 2019, arXiv 1910.07467), as in T5 and many later models. For types with fewer bits than
fp32, torch computes the norm in fp32.
"""

from torch import nn

build_norm = nn.RMSNorm
