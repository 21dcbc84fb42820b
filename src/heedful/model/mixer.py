"""
What mixes the positions of a sequence in the place of self-attention.

The layers know this contract alone; `heedful.families` has what fulfils it. `MultiHeadAttention`
reads two sequences as well, and is no `Mixer`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.model.layout import Layout
from heedful.model.lengths import RowLengths
from heedful.model.projections import KeyValue


@runtime_checkable
class TargetCache(Protocol):
    """
    What a search keeps of the target tokens so far, in all layers.

    Notes
    -----
    `heedful.model.kv_cache.KVCache` is that of attention.
    """

    @property
    def mask_bias(self) -> Float[Tensor, "sentences width slots"]:
        """Zero if a hypothesis contains the token in a slot, else minus infinity."""
        ...

    def select(
        self, rows: Int[Tensor, " rows"], sentences: Int[Tensor, " kept"] | None = None
    ) -> "TargetCache":
        """
        Select the hypotheses that the search continues with.

        Parameters
        ----------
        rows : Tensor of int, shape (new rows,)
            Index of the old hypothesis that each new one continues.
        sentences : Tensor of int, shape (new sentences,), optional
            Indices of the sentences that stay; all if None.

        Returns
        -------
        TargetCache
            That of the chosen hypotheses.

        Notes
        -----
        As `heedful.model.seq2seq.DecodingState.select`.
        """
        ...

    def advance(self, width: int) -> "TargetCache":
        """
        Make room for the next token of each hypothesis.

        Parameters
        ----------
        width : int
            Hypotheses of a sentence.

        Returns
        -------
        TargetCache
            With room that `write` fills.

        Notes
        -----
        Called once a step, before the layers run.
        """
        ...

    def write(self, layer: int, newest: Any) -> Any:
        """
        Add what a layer computes of the newest tokens.

        Parameters
        ----------
        layer : int
            The layer, from 0.
        newest : object
            What the layer's mixer passes to the `write` of its `step`.

        Returns
        -------
        object
            What the mixer reads of all tokens.

        Notes
        -----
        Called once a step for each layer.
        """
        ...


class Mixer(nn.Module, ABC):
    """
    Mixes the positions of one sequence.

    Notes
    -----
    Only one that is a `TargetMixer`, too, may stand in a decoder, and none of them in an encoder.
    """

    @abstractmethod
    def forward(
        self,
        queries_from: Float[Tensor, "batch time d_model"],
        keys_from: Float[Tensor, "batch time d_model"],
        layout: Layout | Tensor | None = None,
    ) -> tuple[Float[Tensor, "batch time d_model"], Float[Tensor, "batch heads time time"] | None]:
        """
        Compute new states of all positions.

        Parameters
        ----------
        queries_from, keys_from : Tensor of float, shape (batch, time, d_model)
            The sequence, twice, as self-attention gets it.
        layout : Layout or Tensor of bool, optional
            Which positions are real; all if None.

        Returns
        -------
        states : Tensor of float, shape (batch, time, d_model)
            New states.
        weights : Tensor of float, shape (batch, heads, time, time), or None
            Weights of pairs of positions, if there are any.

        Notes
        -----
        Where padding was removed, `layout` says where it was.
        """

    @abstractmethod
    def flops(self, lengths: RowLengths, leaves_out: bool) -> int:
        """
        Count the operations of the products, a multiply-add as two.

        Parameters
        ----------
        lengths : RowLengths
            How long the rows of a batch are.
        leaves_out : bool
            Whether padding was removed before the layers.

        Returns
        -------
        int
            Forward operations.

        Notes
        -----
        Counted is what is computed, padding included where it is.
        """


class TargetMixer(ABC):
    """
    What a search asks of the mixer in a decoder's layer.

    Notes
    -----
    `step` must equal `forward` at the newest positions, so a position may read earlier ones alone.
    """

    @abstractmethod
    def start_cache(self, layers: int, memory: KeyValue, window: int | None) -> TargetCache:
        """
        Create what a search keeps before the first token.

        Parameters
        ----------
        layers : int
            Layers of the decoder.
        memory : KeyValue
            Keys and values of the source in any layer: sizes, device and type are theirs.
        window : int or None
            The last tokens that are read; None means all.

        Returns
        -------
        TargetCache
            That of all layers, without tokens.

        Notes
        -----
        Called once a search, of the first layer's mixer.
        """

    @abstractmethod
    def step(
        self,
        x: Float[Tensor, "sentences width d_model"],
        write: Callable[[Any], Any],
        mask_bias: Float[Tensor, "sentences heads width slots"],
    ) -> Float[Tensor, "sentences width d_model"]:
        """
        Process one more token of each hypothesis.

        Parameters
        ----------
        x : Tensor of float, shape (sentences, width, d_model)
            States of the newest tokens.
        write : callable
            `TargetCache.write` of this layer.
        mask_bias : Tensor of float, shape (sentences, heads, width, slots)
            `TargetCache.mask_bias`, a copy for each head.

        Returns
        -------
        Tensor of float, shape (sentences, width, d_model)
            New states.

        Notes
        -----
        All hypotheses of a sentence are computed together.
        """
