"""
The Transformer: figure 1 of the paper.

::

    source ids ── embedding + positions ── N x EncoderLayer ──────────── memory
                                                                            │
    target ids ── embedding + positions ── N x DecoderLayer (attends to the memory) ── states

The layers are in `heedful.model.layers`. This module adds embeddings, positions and the output, and
`DecoderState`, which a search carries from step to step.
"""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from heedful.model.attention import padding_mask
from heedful.model.cpu.dropout import Dropout
from heedful.model.embedding import LearnedPositions, SinusoidalPositions, TokenEmbedding
from heedful.model.inputs import check_ids
from heedful.model.kv_cache import KVCache, mask_to_bias
from heedful.model.layers import Decoder, Encoder
from heedful.model.output import OutputLayer
from heedful.model.projections import KeyValue
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
    """Output of the encoder, shape (batch, source, d_model)."""
    mask: Tensor
    """True at real source tokens, shape (batch, 1, 1, source)."""


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
    mask_bias: Tensor
    """Zero at real source tokens, minus infinity at padding, shape (sentences, 1, 1, source)."""
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
        memory, mask_bias = self.memory, self.mask_bias
        if sentences is not None:
            memory = tuple(layer.select(sentences) for layer in memory)
            mask_bias = mask_bias.index_select(0, sentences)
        return DecoderState(self.cache.select(rows, sentences), memory, mask_bias, self.length)


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
    output : OutputLayer
        From decoder states to logits; `TiedOutput` shares the matrix of the target's embedding.
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
        projected = self.decoder.project_memory(memory.states)
        mask_bias = mask_to_bias(memory.mask, projected[0].keys.dtype)
        return DecoderState(KVCache.empty(len(projected), projected[0]), projected, mask_bias, 0)

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
        sentences = state.mask_bias.size(0)
        width = len(tokens) // sentences
        x = self.embed_target(tokens.view(sentences, width))  # (sentences, width, d_model)
        x = self.dropout(x + self.target_positions(state.length, 1))
        cache = state.cache.advance(width)
        states = self.decoder.step(x, cache, state.memory, state.mask_bias)
        newer = DecoderState(cache, state.memory, state.mask_bias, state.length + 1)
        return states.flatten(0, 1), newer  # (rows, d_model)

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
        real[:, 0] = True  # the start token may be the padding symbol
        out: Tensor = self.decoder(x, memory.states, memory.mask, weights, real)
        return out
