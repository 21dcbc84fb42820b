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
    The whole model: encoder, decoder, embeddings and output.

    Parameters
    ----------
    embed_source : TokenEmbedding
        Embedding of the source.
    embed_target : TokenEmbedding
        Embedding of the target; the same object if shared (section 3.4).
    source_positions, target_positions : SinusoidalPositions or LearnedPositions
        Added to the embeddings.
    encoder : Encoder
        The encoder stack.
    decoder : Decoder
        The decoder stack.
    output : OutputLayer
        From decoder states to logits; holds the target's embedding where the two are tied.
    dropout : float, default 0.1
        Dropout probability of the sums of embeddings and positions (section 5.4).
    padding, start_token, end_token : int
        Special ids.

    Notes
    -----
    Built from parts so that weight tying is visible: tied weights are the same object.
    `heedful.model.build` builds it from a recipe.
    """

    encoder: Encoder
    decoder: Decoder
    source_positions: Positions
    target_positions: Positions
