"""
A model of any encoder and any decoder.

::

    source ids ── embedding (+ positions) ── encoder ── Memory
                                                          │
    target ids ── embedding (+ positions) ── decoder (may attend to the memory) ── states

Families of encoders and decoders combine freely, because they meet in `Memory` alone. An encoder
has `encode`; a decoder has `decode` for a known target, and `start` and `step` for a search.
"""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.errors import SettingError
from heedful.model.attention import padding_mask
from heedful.model.cpu.dropout import Dropout
from heedful.model.embedding import LearnedPositions, SinusoidalPositions, TokenEmbedding
from heedful.model.inputs import check_ids
from heedful.model.memory import Memory
from heedful.model.output import OutputLayer
from heedful.model.seq2seq import Seq2Seq

Positions = SinusoidalPositions | LearnedPositions


@dataclass(frozen=True)
class AttentionWeights:
    """
    Attention weights of every layer and head for one batch.

    Notes
    -----
    The three places of section 3.2.3.
    """

    encoder: list[Tensor]
    """Self-attention of the encoder: for each layer (batch, heads, queries, keys)."""
    decoder: list[Tensor]
    """Masked self-attention of the decoder, likewise."""
    cross: list[Tensor]
    """Cross-attention of the decoder to the memory, likewise."""

    def of_sentence(self, row: int) -> tuple[Tensor, Tensor, Tensor]:
        """
        Stack the weights of one sentence of the batch.

        Parameters
        ----------
        row : int
            The sentence.

        Returns
        -------
        tuple of Tensor
            Encoder, decoder and cross attention, each of shape (layers, heads, queries, keys).

        Raises
        ------
        SettingError
            If the decoder does not attend to the source.

        Notes
        -----
        A kind that the family does not have has no layers.
        """
        if not self.cross:
            raise SettingError(
                "attention is shown of models that have it, but the decoder of this one has none "
                "(model.recurrent.score = none); name another run."
            )
        target, source = self.cross[0].shape[2:]
        shapes = ((source, source), (target, target), (target, source))
        kinds = (self.encoder, self.decoder, self.cross)
        encoder, decoder, cross = (
            torch.stack([layer[row] for layer in layers]) if layers else torch.zeros(0, 0, *shape)
            for layers, shape in zip(kinds, shapes, strict=True)
        )
        return encoder, decoder, cross


@runtime_checkable
class SourceEncoder(Protocol):
    """
    What an encoder of any family offers.

    Notes
    -----
    A module; families are in `heedful.model.layers` and `heedful.model.recurrent`.
    """

    def encode(
        self,
        x: Float[Tensor, "batch time d_model"],
        mask: Bool[Tensor, "batch 1 1 time"],
        weights: list[Tensor] | None = None,
    ) -> Memory:
        """
        Encode embedded tokens.

        Parameters
        ----------
        x : Tensor of float, shape (batch, time, d_model)
            Embedded tokens, with their positions if the family has any.
        mask : Tensor of bool, shape (batch, 1, 1, time)
            True at real tokens.
        weights : list, optional
            A list to which the attention weights of each layer are appended, if there are any.

        Returns
        -------
        Memory
            States, mask, and the last states of a recurrent encoder.

        Notes
        -----
        Called once per batch of sentences.
        """
        ...


@runtime_checkable
class TargetDecoder(Protocol):
    """
    What a decoder of any family offers.

    Notes
    -----
    A module; families are in `heedful.model.layers` and `heedful.model.recurrent`.
    """

    def decode(
        self,
        x: Float[Tensor, "batch time d_model"],
        memory: Memory,
        weights: tuple[list[Tensor], list[Tensor]] | None = None,
        real: Bool[Tensor, "batch time"] | None = None,
    ) -> Float[Tensor, "batch time width"]:
        """
        Compute the states of a known target.

        Parameters
        ----------
        x : Tensor of float, shape (batch, time, d_model)
            Embedded tokens, with their positions if the family has any.
        memory : Memory
            The encoded source.
        weights : pair of lists, optional
            Lists to which the weights of self-attention and cross-attention are appended.
        real : Tensor of bool, shape (batch, time), optional
            True at real tokens; everywhere if None.

        Returns
        -------
        Tensor of float, shape (batch, time, width)
            The state at position i predicts target token i.

        Notes
        -----
        Must equal `start` and `step` for each token.
        """
        ...

    def start(self, memory: Memory) -> Any:
        """
        Prepare a search.

        Parameters
        ----------
        memory : Memory
            The encoded source.

        Returns
        -------
        DecodingState
            It has `sentences` and `length`, too: rows of the source, and tokens read so far.

        Notes
        -----
        Computes what depends on the source and not on a hypothesis.
        """
        ...

    def step(
        self, x: Float[Tensor, "sentences hypotheses d_model"], state: Any
    ) -> tuple[Float[Tensor, "sentences hypotheses width"], Any]:
        """
        Process one more token of each hypothesis.

        Parameters
        ----------
        x : Tensor of float, shape (sentences, hypotheses, d_model)
            The newest tokens, embedded.
        state : DecodingState
            The state returned by `start` or the last `step`.

        Returns
        -------
        tuple
            States of shape (sentences, hypotheses, width) and the state for the next call.

        Notes
        -----
        All hypotheses of a sentence share what belongs to the source.
        """
        ...


class EncoderDecoder(Seq2Seq):
    """
    A model of any encoder and any decoder.

    Parameters
    ----------
    embed_source : TokenEmbedding
        Embedding of the source.
    embed_target : TokenEmbedding
        Embedding of the target; the same object if shared (section 3.4).
    source_positions, target_positions : SinusoidalPositions or LearnedPositions, optional
        Added to the embeddings; None for a family that reads tokens in their order.
    encoder : SourceEncoder
        The encoder.
    decoder : TargetDecoder
        The decoder.
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

    def __init__(
        self,
        embed_source: TokenEmbedding,
        embed_target: TokenEmbedding,
        source_positions: Positions | None,
        target_positions: Positions | None,
        encoder: SourceEncoder,
        decoder: TargetDecoder,
        output: OutputLayer,
        dropout: float = 0.1,
        padding: int = 0,
        start_token: int = 2,
        end_token: int = 3,
    ) -> None:
        super().__init__(padding, start_token, end_token)
        # first, because the norm of all gradients is summed in the order of the parameters, and in
        # runs of before there was an output layer its weights came first
        self.output = output
        self.embed_source, self.embed_target = embed_source, embed_target
        self.source_positions, self.target_positions = source_positions, target_positions
        self.encoder, self.decoder = encoder, decoder
        self.dropout = Dropout(dropout)

    def encode(
        self, source: Int[Tensor, "batch source"], weights: list[Tensor] | None = None
    ) -> Memory:
        """
        Encode the source.

        Parameters
        ----------
        source : Tensor of int, shape (batch, source)
            Padded token ids.
        weights : list, optional
            A list to which the attention weights of each layer are appended.

        Returns
        -------
        Memory
            States and mask.

        Notes
        -----
        Figure 1, left.
        """
        check_ids(type(self).__name__, source=source)
        mask = padding_mask(source, self.padding)
        x = self._add_positions(self.embed_source(source), self.source_positions, 0)
        return self.encoder.encode(x, mask, weights)

    def forward(
        self, source: Int[Tensor, "batch source"], target_in: Int[Tensor, "batch target"]
    ) -> Float[Tensor, "batch target d_model"]:
        """
        Compute all decoder states at once from the known target (teacher forcing).

        Parameters
        ----------
        source : Tensor of int, shape (batch, source)
            Padded token ids.
        target_in : Tensor of int, shape (batch, target)
            The target, shifted right by one: it begins with the start token.

        Returns
        -------
        Tensor of float, shape (batch, target, d_model)
            The state at position i predicts target token i.

        Notes
        -----
        Figure 1.
        """
        check_ids(type(self).__name__, target_in=target_in)
        return self._decode(self.encode(source), target_in, None)

    def attention(
        self, source: Int[Tensor, "batch source"], target_in: Int[Tensor, "batch target"]
    ) -> AttentionWeights:
        """
        Compute the attention weights of every layer and head for given pairs.

        Parameters
        ----------
        source : Tensor of int, shape (batch, source)
            Padded token ids.
        target_in : Tensor of int, shape (batch, target)
            The target, shifted right by one.

        Returns
        -------
        AttentionWeights
            Encoder, decoder and cross attention.

        Notes
        -----
        Figures 3 to 5 of the paper are drawn from these.
        """
        weights = AttentionWeights([], [], [])
        memory = self.encode(source, weights.encoder)
        self._decode(memory, target_in, (weights.decoder, weights.cross))
        return weights

    def start(self, memory: Memory) -> Any:
        """
        Prepare decoding, one hypothesis per sentence.

        Parameters
        ----------
        memory : Memory
            The result of `encode`.

        Returns
        -------
        DecodingState
            The state before the first token.

        Notes
        -----
        The decoder computes what depends on the source and not on a hypothesis.
        """
        return self.decoder.start(memory)

    def step(
        self, state: Any, tokens: Int[Tensor, " rows"]
    ) -> tuple[Float[Tensor, "rows d_model"], Any]:
        """
        Process one more target token of each hypothesis.

        Parameters
        ----------
        state : DecodingState
            The state returned by `start` or the last `step`.
        tokens : Tensor of int, shape (rows,)
            The newest token of each hypothesis, the start token first.

        Returns
        -------
        states : Tensor of float, shape (rows, d_model)
            States that predict the next token.
        state : DecodingState
            The state for the next call.

        Notes
        -----
        Equal to `forward` on the whole prefix; the tests hold them equal.
        """
        x = self.embed_target(tokens.view(state.sentences, -1))  # (sentences, width, d_model)
        x = self._add_positions(x, self.target_positions, state.length, step=True)
        states, state = self.decoder.step(x, state)
        return states.flatten(0, 1), state  # (rows, d_model)

    def _add_positions(
        self, x: Tensor, positions: Positions | None, first: int, step: bool = False
    ) -> Tensor:
        """Add positions and drop out (section 5.4); in a step all rows have the same position."""
        if positions is None:
            return x
        out: Tensor = self.dropout(x + positions(first, 1 if step else x.size(1)))
        return out

    def _decode(
        self,
        memory: Memory,
        target_in: Tensor,
        weights: tuple[list[Tensor], list[Tensor]] | None,
    ) -> Tensor:
        """Run the decoder on a known target."""
        x = self._add_positions(self.embed_target(target_in), self.target_positions, 0)
        real = target_in != self.padding
        real[:, 0] = True  # the start token may be the padding symbol
        return self.decoder.decode(x, memory, weights, real)
