"""
The Transformer: figure 1 of the paper.

::

    source ids ── embedding + positions ── N x EncoderLayer ──────────── memory
                                                                            │
    target ids ── embedding + positions ── N x DecoderLayer (attends to the memory) ── states

The layers are in `heedful.model.layers`; what every model of an encoder and a decoder does is in
`heedful.model.encoder_decoder`.
"""

from heedful.model.encoder_decoder import EncoderDecoder, Positions
from heedful.model.layers import Decoder, Encoder


class Transformer(EncoderDecoder):
    """
    The whole model of the paper: both halves are a Transformer's.

    Notes
    -----
    Figure 1. Its parameters and methods are those of `EncoderDecoder`; `heedful.model.build` builds
    it from a recipe.
    """

    encoder: Encoder
    decoder: Decoder
    source_positions: Positions
    target_positions: Positions
