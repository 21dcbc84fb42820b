"""
The Transformer: figure 1 of the paper.

::

    source ids ── embedding + positions ── N x EncoderLayer ──────────── memory
                                                                            │
    target ids ── embedding + positions ── N x DecoderLayer (looks at the memory) ── states

The layers are in `heedful.model.layers`; here they meet embeddings, positions and the output, and
remember what they need between two steps of a search.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.model.attention import KeyValue, padding_mask
from heedful.model.cpu.dropout import Dropout
from heedful.model.embedding import LearnedPositions, SinusoidalPositions, TokenEmbedding
from heedful.model.inputs import check_ids
from heedful.model.kv_cache import KVCache, mask_to_bias
from heedful.model.layers import Decoder, Encoder
from heedful.model.seq2seq import Seq2Seq

Positions = SinusoidalPositions | LearnedPositions


@dataclass(frozen=True)
class Memory:
    """
    The encoded source with its mask.

    Notes
    -----
    The z of section 3.
    """

    states: Tensor
    """Output of the encoder."""
    mask: Tensor
    """True at real source tokens."""


@dataclass(frozen=True)
class DecoderState:
    """
    The key/value caches of all decoder layers between two steps.

    Notes
    -----
    Fulfils the contract `heedful.model.seq2seq.DecodingState`.
    """

    cache: KVCache
    """Keys and values of the target tokens so far."""
    memory: tuple[KeyValue, ...]
    """Keys and values of the source, one entry per layer, one row per sentence."""
    bias: Tensor
    """Zero at real source tokens, minus infinity at padding."""
    length: int
    """Target tokens read so far."""

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> "DecoderState":
        """
        Select rows.

        Parameters
        ----------
        rows : Tensor of int, shape (new rows,)
            Index of the old row that each new row continues.
        sentences : Tensor of int, shape (new sentences,), optional
            Indices of the sentences that stay; all if None.

        Returns
        -------
        DecoderState
            The state of the chosen rows.

        Notes
        -----
        Keys and values are copied only when finished sentences leave the batch.
        """
        memory, bias = self.memory, self.bias
        if sentences is not None:
            memory = tuple(layer.select(sentences) for layer in memory)
            bias = bias.index_select(0, sentences)
        return DecoderState(self.cache.select(rows, sentences), memory, bias, self.length)


@dataclass(frozen=True)
class AttentionWeights:
    """
    Attention weights of every layer and head for one batch.

    Notes
    -----
    The three places of section 3.2.3.
    """

    encoder: list[Tensor]
    """Self-attention of the encoder, one tensor a layer."""
    decoder: list[Tensor]
    """Masked self-attention of the decoder."""
    cross: list[Tensor]
    """Cross-attention of the decoder to the memory."""


class Transformer(Seq2Seq):
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
    output_embedding : torch.nn.Parameter, optional
        Weight of the output projection; the target's embedding if None.
    output_bias : torch.nn.Parameter, optional
        Added to the logits; the paper has none.
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
        source_positions: Positions,
        target_positions: Positions,
        encoder: Encoder,
        decoder: Decoder,
        output_embedding: nn.Parameter | None = None,
        output_bias: nn.Parameter | None = None,
        dropout: float = 0.1,
        padding: int = 0,
        start_token: int = 2,
        end_token: int = 3,
    ) -> None:
        super().__init__(padding, start_token, end_token)
        self.embed_source, self.embed_target = embed_source, embed_target
        self.source_positions, self.target_positions = source_positions, target_positions
        self.encoder, self.decoder = encoder, decoder
        self.output_embedding, self.output_bias = output_embedding, output_bias
        self.dropout = Dropout(dropout)
        # What a search may use instead of the table, see `heedful.model.inference.optimize`.
        self.projection: nn.Module | None = None
        self.int8_output: nn.Module | None = None
        # A shorter type for the keys and values of a search, from more sentences than these on.
        self.short_type: torch.dtype | None = None
        self.short_above = 0

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
        mask = padding_mask(source, self.padding)
        x = self.embed_source(source)
        x = self.dropout(x + self.source_positions(0, source.size(1)))
        return Memory(self.encoder(x, mask, weights), mask)

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
        check_ids("Transformer", source=source, target_in=target_in)
        memory = self.encode(source)
        return self._decode(memory, target_in, None)

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

    def start(self, memory: Memory) -> DecoderState:
        """
        Project the memory to keys and values of every decoder layer, once per sentence.

        Parameters
        ----------
        memory : Memory
            The result of `encode`.

        Returns
        -------
        DecoderState
            The state before the first token.

        Notes
        -----
        Later steps only compute queries.
        """
        projected = tuple(
            layer.cross_attention.project_kv(memory.states)  # type: ignore[operator,union-attr]
            for layer in self.decoder.layers
        )
        dtype = memory.states.dtype
        if self.short_type is not None and len(memory.states) > self.short_above:
            dtype = self.short_type
        # laid out head by head, as every step reads them
        layers = tuple(
            KeyValue(*(part.to(dtype, memory_format=torch.contiguous_format) for part in one))
            for one in projected
        )
        bias = mask_to_bias(memory.mask, dtype)
        return DecoderState(KVCache.empty(len(layers), layers[0]), layers, bias, 0)

    def step(
        self, state: DecoderState, tokens: Int[Tensor, " rows"]
    ) -> tuple[Float[Tensor, "rows d_model"], DecoderState]:
        """
        Process one more target token of each hypothesis.

        Parameters
        ----------
        state : DecoderState
            The state returned by `start` or the last `step`.
        tokens : Tensor of int, shape (rows,)
            The newest token of each hypothesis, the start token first.

        Returns
        -------
        states : Tensor of float, shape (rows, d_model)
            States that predict the next token.
        state : DecoderState
            The state for the next call.

        Notes
        -----
        Equal to `forward` on the whole prefix; the tests hold them equal.
        """
        sentences = state.bias.size(0)
        width = len(tokens) // sentences
        x = self.embed_target(tokens.view(sentences, width))
        x = self.dropout(x + self.target_positions(state.length, 1))
        cache = state.cache.advance(width)
        states = self.decoder.step(x, cache, state.memory, state.bias)
        newer = DecoderState(cache, state.memory, state.bias, state.length + 1)
        return states.flatten(0, 1), newer

    def output(self) -> tuple[Tensor, Tensor | None]:
        """
        Return the weight and bias that turn states into logits.

        Returns
        -------
        table : Tensor of float, shape (vocabulary, d_model)
            The target's embedding unless the model has an output matrix of its own.
        bias : Tensor of float, shape (vocabulary,), or None
            The output bias.

        Notes
        -----
        Section 3.4.
        """
        weight = (
            self.embed_target.weight if self.output_embedding is None else self.output_embedding
        )
        return weight, self.output_bias

    def project(
        self, states: Float[Tensor, "*batch d_model"]
    ) -> Float[Tensor, "*batch vocabulary"]:
        """
        Compute logits over the target vocabulary.

        Parameters
        ----------
        states : Tensor of float, shape (..., d_model)
            States returned by `forward` or `step`.

        Returns
        -------
        Tensor of float, shape (..., vocabulary)
            Unnormalised log-probabilities.

        Notes
        -----
        By the output matrix, or by its prepacked form (`heedful.model.inference.optimize`).
        """
        if self.projection is None:
            return super().project(states)
        out: Tensor = self.projection(states)
        return out

    def log_probabilities(
        self, states: Float[Tensor, "*batch d_model"]
    ) -> Float[Tensor, "*batch vocabulary"]:
        """
        Compute log-probabilities of the next token.

        Parameters
        ----------
        states : Tensor of float, shape (..., d_model)
            States returned by `forward` or `step`.

        Returns
        -------
        Tensor of float32, shape (..., vocabulary)
            Natural logarithms; their exponentials sum to one.

        Notes
        -----
        In fewer passes if `heedful.model.inference.optimize` has optimised the output.
        """
        if self.int8_output is None or states.dim() != 2:
            return super().log_probabilities(states)
        out: Tensor = self.int8_output(states)
        return out

    def _decode(
        self,
        memory: Memory,
        target_in: Tensor,
        weights: tuple[list[Tensor], list[Tensor]] | None,
    ) -> Tensor:
        """Run the decoder on a known target."""
        x = self.embed_target(target_in) + self.target_positions(0, target_in.size(1))
        x = self.dropout(x)
        real = target_in != self.padding
        real[:, 0] = True  # what stands before the first token may be the padding symbol
        out: Tensor = self.decoder(x, memory.states, memory.mask, weights, real)
        return out
