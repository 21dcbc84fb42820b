"""
What a search remembers of the tokens it has written, and never reorders.

Each token of each hypothesis gets a slot of its own, where its keys and values stay until nobody
descends from it any more. Which slots a hypothesis may look at is written in a table, and only this
table is reordered when a beam goes on with other hypotheses:

::

    slot            0      1      2      3      4 ...
    token         Ein   Zwei   Hund  Junge   Mann
    hypothesis 0    x             x                   Ein Hund
    hypothesis 1    x                    x            Ein Junge
    hypothesis 2           x                    x     Zwei Mann

The hypotheses of a sentence are so many queries of one sequence, and their keys and values are one
tensor, as large as a beam's history without what its hypotheses have in common. Slots come in
blocks, so that tensors change their shapes seldom; with every new block those that nobody looks at
are let go.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.model.attention import KeyValue

# A new block has room for so many tokens of each hypothesis; slots are a multiple of the second.
_BLOCK_STEPS = 8
_MULTIPLE = 16


def mask_to_bias(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """
    Turn a mask into what is added to the scores.

    Parameters
    ----------
    mask : Tensor of bool, any shape
        True where a look is allowed.
    dtype : torch.dtype
        Of the scores.

    Returns
    -------
    Tensor of float, same shape
        Zero or minus infinity.

    Notes
    -----
    Adding is part of the product that makes the scores; masking would be a pass of its own.
    """
    bias = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
    return bias.masked_fill_(~mask, float("-inf"))


@dataclass(frozen=True)
class KVCache:
    """
    Keep the keys and values of all tokens that open hypotheses are made of.

    Attributes
    ----------
    layers : tuple of KeyValue
        For each decoder layer keys and values, shape (sentences, heads, slots, d_k).
    bias : Tensor of float, shape (sentences, width, slots)
        Zero where a hypothesis descends from the token in a slot, else minus infinity.
    filled : int
        Slots in use.

    Notes
    -----
    The tensors are written in place: only the newest cache of a search may be used.
    """

    layers: tuple[KeyValue, ...]
    bias: Float[Tensor, "sentences width slots"]
    filled: int = 0

    @classmethod
    def empty(cls, layers: int, memory: KeyValue) -> "KVCache":
        """
        Begin without tokens.

        Parameters
        ----------
        layers : int
            How many decoder layers there are.
        memory : KeyValue
            What the sources offer to one of them: it shows the number of sentences and the shape.

        Returns
        -------
        KVCache
            With no slots.

        Notes
        -----
        Slots come with the first step.
        """
        nothing = KeyValue(memory.keys[:, :, :0], memory.values[:, :, :0])
        sentences = memory.keys.size(0)
        return cls((nothing,) * layers, memory.keys.new_zeros(sentences, 1, 0))

    def select(
        self, rows: Int[Tensor, " rows"], sentences: Int[Tensor, " kept"] | None = None
    ) -> "KVCache":
        """
        Continue with other hypotheses.

        Parameters
        ----------
        rows : Tensor of int, shape (new rows,)
            Which old row each new row continues.
        sentences : Tensor of int, shape (new sentences,), optional
            Which sentences stay; all when absent.

        Returns
        -------
        KVCache
            The same tokens for other descendants.

        Notes
        -----
        Keys and values are copied only when sentences leave.
        """
        layers = self.layers
        if sentences is not None:
            layers = tuple(layer.select(sentences) for layer in layers)
        count = layers[0].keys.size(0)
        bias = self.bias.flatten(0, 1).index_select(0, rows)
        bias = bias.view(count, len(rows) // max(count, 1), self.bias.size(2))
        return KVCache(layers, bias, self.filled)

    def advance(self, width: int) -> "KVCache":
        """
        Give each hypothesis the slot of its next token.

        Parameters
        ----------
        width : int
            Hypotheses of each sentence.

        Returns
        -------
        KVCache
            The last `width` slots in use await `write`.

        Notes
        -----
        Each hypothesis sees its own newest token and not those of its neighbours.
        """
        cache = self if self.filled + width <= self.bias.size(2) else self._with_room(width)
        own = torch.eye(width, dtype=torch.bool, device=self.bias.device)
        bias = cache.bias.repeat(1, width // cache.bias.size(1), 1)
        bias[:, :, cache.filled : cache.filled + width] = mask_to_bias(own, bias.dtype)
        return KVCache(cache.layers, bias, cache.filled + width)

    def write(self, layer: int, newest: KeyValue) -> KeyValue:
        """
        Put the newest tokens of a layer into their slots.

        Parameters
        ----------
        layer : int
            Index of the decoder layer.
        newest : KeyValue
            Shape (sentences, heads, width, d_k).

        Returns
        -------
        KeyValue
            All slots of the layer.

        Notes
        -----
        Slots that were never written hold zeros, so that a weight of zero leaves nothing of them.
        """
        kept = self.layers[layer]
        first = self.filled - newest.keys.size(2)
        kept.keys[:, :, first : self.filled] = newest.keys
        kept.values[:, :, first : self.filled] = newest.values
        return kept

    def _with_room(self, width: int) -> "KVCache":
        """Move what is still looked at to new tensors with a further block of slots."""
        sentences, heads = self.layers[0].keys.shape[:2]
        used = (self.bias[:, :, : self.filled] == 0).any(dim=1)
        most = int(used.sum(dim=1).max()) if self.filled else 0
        order = used.int().argsort(dim=1, descending=True, stable=True)[:, :most]
        slots = most + max(width * _BLOCK_STEPS, most // 4)
        slots = -(-slots // _MULTIPLE) * _MULTIPLE
        first = torch.arange(sentences * heads, device=order.device).view(sentences, heads, 1)
        rows = (first * self.bias.size(2) + order.unsqueeze(1)).flatten()

        def move(old: Tensor) -> Tensor:
            new = old.new_zeros(sentences, heads, slots, old.size(3))
            if most:
                moved = old.reshape(-1, old.size(3)).index_select(0, rows)
                new[:, :, :most] = moved.view(sentences, heads, most, -1)
            return new

        bias = self.bias.new_full((sentences, self.bias.size(1), slots), float("-inf"))
        chosen = order.unsqueeze(1).expand(-1, self.bias.size(1), -1)
        bias[:, :, :most] = self.bias.gather(2, chosen)
        layers = tuple(KeyValue(move(layer.keys), move(layer.values)) for layer in self.layers)
        return KVCache(layers, bias, most)
