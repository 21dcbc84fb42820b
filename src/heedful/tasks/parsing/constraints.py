"""
The rule that lets a search write only trees of the given words.

::

    word    while words are left, inside a phrase; if words are numbered, only the symbol with the
            next word's number, or any word's symbol if no symbol has this number
    (X      while words are left, unless too many phrases are opened in a row or nested; one
            phrase contains all others
    )X      closes the innermost phrase if it is an X and is not empty; the outermost phrase is
            closed only after the last word
    end     when all phrases are closed and all words are written

Every hypothesis can be completed within the length limit, so the search has no dead ends. The
tokens of a hypothesis determine its innermost open phrase. This phrase began at the last opening
bracket that led to the current depth.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.tasks.parsing.trees.read import DEEPEST

OTHER, WORD, OPEN, CLOSE = range(4)


@dataclass(frozen=True)
class TreeSymbols:
    """The role of each id of the target vocabulary in a linearized tree."""

    kinds: tuple[int, ...]
    """OTHER, WORD, OPEN or CLOSE."""
    labels: tuple[int, ...]
    """Index of the label that a symbol opens or closes, or number of a word; -1 for neither."""
    numbers: int | None = None
    """Modulus of word numbers; None if words are not numbered."""


class WellFormedTrees:
    """
    Allow only trees with as many leaves as there are words.

    `words`: number of words in each sentence. `limits`: maximum number of tokens in each output
    without its end symbol; at least `fewest_symbols`. `longest_chain`: maximum number of phrases
    that are opened in a row.
    """

    def __init__(
        self,
        symbols: TreeSymbols,
        words: Sequence[int],
        limits: Sequence[int],
        end_token: int,
        longest_chain: int,
        device: torch.device | None = None,
    ) -> None:
        self.kinds = torch.tensor(symbols.kinds, device=device)  # (vocabulary,)
        self.labels = torch.tensor(symbols.labels, device=device)  # (vocabulary,)
        self.words = torch.tensor(list(words), device=device)  # (sentences,)
        self.limits = torch.tensor(list(limits), device=device)  # (sentences,)
        self.end_token, self.longest_chain = end_token, longest_chain
        self.numbers = symbols.numbers
        listed = torch.zeros(max(symbols.numbers or 1, 1), dtype=torch.bool)
        for kind, label in zip(symbols.kinds, symbols.labels, strict=True):
            if kind == WORD and 0 <= label < len(listed):
                listed[label] = True
        self.listed = listed.to(device=device)  # (numbers,)

    def __call__(
        self,
        scores: Float[Tensor, "rows vocabulary"],
        written: Int[Tensor, "rows length"],
        sentences: Int[Tensor, " rows"],
    ) -> Float[Tensor, "rows vocabulary"]:
        """Set the scores of symbols that cannot continue a tree to -inf."""
        length = written.size(1)
        # finished rows of a search may contain any id
        tokens = written.clamp(max=len(self.kinds) - 1)
        kinds = self.kinds[tokens]  # (rows, length)
        levels = ((kinds == OPEN).long() - (kinds == CLOSE).long()).cumsum(dim=1)
        depth = levels[:, -1] if length else torch.zeros_like(sentences)  # (rows,)
        done = (kinds == WORD).sum(dim=1)  # (rows,)
        left = self.words[sentences] - done
        places = torch.arange(1, length + 1, device=written.device)  # (length,), from 1
        chain = length - _last(kinds != OPEN, places)  # (rows,)
        top = _last((kinds == OPEN) & (levels == depth.unsqueeze(1)), places)  # (rows,)
        label = torch.full_like(depth, -2)  # differs from the labels of all ids
        if length:
            label = self.labels[tokens.gather(1, (top - 1).clamp(min=0).unsqueeze(1)).squeeze(1)]

        more, inside, first = left > 0, depth > 0, length == 0
        alone = first & (self.words[sentences] == 1)  # a single word may be the whole tree
        # the open phrases, the remaining words and another phrase must fit into the limit
        fits = length + left + depth + 2 <= self.limits[sentences]
        may_write = more & (inside | alone)
        # `read_trees` refuses deeper trees
        may_nest = (chain < self.longest_chain) & (depth < DEEPEST)
        may_open = more & (inside | first) & may_nest & fits
        may_close = inside & (chain == 0) & ~((depth == 1) & more)
        may_end = ~inside & ~more

        of_kind = torch.stack([torch.zeros_like(more), may_write, may_open, may_close], dim=1)
        allowed = of_kind[:, self.kinds]  # (rows, known)
        closes = self.kinds == CLOSE
        allowed &= ~closes | (self.labels == label.unsqueeze(1))
        if self.numbers is not None:
            number = (done % self.numbers).unsqueeze(1)  # (rows, 1)
            # the training text may have no sentence with so many words
            allowed &= (self.kinds != WORD) | (self.labels == number) | ~self.listed[number]
        allowed[:, self.end_token] = may_end
        scores[:, len(self.kinds) :] = float("-inf")  # padding rows of the output matrix
        known = scores[:, : len(self.kinds)]
        scores[:, : len(self.kinds)] = known.masked_fill(~allowed, float("-inf"))
        return scores


def fewest_symbols(words: int) -> int:
    """
    Count the symbols of the smallest tree.

    >>> fewest_symbols(1), fewest_symbols(5)
    (1, 7)
    """
    return words if words == 1 else words + 2


def _last(is_there: Tensor, places: Tensor) -> Tensor:
    """Find the last true position, counted from 1; 0 if there is none."""
    marked = is_there.long() * places  # (rows, length)
    return marked.amax(dim=1) if marked.size(1) else marked.sum(dim=1)
