"""
The encoder's state of the next word, as an input of a parser's decoder.

The number of words in a partial tree determines which word is next. Therefore, the decoder reads
the encoder's state of this word in addition to the last symbol (deterministic attention: Ma et al.
2017). Ordinary attention would have to find the word by counting.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.model.contracts import DecoderInput
from heedful.model.flops import RowLengths
from heedful.model.halves import Memory
from heedful.model.initial_weights import glorot


@dataclass(frozen=True)
class NextWordState:
    """The search state of a decoder that reads the next word."""

    decoder: Any
    words: Float[Tensor, "sentences words d_model"]
    written: Int[Tensor, " rows"]
    """Number of words that each hypothesis has written."""

    @property
    def sentences(self) -> int:
        """Number of sentences in the batch."""
        return self.words.size(0)

    @property
    def length(self) -> int:
        """Number of tokens that each hypothesis has so far."""
        length: int = self.decoder.length
        return length

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> "NextWordState":
        """Select hypotheses, and sentences if some are finished."""
        words = self.words if sentences is None else self.words.index_select(0, sentences)
        decoder = self.decoder.select(rows, sentences)
        return NextWordState(decoder, words, self.written.index_select(0, rows))

    def with_decoder(self, decoder: Any) -> "NextWordState":
        """Return the state with another state of the decoder."""
        return replace(self, decoder=decoder)


class NextWord(nn.Module, DecoderInput):
    """
    The decoder's input from the encoder's state of the next word.

    `width, d_model`: widths of the encoder's states and of the decoder's input. `begins`: whether
    each source token begins a word. `writes`: whether each target token represents a word.
    """

    begins: Tensor
    writes: Tensor

    def __init__(
        self,
        width: int,
        d_model: int,
        begins: Bool[Tensor, " source_vocabulary"],
        writes: Bool[Tensor, " target_vocabulary"],
    ) -> None:
        super().__init__()
        self.projection = nn.Linear(width, d_model, bias=False)
        # the tokenizer determines both, so they are not part of a checkpoint
        self.register_buffer("begins", begins, persistent=False)
        self.register_buffer("writes", writes, persistent=False)

    def initialize(self, generator: torch.Generator) -> None:
        """Draw the initial weights."""
        glorot(self.projection.weight, generator)

    def flops(self, memory: RowLengths) -> int:
        """Count the operations of projecting the source states, including padding."""
        return 2 * self.projection.weight.numel() * int(memory.places.sum())

    def remember(self, memory: Memory, source: Int[Tensor, "batch source"], padding: int) -> Memory:
        """Keep the state of each word's first token, followed by the state of the last token."""
        begins = self.begins[source]  # (batch, source)
        count = begins.sum(dim=1, keepdim=True)  # (batch, 1)
        last = (source != padding).sum(dim=1, keepdim=True) - 1
        # indices of the tokens that begin a word, in order, then the last index: (batch, source)
        places = (~begins).byte().argsort(dim=1, stable=True)
        is_word = torch.arange(places.size(1), device=source.device) < count
        places = torch.where(is_word, places, last)
        projected: Tensor = self.projection(memory.states)  # (batch, states, d_model)
        words = projected.gather(1, places.unsqueeze(2).expand(-1, -1, projected.size(2)))
        return replace(memory, extra=words)  # (batch, source, d_model)

    def read(
        self,
        x: Float[Tensor, "batch target d_model"],
        memory: Memory,
        target_in: Int[Tensor, "batch target"],
    ) -> Float[Tensor, "batch target d_model"]:
        """Add the state of the next word to the input at each position of a given target."""
        return x + _pick(memory.extra, self.writes[target_in].cumsum(dim=1))

    def start(self, state: Any, memory: Memory) -> NextWordState:
        """Create the state at the beginning of a search."""
        words = memory.extra  # (sentences, words, d_model)
        return NextWordState(state, words, words.new_zeros(len(words), dtype=torch.long))

    def step(
        self,
        x: Float[Tensor, "sentences width d_model"],
        state: NextWordState,
        newest: Int[Tensor, "sentences width"],
    ) -> tuple[Float[Tensor, "sentences width d_model"], Any, Callable[[Any], NextWordState]]:
        """Add the state of the next word to the input of each hypothesis."""
        written = state.written.view_as(newest) + self.writes[newest]  # (sentences, width)
        after = replace(state, written=written.flatten())
        return x + _pick(state.words, written), state.decoder, after.with_decoder


def _pick(
    words: Float[Tensor, "batch words d_model"], numbers: Int[Tensor, "batch time"]
) -> Float[Tensor, "batch time d_model"]:
    """Select the states of words by index; an index after the last word selects the last state."""
    index = numbers.clamp(max=words.size(1) - 1).unsqueeze(2)  # (batch, time, 1)
    return words.gather(1, index.expand(-1, -1, words.size(2)))
