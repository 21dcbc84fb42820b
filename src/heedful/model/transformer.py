"""
The Transformer: figure 1 of the paper.

::

    source ids ── embedding + positions ── N x EncoderLayer ──────────── memory
                                                                            │
    target ids ── embedding + positions ── N x DecoderLayer (attends to the memory) ── states
"""

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import nn

from heedful.arguments import (
    both_sides,
    check_counts,
    check_keywords,
    check_special_ids,
    check_tying,
    checked,
    with_fields_of,
)
from heedful.model.embedding import Positions, TokenEmbedding, build_output, build_positions
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.model.initialize import initialize
from heedful.model.layer_config import LayerConfig
from heedful.model.layers import Decoder, Encoder


class Transformer(EncoderDecoder):
    """
    The complete model of the paper: embeddings, positions, encoder, decoder and output layer.

    Parameters
    ----------
    vocabulary : int or pair of int
        Number of token ids: a number for both sides, or a pair for source and target.
    layers : int or pair of int, default 6
        Number of layers: a number for both stacks, or a pair for encoder and decoder.
    positions : {'interleaved', 'halves', 'grouped', 'learned', 'none'}, default 'interleaved'
        Sinusoids as in the paper's text or in two other layouts, learned vectors, or none.
    max_length : int, default 1024
        Number of learned position vectors; later positions share the last vector.
    tie_embeddings : {'all', 'output', 'embeddings', 'none'}, optional
        Which matrices are shared. ``all``: both embeddings and the output; ``output``: the target
        embedding and the output; ``embeddings``: both embeddings; ``none``: no matrices. The
        default is ``all`` if both vocabularies have the same size, else ``output``.
    output_bias : bool, default False
        Whether the output layer has a bias.
    scale_embeddings : bool, default True
        Whether embeddings are multiplied by the square root of `d_model`.
    embedding_norm : bool, default False
        Whether the sums of embeddings and positions are normalized, as in BART.
    padding, start_token, end_token : int
        Special ids; the defaults are 0, 2 and 3.
    seed : int, optional
        Seed of the initial weights; drawn from torch's global generator if None.
    **layer : object
        Fields of `LayerConfig`, such as ``d_model=512``, ``d_ff=2048``, ``heads=8``,
        ``dropout=0.1`` and ``norm="pre"``.

    Notes
    -----
    The defaults build the base model of figure 1. Calling the model with padded source ids and the
    target shifted right gives logits. States, attention and decoding are methods of
    `EncoderDecoder`. The weights have the same names as in a run with the same sizes.
    Inconsistent sizes raise `SettingError`.

    Examples
    --------
    >>> model = Transformer(vocabulary=100, d_model=16, heads=2, layers=1)
    >>> source, target = torch.randint(4, 100, (3, 7)), torch.randint(4, 100, (3, 5))
    >>> model(source, target).shape
    torch.Size([3, 5, 100])
    """

    encoder: Encoder
    decoder: Decoder
    source_positions: Positions
    target_positions: Positions

    @with_fields_of(LayerConfig)
    @checked
    def __init__(
        self,
        vocabulary: int | Sequence[int],
        *,
        layers: int | Sequence[int] = 6,
        positions: Literal["interleaved", "halves", "grouped", "learned", "none"] = "interleaved",
        max_length: int = 1024,
        tie_embeddings: Literal["all", "output", "embeddings", "none"] | None = None,
        output_bias: bool = False,
        scale_embeddings: bool = True,
        embedding_norm: bool = False,
        padding: int = 0,
        start_token: int = 2,
        end_token: int = 3,
        seed: int | None = None,
        **layer: Any,
    ) -> None:
        # 1. check the sizes before the parts are built
        rows = both_sides("vocabulary", vocabulary)
        depths = both_sides("layers", layers)
        check_counts(max_length=max_length)
        check_keywords("Transformer", layer, LayerConfig)
        config = LayerConfig(**layer)
        special = {"padding": padding, "start_token": start_token, "end_token": end_token}
        check_special_ids(min(rows), **special)
        tied = tie_embeddings or ("all" if rows[0] == rows[1] else "output")
        check_tying(tied, *rows)

        norm = config.d_model, config.norm_epsilon

        # 2. build the parts on the CPU, where the weights are drawn
        place = torch.get_default_device()
        with torch.device("cpu"):
            embed_target = TokenEmbedding(rows[1], config.d_model, scale_embeddings)
            embed_source = embed_target
            if tied in ("output", "none"):
                embed_source = TokenEmbedding(rows[0], config.d_model, scale_embeddings)
            super().__init__(
                embed_source,
                embed_target,
                build_positions(positions, config.d_model, max_length),
                build_positions(positions, config.d_model, max_length),
                Encoder(config, depths[0]),
                Decoder(config, depths[1]),
                build_output(
                    embed_target,
                    config.d_model,
                    is_tied=tied in ("all", "output"),
                    has_bias=output_bias,
                ),
                dropout=config.dropout,
                **special,
                source_norm=nn.LayerNorm(*norm) if embedding_norm else None,
                target_norm=nn.LayerNorm(*norm) if embedding_norm else None,
            )

            # 3. draw the initial weights
            initialize(self, int(torch.randint(1 << 62, ())) if seed is None else seed)
        self.to(place)

    @classmethod
    def from_parts(cls, *parts: Any, **settings: Any) -> "Transformer":
        """Build a Transformer from the parameters of `EncoderDecoder`, as a recipe does."""
        model = cls.__new__(cls)
        EncoderDecoder.__init__(model, *parts, **settings)
        return model
