"""
Norm of queries and keys: ``x / sqrt(mean(x^2) + epsilon) * gain``, over the numbers of one head.

So scores cannot grow with the lengths of query and key vectors. In wide models such growth makes a
softmax choose one key and stop learning (Dehghani et al. 2023, arXiv 2302.05442). As in Qwen3, all
heads of a layer share one gain for queries and one gain for keys. Scores are still divided by
sqrt(d_k).
"""

from torch import nn

build_qk_norm = nn.RMSNorm
