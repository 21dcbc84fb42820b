"""
What a parser's decoder is given of the words around the place where it writes.

The symbols of a tree say where they belong: the next word is the one after those written, and a
bracket that is open began at some word. So beside its newest symbol the decoder reads the encoder's
states of such words, which attention would have to find by counting (deterministic attention: Ma et
al. 2017).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.model.initial_weights import glorot


@dataclass(frozen=True)
class WordStatesCache:
    """The state of a decoder that is given words."""

    decoder: Any
    words: Float[Tensor, "sentences words all_parts"]
    tokens: Int[Tensor, "rows length"]
    """What each hypothesis has read so far."""

    @property
    def sentences(self) -> int:
        """Number of sentences in the batch."""
        return self.words.size(0)

    @property
    def length(self) -> int:
        """Number of tokens so far."""
        return self.tokens.size(1)

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> "WordStatesCache":
        """Select rows."""
        words = self.words if sentences is None else self.words.index_select(0, sentences)
        decoder = self.decoder.select(rows, sentences)
        return WordStatesCache(decoder, words, self.tokens.index_select(0, rows))

    def with_decoder(self, decoder: Any) -> "WordStatesCache":
        """Replace the decoder's part."""
        return replace(self, decoder=decoder)


class WordStates(nn.Module):
    """
    Reads the encoder's states of words, by what was written of a tree.

    The next word; with `span` also the last one written, and the first of the innermost open
    phrase. `width, d_model`: of the encoder's states and of what the decoder reads. `begins`: which
    source tokens begin a word. `writes, moves`: which target tokens stand for a word, and which
    open a phrase (1) or close one (-1).
    """

    begins: Tensor
    writes: Tensor
    moves: Tensor

    def __init__(
        self,
        width: int,
        d_model: int,
        begins: Bool[Tensor, " source_vocabulary"],
        writes: Bool[Tensor, " target_vocabulary"],
        moves: Int[Tensor, " target_vocabulary"],
        span: bool = True,
    ) -> None:
        super().__init__()
        self.parts = 3 if span else 1
        self.projection = nn.Linear(width, self.parts * d_model, bias=False)
        # known from the tokenizer, so no part of a checkpoint
        self.register_buffer("begins", begins, persistent=False)
        self.register_buffer("writes", writes, persistent=False)
        self.register_buffer("moves", moves, persistent=False)

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the weights."""
        for part in self.projection.weight.chunk(self.parts):
            glorot(part, generator)

    def flops(self) -> int:
        """Count the operations for one source position."""
        return 2 * self.projection.weight.numel()

    def project(
        self,
        states: Float[Tensor, "batch states width"],
        source: Int[Tensor, "batch source"],
        padding: int,
    ) -> Float[Tensor, "batch source all_parts"]:
        """Collect what there is to read: of each word its first token, then the last token."""
        begins = self.begins[source]  # (batch, source)
        count = begins.sum(dim=1, keepdim=True)  # (batch, 1)
        last = (source != padding).sum(dim=1, keepdim=True) - 1
        # places of the tokens that begin a word, in order; then the last place: (batch, source)
        places = (~begins).byte().argsort(dim=1, stable=True)
        is_word = torch.arange(places.size(1), device=source.device) < count
        places = torch.where(is_word, places, last)
        projected: Tensor = self.projection(states)
        return projected.gather(1, places.unsqueeze(2).expand(-1, -1, projected.size(2)))

    def read(
        self,
        words: Float[Tensor, "batch words all_parts"],
        target_in: Int[Tensor, "batch target"],
    ) -> Float[Tensor, "batch target d_model"]:
        """Read for each token of known targets."""
        return self._sum(words, self._numbers(target_in, target_in.size(1)))

    def start(
        self, decoder: Any, words: Float[Tensor, "sentences words all_parts"]
    ) -> WordStatesCache:
        """Begin a search."""
        tokens = torch.empty(len(words), 0, dtype=torch.long, device=words.device)
        return WordStatesCache(decoder, words, tokens)

    def step(
        self, cache: WordStatesCache, newest: Int[Tensor, "sentences width"]
    ) -> tuple[Float[Tensor, "sentences width d_model"], WordStatesCache]:
        """Read for the newest token of each hypothesis."""
        tokens = torch.cat([cache.tokens, newest.view(-1, 1)], dim=1)  # (rows, length)
        numbers = [each.view_as(newest) for each in self._numbers(tokens, 1)]
        return self._sum(cache.words, numbers), replace(cache, tokens=tokens)

    def _numbers(
        self, tokens: Int[Tensor, "rows length"], newest: int
    ) -> list[Int[Tensor, "rows newest"]]:
        """Find which words to read at the newest tokens; beyond the last is the end."""
        written = self.writes[tokens].cumsum(dim=1)  # (rows, length)
        following = written[:, -newest:]
        if self.parts == 1:
            return [following]
        moves = self.moves[tokens]
        depth = moves.cumsum(dim=1)
        opened = torch.where(moves > 0, depth, -1)  # the depth of each bracket
        # Of all brackets as deep as it is now, the newest one is open, and it has the most words
        # before it.
        length = tokens.size(1)
        past = torch.ones(length, length, dtype=torch.bool, device=tokens.device).tril()[-newest:]
        is_open = (opened.unsqueeze(1) == depth[:, -newest:].unsqueeze(2)) & past
        first = torch.where(is_open, written.unsqueeze(1), 0).amax(dim=2)  # (rows, newest)
        return [following, (following - 1).clamp(min=0), first]

    def _sum(
        self,
        words: Float[Tensor, "batch words all_parts"],
        numbers: Sequence[Int[Tensor, "batch time"]],
    ) -> Float[Tensor, "batch time d_model"]:
        """Add up the states with these numbers."""
        parts = words.chunk(self.parts, dim=2)
        return torch.stack(
            [
                part.gather(
                    1, each.clamp(max=part.size(1) - 1).unsqueeze(2).expand(-1, -1, part.size(2))
                )
                for part, each in zip(parts, numbers, strict=True)
            ]
        ).sum(dim=0)
