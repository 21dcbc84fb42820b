"""
Normalization by the root mean square: ``x / sqrt(mean(x^2) + epsilon) * gain``.

Layer norm subtracts the mean first and adds a bias at the end. T5 and most later models omit both
(Zhang and Sennrich 2019, arXiv 1910.07467). For types with fewer bits than fp32, torch computes the
norm in fp32.
"""

from torch import nn

build_norm = nn.RMSNorm
