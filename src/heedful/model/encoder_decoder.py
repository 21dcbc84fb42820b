"""
A model that combines any encoder with any decoder; they exchange only `Memory`.

::

    source ids ── embedding (+ positions) ── encoder ── Memory
                                                          │
    target ids ── embedding (+ positions) ── decoder (may attend to the memory) ── states
"""

from typing import Any

from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.errors import ArgumentError
from heedful.kernels.api import Dropout
from heedful.model.contracts import DecoderInput, Seq2Seq
from heedful.model.embedding import OutputLayer, Positions, TokenEmbedding
from heedful.model.flops import RowLengths
from heedful.model.halves import Memory, SourceEncoder, TargetDecoder, WeightLists
from heedful.model.layout import check_ids, padding_mask
from heedful.model.parts import AttentionWeights

Source = Int[Tensor, "batch source"]
Target = Int[Tensor, "batch target"]

_EMBEDDINGS_ALONE = DecoderInput()


class EncoderDecoder(Seq2Seq):
    """
    A model that combines any encoder with any decoder.

    Parameters
    ----------
    embed_source, embed_target : TokenEmbedding
        Embeddings; the same object if shared (section 3.4).
    source_positions, target_positions : torch.nn.Module, optional
        Added to the embeddings (`heedful.model.embedding`); None for families without positions,
        such as recurrent ones.
    encoder : SourceEncoder
        The encoder.
    decoder : TargetDecoder
        The decoder.
    output : OutputLayer
        Maps decoder states to logits; contains the target's embedding if the two are tied.
    dropout : float, default 0.1
        Dropout probability of the sums of embeddings and positions (section 5.4).
    padding, start_token, end_token : int
        Special ids.
    source_norm, target_norm : torch.nn.Module, optional
        Norms of the sums of embeddings and positions, as in BART.

    Notes
    -----
    Tied weights are the same object in the parts that share them. `heedful.families.build` builds
    the model from a recipe.
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
        source_norm: nn.Module | None = None,
        target_norm: nn.Module | None = None,
    ) -> None:
        super().__init__(padding, start_token, end_token)
        # The output layer is first, as in runs older than `OutputLayer`, because the norm of all
        # gradients is summed in the order of the parameters.
        self.output = output
        self.embed_source, self.embed_target = embed_source, embed_target
        self.source_positions, self.target_positions = source_positions, target_positions
        self.source_norm, self.target_norm = source_norm, target_norm
        self.encoder, self.decoder = encoder, decoder
        self.dropout = Dropout(dropout)
        self._input_name = ""

    @property
    def decoder_input(self) -> DecoderInput:
        """The `DecoderInput` that computes the decoder's input from its tokens."""
        return getattr(self, self._input_name) if self._input_name else _EMBEDDINGS_ALONE

    def read_with(self, name: str, part: nn.Module) -> None:
        """Set the `DecoderInput`; a checkpoint stores its weights under `name`."""
        self.add_module(name, part)
        self._input_name = name

    def encode(self, source: Source, weights: list[Tensor] | None = None) -> Memory:
        """Encode padded ids; append the attention weights of each layer to `weights`."""
        check_ids(type(self).__name__, source=source)
        mask = padding_mask(source, self.padding)
        x = self._add_positions(self.embed_source(source), False, 0)
        memory = self.encoder.encode(x, mask, weights)
        return self.decoder_input.remember(memory, source, self.padding)

    def decode(
        self, memory: Memory, target_in: Target, weights: WeightLists = None
    ) -> Float[Tensor, "batch target d_model"]:
        """Compute decoder states from a memory and targets that are shifted right by one."""
        x = self.decoder_input.read(self.embed_target(target_in), memory, target_in)
        x = self._add_positions(x, True, 0)
        real = target_in != self.padding
        real[:, 0] = True  # the start token may be the padding symbol
        return self.decoder.decode(x, memory, weights, real)

    def states(self, source: Source, target_in: Target) -> Float[Tensor, "batch target d_model"]:
        check_ids(type(self).__name__, source=source, target_in=target_in)
        rows = source.size(0), target_in.size(0)
        if rows[0] != rows[1]:
            raise ArgumentError(
                f"`source` and `target_in` of {type(self).__name__} must have one row for each "
                f"pair, but have {rows[0]} and {rows[1]} rows."
            )
        return self.decode(self.encode(source), target_in)

    def attention(self, source: Source, target_in: Target) -> AttentionWeights:
        """Compute the attention weights of every layer and head, as in figures 3 to 5."""
        weights = AttentionWeights([], [], [])
        memory = self.encode(source, weights.encoder)
        self.decode(memory, target_in, (weights.decoder, weights.cross))
        return weights

    def forward_flops(self, source: RowLengths, target: RowLengths, hypotheses: int = 1) -> int:
        memory_lengths = self.encoder.memory_lengths
        memory = source if memory_lengths is None else memory_lengths(source)
        own, of_memory = self.decoder.flops(target, memory)
        own += 2 * self.output.weight.numel() * int(target.tokens.sum())
        extra = self.decoder_input.flops(memory)
        return self.encoder.flops(source) + extra + of_memory + hypotheses * own

    def start(self, memory: Memory) -> Any:
        return self.decoder_input.start(self.decoder.start(memory), memory)

    def step(
        self, state: Any, tokens: Int[Tensor, " rows"]
    ) -> tuple[Float[Tensor, "rows d_model"], Any]:
        newest = tokens.view(state.sentences, -1)  # (sentences, width)
        # x (sentences, width, d_model)
        x, inner, wrap = self.decoder_input.step(self.embed_target(newest), state, newest)
        x = self._add_positions(x, True, state.length, step=True)
        states, inner = self.decoder.step(x, inner)
        return states.flatten(0, 1), wrap(inner)  # (rows, d_model)

    def _add_positions(self, x: Tensor, is_target: bool, first: int, step: bool = False) -> Tensor:
        """Add positions and apply dropout (section 5.4); in a step, all rows share a position."""
        positions = self.target_positions if is_target else self.source_positions
        norm = self.target_norm if is_target else self.source_norm
        if positions is None:
            return x
        x = x + positions(first, 1 if step else x.size(1))
        return self.dropout(x if norm is None else norm(x))
