"""
The Transformer: figure 1 of the paper in one file.

    source ids ── embedding + positions ── N x EncoderLayer ──────────── memory
                                                                            │
    target ids ── embedding + positions ── N x DecoderLayer (looks at the memory) ── states

Each layer is a few sub-layers, each wrapped in residual wiring (`heedful.model.residual`). The
blocks take plain arguments and are usable alone.
"""

from dataclasses import dataclass

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.model.attention import KeysAndValues, MultiHeadAttention
from heedful.model.dropout import Dropout
from heedful.model.embedding import TokenEmbedding
from heedful.model.feed_forward import FeedForward
from heedful.model.masks import causal_mask, padding_mask
from heedful.model.position import LearnedPositions, SinusoidalPositions
from heedful.model.residual import RESIDUALS
from heedful.model.seq2seq import Seq2Seq

Positions = SinusoidalPositions | LearnedPositions


@dataclass(frozen=True)
class LayerShape:
    """
    Say what the layers of a stack look like.

    Parameters
    ----------
    d_model : int
        Width of the states between layers.
    d_ff : int
        Inner width of the feed-forward network.
    heads : int
        Attention heads.
    d_k, d_v : int, optional
        Width of a head's keys and values; d_model / heads when absent.
    activation : str, default 'relu'
        Of the feed-forward network.
    dropout : float, default 0.1
        On the output of each sub-layer.
    norm : {'post', 'pre'}, default 'post'
        Where the residual wiring normalises.
    norm_epsilon : float, default 1e-6
        Added to the variance.
    projection_bias : bool, default True
        Whether the attention projections have a bias.

    Notes
    -----
    The defaults are those of the paper's base model.
    """

    d_model: int
    d_ff: int
    heads: int
    d_k: int | None = None
    d_v: int | None = None
    activation: str = "relu"
    dropout: float = 0.1
    norm: str = "post"
    norm_epsilon: float = 1e-6
    projection_bias: bool = True

    def attention(self) -> MultiHeadAttention:
        """
        Make an attention sub-layer.

        Returns
        -------
        MultiHeadAttention
            With fresh weights.

        Notes
        -----
        Section 3.2.
        """
        return MultiHeadAttention(
            self.d_model, self.heads, self.d_k, self.d_v, bias=self.projection_bias
        )

    def feed_forward(self) -> FeedForward:
        """
        Make a feed-forward sub-layer.

        Returns
        -------
        FeedForward
            With fresh weights.

        Notes
        -----
        Section 3.3.
        """
        return FeedForward(self.d_model, self.d_ff, self.activation)

    def residual(self) -> nn.Module:
        """
        Make the wiring around one sub-layer.

        Returns
        -------
        PostNorm or PreNorm
            With fresh weights.

        Notes
        -----
        Sections 3.1 and 5.4.
        """
        return RESIDUALS[self.norm](self.d_model, self.dropout, self.norm_epsilon)

    def final_norm(self) -> nn.Module:
        """
        Make what stands at the end of a stack.

        Returns
        -------
        LayerNorm or Identity
            A norm where the layers leave their sums as they are.

        Notes
        -----
        The paper's stacks end in a normalised sum and need no further norm.
        """
        if self.norm == "post":
            return nn.Identity()
        return nn.LayerNorm(self.d_model, eps=self.norm_epsilon)


class EncoderLayer(nn.Module):
    """
    Self-attention, then a feed-forward network (figure 1, left).

    Parameters
    ----------
    shape : LayerShape
        Widths, heads, dropout and norm.

    Notes
    -----
    Section 3.1.
    """

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.self_attention = shape.attention()
        self.self_residual = shape.residual()
        self.feed_forward = shape.feed_forward()
        self.feed_forward_residual = shape.residual()

    def forward(
        self,
        x: Float[Tensor, "batch time d_model"],
        may_attend: Bool[Tensor, "batch 1 1 time"] | None = None,
        weights: list[Tensor] | None = None,
    ) -> Float[Tensor, "batch time d_model"]:
        """
        Let the positions look at each other, then transform each one.

        Parameters
        ----------
        x : Tensor of float, shape (batch, time, d_model)
            States.
        may_attend : Tensor of bool, shape (batch, 1, 1, time), optional
            True at real tokens.
        weights : list, optional
            Collects the attention weights of this layer.

        Returns
        -------
        Tensor of float, shape (batch, time, d_model)
            New states.

        Notes
        -----
        Section 3.1, encoder.
        """

        def look(states: Tensor) -> Tensor:
            return _collect(
                self.self_attention(states, states, may_attend, weights is not None), weights
            )

        x = self.self_residual(x, look)
        out: Tensor = self.feed_forward_residual(x, self.feed_forward)
        return out


class Encoder(nn.Module):
    """
    A stack of encoder layers.

    Parameters
    ----------
    shape : LayerShape
        What each layer looks like.
    layers : int
        How many.

    Notes
    -----
    Section 3.1: the paper stacks six. It takes vectors, not ids, and so serves any sequence.

    Examples
    --------
    Two words, “hello world”, through the encoder of the base model:

    >>> import torch
    >>> words = torch.randn(1, 2, 512)
    >>> encoder = Encoder(LayerShape(d_model=512, d_ff=2048, heads=8), layers=6)
    >>> weights = []
    >>> encoder(words, weights=weights).shape
    torch.Size([1, 2, 512])
    >>> len(weights), weights[0].shape
    (6, torch.Size([1, 8, 2, 2]))
    """

    def __init__(self, shape: LayerShape, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(shape) for _ in range(layers))
        self.norm = shape.final_norm()

    def forward(
        self,
        x: Float[Tensor, "batch time d_model"],
        may_attend: Bool[Tensor, "batch 1 1 time"] | None = None,
        weights: list[Tensor] | None = None,
    ) -> Float[Tensor, "batch time d_model"]:
        """
        Run all layers.

        Parameters
        ----------
        x : Tensor of float, shape (batch, time, d_model)
            Embedded tokens with their positions.
        may_attend : Tensor of bool, shape (batch, 1, 1, time), optional
            True at real tokens.
        weights : list, optional
            Collects the attention weights (batch, heads, time, time), one tensor a layer.

        Returns
        -------
        Tensor of float, shape (batch, time, d_model)
            The memory.

        Notes
        -----
        Section 3.1.
        """
        for layer in self.layers:
            x = layer(x, may_attend, weights)
        out: Tensor = self.norm(x)
        return out


class DecoderLayer(nn.Module):
    """
    Masked self-attention, attention to the memory, feed-forward network (figure 1, right).

    Parameters
    ----------
    shape : LayerShape
        Widths, heads, dropout and norm.

    Notes
    -----
    Section 3.1.
    """

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.self_attention = shape.attention()
        self.self_residual = shape.residual()
        self.cross_attention = shape.attention()
        self.cross_residual = shape.residual()
        self.feed_forward = shape.feed_forward()
        self.feed_forward_residual = shape.residual()

    def forward(
        self,
        x: Float[Tensor, "batch time d_model"],
        memory: Float[Tensor, "batch source d_model"],
        may_attend: Bool[Tensor, "1 1 time time"],
        may_attend_memory: Bool[Tensor, "batch 1 1 source"],
        weights: tuple[list[Tensor], list[Tensor]] | None = None,
    ) -> Float[Tensor, "batch time d_model"]:
        """
        Read the target so far and the source.

        Parameters
        ----------
        x : Tensor of float, shape (batch, time, d_model)
            States.
        memory : Tensor of float, shape (batch, source, d_model)
            What the encoder returned.
        may_attend : Tensor of bool, shape (1, 1, time, time)
            True at and before each position.
        may_attend_memory : Tensor of bool, shape (batch, 1, 1, source)
            True at real source tokens.
        weights : pair of lists, optional
            Collects the weights of self-attention and of attention to the memory.

        Returns
        -------
        Tensor of float, shape (batch, time, d_model)
            New states.

        Notes
        -----
        Section 3.1, decoder.
        """
        need = weights is not None
        own, cross = weights if weights is not None else (None, None)

        def look_back(states: Tensor) -> Tensor:
            return _collect(self.self_attention(states, states, may_attend, need), own)

        def look_at_memory(states: Tensor) -> Tensor:
            return _collect(self.cross_attention(states, memory, may_attend_memory, need), cross)

        x = self.self_residual(x, look_back)
        x = self.cross_residual(x, look_at_memory)
        out: Tensor = self.feed_forward_residual(x, self.feed_forward)
        return out

    def step(
        self,
        x: Float[Tensor, "rows 1 d_model"],
        past: KeysAndValues | None,
        memory: KeysAndValues,
        may_attend_memory: Bool[Tensor, "sentences 1 1 source"],
    ) -> tuple[Float[Tensor, "rows 1 d_model"], KeysAndValues]:
        """
        Read one more token for each hypothesis.

        Parameters
        ----------
        x : Tensor of float, shape (rows, 1, d_model)
            States of the newest tokens.
        past : KeysAndValues or None
            What the earlier tokens offer; None before the first.
        memory : KeysAndValues
            What the source offers, one row a sentence.
        may_attend_memory : Tensor of bool, shape (sentences, 1, 1, source)
            True at real source tokens.

        Returns
        -------
        x : Tensor of float, shape (rows, 1, d_model)
            New states.
        past : KeysAndValues
            What the tokens offer now, the newest included.

        Notes
        -----
        The hypotheses of a sentence ask as so many queries of one sequence, so the keys and
        values of the source are there once.
        """
        sentences = may_attend_memory.size(0)

        def look_back(states: Tensor) -> Tensor:
            nonlocal past
            newest = self.self_attention.offer(states)
            past = newest if past is None else past.append(newest)
            return _collect(self.self_attention.look(states, past), None)

        def look_at_memory(states: Tensor) -> Tensor:
            together = states.view(sentences, -1, states.size(-1))
            found = self.cross_attention.look(together, memory, may_attend_memory)
            return _collect(found, None).view(states.shape)

        x = self.self_residual(x, look_back)
        x = self.cross_residual(x, look_at_memory)
        x = self.feed_forward_residual(x, self.feed_forward)
        assert past is not None
        return x, past


class Decoder(nn.Module):
    """
    A stack of decoder layers.

    Parameters
    ----------
    shape : LayerShape
        What each layer looks like.
    layers : int
        How many.

    Notes
    -----
    Section 3.1: the paper stacks six.
    """

    def __init__(self, shape: LayerShape, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(shape) for _ in range(layers))
        self.norm = shape.final_norm()

    def forward(
        self,
        x: Float[Tensor, "batch time d_model"],
        memory: Float[Tensor, "batch source d_model"],
        may_attend_memory: Bool[Tensor, "batch 1 1 source"],
        weights: tuple[list[Tensor], list[Tensor]] | None = None,
    ) -> Float[Tensor, "batch time d_model"]:
        """
        Run all layers on a known target.

        Parameters
        ----------
        x : Tensor of float, shape (batch, time, d_model)
            Embedded target tokens with their positions, moved right by one.
        memory : Tensor of float, shape (batch, source, d_model)
            What the encoder returned.
        may_attend_memory : Tensor of bool, shape (batch, 1, 1, source)
            True at real source tokens.
        weights : pair of lists, optional
            Collects the weights of self-attention and of attention to the memory.

        Returns
        -------
        Tensor of float, shape (batch, time, d_model)
            The state at position i predicts target token i.

        Notes
        -----
        Section 3.1; the mask is that of section 3.2.3.
        """
        may_attend = causal_mask(x.size(1), x.device)
        for layer in self.layers:
            x = layer(x, memory, may_attend, may_attend_memory, weights)
        out: Tensor = self.norm(x)
        return out


@dataclass(frozen=True)
class Memory:
    """
    Hold an encoded source.

    Parameters
    ----------
    states : Tensor of float, shape (sentences, source, d_model)
        What the encoder returned.
    may_attend : Tensor of bool, shape (sentences, 1, 1, source)
        True at real source tokens.

    Notes
    -----
    The z of section 3.
    """

    states: Tensor
    may_attend: Tensor


@dataclass(frozen=True)
class DecoderState:
    """
    Remember keys and values between two steps.

    Parameters
    ----------
    past : tuple of KeysAndValues or None
        What the target tokens so far offer, one entry a layer, one row a hypothesis.
    memory : tuple of KeysAndValues
        What the source offers, one entry a layer, one row a sentence.
    may_attend : Tensor of bool, shape (sentences, 1, 1, source)
        True at real source tokens.
    length : int
        Target tokens read so far.

    Notes
    -----
    Fulfils the contract `heedful.model.seq2seq.State`.
    """

    past: tuple[KeysAndValues | None, ...]
    memory: tuple[KeysAndValues, ...]
    may_attend: Tensor
    length: int

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> "DecoderState":
        """
        Continue with other rows.

        Parameters
        ----------
        rows : Tensor of int, shape (new rows,)
            Which old row each new row continues.
        sentences : Tensor of int, shape (new sentences,), optional
            Which sentences stay; all when absent.

        Returns
        -------
        DecoderState
            The remembered part of the chosen rows.

        Notes
        -----
        Only the tokens' own keys and values are copied each time.
        """
        memory, may_attend = self.memory, self.may_attend
        if sentences is not None:
            memory = tuple(layer.select(sentences) for layer in memory)
            may_attend = may_attend.index_select(0, sentences)
        past = tuple(None if layer is None else layer.select(rows) for layer in self.past)
        return DecoderState(past, memory, may_attend, self.length)


@dataclass(frozen=True)
class AttentionWeights:
    """
    Hold the weights of every layer and head for one batch.

    Parameters
    ----------
    encoder : list of Tensor, shape (batch, heads, source, source)
        Self-attention of the encoder, one tensor a layer.
    decoder : list of Tensor, shape (batch, heads, target, target)
        Masked self-attention of the decoder.
    cross : list of Tensor, shape (batch, heads, target, source)
        Attention of the decoder to the memory.

    Notes
    -----
    The three places of section 3.2.3.
    """

    encoder: list[Tensor]
    decoder: list[Tensor]
    cross: list[Tensor]


class Transformer(Seq2Seq):
    """
    Encoder, decoder, embeddings and output: the whole model.

    Parameters
    ----------
    embed_source : TokenEmbedding
        The source's table.
    embed_target : TokenEmbedding
        The target's table; the same object when the two share one (section 3.4).
    source_positions, target_positions : SinusoidalPositions or LearnedPositions
        Added to the embeddings.
    encoder : Encoder
        Reads the source.
    decoder : Decoder
        Writes the target.
    output_table : torch.nn.Parameter, optional
        The output product's table; the target's embedding when absent.
    output_bias : torch.nn.Parameter, optional
        Added to the logits; the paper has none.
    dropout : float, default 0.1
        On the sums of embeddings and positions (section 5.4).
    padding, start_token, end_token : int
        Special ids.

    Notes
    -----
    It is put together from parts so that tying is visible: what is the same object is shared.
    `heedful.model.build` does so from a recipe.
    """

    def __init__(
        self,
        embed_source: TokenEmbedding,
        embed_target: TokenEmbedding,
        source_positions: Positions,
        target_positions: Positions,
        encoder: Encoder,
        decoder: Decoder,
        output_table: nn.Parameter | None = None,
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
        self.output_table, self.output_bias = output_table, output_bias
        self.dropout = Dropout(dropout)

    def encode(
        self, source: Int[Tensor, "batch source"], weights: list[Tensor] | None = None
    ) -> Memory:
        """
        Read the source.

        Parameters
        ----------
        source : Tensor of int, shape (batch, source)
            Padded token ids.
        weights : list, optional
            Collects the attention weights, one tensor a layer.

        Returns
        -------
        Memory
            States and mask.

        Notes
        -----
        Figure 1, left.
        """
        may_attend = padding_mask(source, self.padding)
        x = self.embed_source(source)
        x = self.dropout(x + self.source_positions(0, source.size(1)))
        return Memory(self.encoder(x, may_attend, weights), may_attend)

    def forward(
        self, source: Int[Tensor, "batch source"], target_in: Int[Tensor, "batch target"]
    ) -> Float[Tensor, "batch target d_model"]:
        """
        Compute all decoder states at once, the target being known (teacher forcing).

        Parameters
        ----------
        source : Tensor of int, shape (batch, source)
            Padded token ids.
        target_in : Tensor of int, shape (batch, target)
            The target, moved right by one: it begins with the start token.

        Returns
        -------
        Tensor of float, shape (batch, target, d_model)
            The state at position i predicts target token i.

        Notes
        -----
        Figure 1.
        """
        memory = self.encode(source)
        return self._decode(memory, target_in, None)

    def attention(
        self, source: Int[Tensor, "batch source"], target_in: Int[Tensor, "batch target"]
    ) -> AttentionWeights:
        """
        Return the attention weights of every layer and head for given pairs.

        Parameters
        ----------
        source : Tensor of int, shape (batch, source)
            Padded token ids.
        target_in : Tensor of int, shape (batch, target)
            The target, moved right by one.

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
        Project the memory for every decoder layer, once a sentence.

        Parameters
        ----------
        memory : Memory
            What `encode` returned.

        Returns
        -------
        DecoderState
            The state before the first token.

        Notes
        -----
        A later step only asks.
        """
        offered = tuple(
            layer.cross_attention.offer(memory.states)  # type: ignore[operator,union-attr]
            for layer in self.decoder.layers
        )
        return DecoderState((None,) * len(offered), offered, memory.may_attend, 0)

    def step(
        self, state: DecoderState, tokens: Int[Tensor, " rows"]
    ) -> tuple[Float[Tensor, "rows d_model"], DecoderState]:
        """
        Read one more target token for each hypothesis.

        Parameters
        ----------
        state : DecoderState
            What `start` or the last `step` returned.
        tokens : Tensor of int, shape (rows,)
            The newest token of each hypothesis, the start token first.

        Returns
        -------
        states : Tensor of float, shape (rows, d_model)
            They predict the next token.
        state : DecoderState
            To be handed to the next call.

        Notes
        -----
        Equal to `forward` on the whole prefix; the tests hold them together.
        """
        x = self.embed_target(tokens.unsqueeze(1)) + self.target_positions(state.length, 1)
        x = self.dropout(x)
        past: list[KeysAndValues] = []
        for layer, own, memory in zip(self.decoder.layers, state.past, state.memory, strict=True):
            x, own = layer.step(x, own, memory, state.may_attend)  # type: ignore[operator]
            past.append(own)
        states: Tensor = self.decoder.norm(x)
        newer = DecoderState(tuple(past), state.memory, state.may_attend, state.length + 1)
        return states.squeeze(1), newer

    def output(self) -> tuple[Tensor, Tensor | None]:
        """
        Return the table and the bias that turn states into logits.

        Returns
        -------
        table : Tensor of float, shape (vocabulary, d_model)
            The target's embedding unless the model has a table of its own.
        bias : Tensor of float, shape (vocabulary,), or None
            The output bias.

        Notes
        -----
        Section 3.4.
        """
        table = self.embed_target.weight if self.output_table is None else self.output_table
        return table, self.output_bias

    def _decode(
        self,
        memory: Memory,
        target_in: Tensor,
        weights: tuple[list[Tensor], list[Tensor]] | None,
    ) -> Tensor:
        """Run the decoder on a known target."""
        x = self.embed_target(target_in) + self.target_positions(0, target_in.size(1))
        out: Tensor = self.decoder(self.dropout(x), memory.states, memory.may_attend, weights)
        return out


def _collect(found: tuple[Tensor, Tensor | None], weights: list[Tensor] | None) -> Tensor:
    """Put the weights aside if somebody wants them and return the context."""
    context, seen = found
    if weights is not None and seen is not None:
        weights.append(seen)
    return context
