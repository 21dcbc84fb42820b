"""
Interfaces of parts that can replace the standard parts of a Transformer's layer.

The layers use only these interfaces; `heedful.families` implements them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    NamedTuple,
    Protocol,
    TypeVar,
    runtime_checkable,
)

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.errors import ArgumentError, PluginError, SettingError
from heedful.model.flops import RowLengths
from heedful.model.layout import Layout, check_states


class KeyValue(NamedTuple):
    """Keys and values of a sequence, split into heads, which every step of a search reads."""

    keys: Float[Tensor, "batch heads keys d_k"]
    values: Float[Tensor, "batch heads keys d_v"]

    def select(self, rows: Tensor) -> "KeyValue":
        """Select rows of the batch, in any order and number."""
        return KeyValue(self.keys.index_select(0, rows), self.values.index_select(0, rows))


@dataclass(frozen=True)
class AttentionWeights:
    """Attention weights of every layer and head for one batch, grouped as in section 3.2.3."""

    encoder: list[Tensor]
    """Self-attention of the encoder: a tensor (batch, heads, queries, keys) for each layer."""
    decoder: list[Tensor]
    """Masked self-attention of the decoder, in tensors of the same shape."""
    cross: list[Tensor]
    """Cross-attention of the decoder to the memory, in tensors of the same shape."""

    def of_sentence(self, row: int) -> tuple[Tensor, Tensor, Tensor]:
        """
        Stack a sentence's weights (encoder, decoder, cross) as (layers, heads, queries, keys).

        If the family lacks a kind of attention, the tensor of that kind has zero layers. Raises
        `SettingError` if the decoder does not attend to the source.
        """
        if not self.cross:
            raise SettingError(
                "attention can be shown only if the decoder attends to the source, but this "
                "model's decoder does not; name another run."
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
class TargetCache(Protocol):
    """The interface of a search's cache of target tokens in all layers, such as `KVCache`."""

    @property
    def mask_bias(self) -> Float[Tensor, "sentences width slots"]:
        """Zero if a hypothesis contains the token in a slot, else minus infinity."""

    def select(
        self, rows: Int[Tensor, " rows"], sentences: Int[Tensor, " kept"] | None = None
    ) -> "TargetCache":
        """Select the hypotheses that the search continues with, as `DecodingState.select` does."""

    def advance(self, width: int) -> "TargetCache":
        """Reserve a slot for the next token of each hypothesis, before the layers run."""

    def write(self, layer: int, newest: Any) -> Any:
        """Add a mixer's results for the newest tokens; return the cached results of all tokens."""


class Mixer(nn.Module, ABC):
    """
    A module that mixes the positions of one sequence, and can replace self-attention.

    A decoder needs a mixer that is also a `TargetMixer`; an encoder refuses a `TargetMixer`.
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
        queries_from, keys_from : Tensor
            The sequence, twice, like the arguments of self-attention.
        layout : Layout or Tensor, optional
            Which positions are real, and where padding was removed; all are real if None.

        Returns
        -------
        states : Tensor
            New states.
        weights : Tensor or None
            Weights of pairs of positions, if the mixer has any.
        """

    @abstractmethod
    def flops(self, lengths: RowLengths, leaves_out: bool) -> int:
        """Count forward operations, two per multiply-add; exclude padding if `leaves_out`."""


def mixed_states(mixer: nn.Module, states: Tensor, layout: Any) -> Tensor:
    """Compute a mixer's new states of one sequence; refuse results of another type or shape."""
    result = mixer(states, states, layout)
    shape = tuple(states.shape)
    if not isinstance(result, tuple):
        but = f"a {type(result).__name__}"
    elif result[0].shape != shape:
        but = f"states of shape {tuple(result[0].shape)}"
    else:
        new: Tensor = result[0]
        return new
    raise PluginError(
        f"forward of {type(mixer).__name__} must return a tuple of the new states, of shape "
        f"{shape}, and the weights or None, but returned {but}."
    )


def check_mixed(owner: str, width: int, x: Any, keys_from: Any, mask: Tensor | None) -> None:
    """Refuse inputs that only attention supports: two sequences, or a mask per head or query."""
    check_states(owner, width, least_axes=3, queries_from=x)
    if keys_from is not x and (keys_from.shape, keys_from.data_ptr()) != (x.shape, x.data_ptr()):
        raise ArgumentError(
            f"`keys_from` of {owner} must be the same sequence as `queries_from`, because {owner} "
            "mixes the positions of one sequence, but got another sequence; use "
            "MultiHeadAttention for two sequences."
        )
    if mask is not None and mask.size(1) * mask.size(2) > 1:
        raise ArgumentError(
            f"the mask of {owner} must have shape (batch, 1, 1, keys), the same for all heads and "
            f"queries, but got shape {tuple(mask.shape)}."
        )


class TargetMixer(ABC):
    """
    The interface of the mixer in a decoder's layer, for a search.

    `step` must give the same states as `forward` at the newest positions, so a position must not
    read later positions.
    """

    @abstractmethod
    def start_cache(self, layers: int, memory: KeyValue, window: int | None) -> TargetCache:
        """
        Create the cache of a search, for all layers, before the first token.

        Parameters
        ----------
        layers : int
            Number of decoder layers.
        memory : KeyValue
            Keys and values of the source in any layer; the cache has their sizes, device and type.
        window : int or None
            Number of most recent tokens that are read; all tokens if None.

        Returns
        -------
        TargetCache
            The cache of all layers; only the first layer's mixer creates one.
        """

    @abstractmethod
    def step(
        self,
        x: Float[Tensor, "sentences width d_model"],
        write: Callable[[Any], Any],
        mask_bias: Float[Tensor, "sentences heads width slots"],
    ) -> Float[Tensor, "sentences width d_model"]:
        """
        Process one more token of each hypothesis, all hypotheses of a sentence together.

        Parameters
        ----------
        x : Tensor
            States of the newest tokens.
        write : callable
            `TargetCache.write` of this layer.
        mask_bias : Tensor
            `TargetCache.mask_bias`, copied for each head, plus the bias of the scores, if any.

        Returns
        -------
        Tensor
            New states.
        """


class Network(nn.Module, ABC):
    """
    A network that maps the state of each position to a new state.

    Buffers whose names begin with ``running_`` are running averages; checkpoints store them.
    """

    computes_padding: ClassVar[bool] = False
    """Whether the network also processes padding positions, if padding was not removed."""
    penalty: Tensor | None = None
    """Term of the loss per target token, from the last forward pass in training."""

    @abstractmethod
    def forward(
        self,
        x: Float[Tensor, "*batch d_model"],
        real: Bool[Tensor, "*batch"] | None = None,
    ) -> Float[Tensor, "*batch d_model"]:
        """Compute new states; padding (not `real`) must not change the states of real positions."""

    @abstractmethod
    def flops(self, tokens: int) -> int:
        """Count forward operations for a number of real tokens, two per multiply-add."""

    @classmethod
    def log_figures(cls, networks: Sequence[Any]) -> dict[str, float]:
        """Summarize all networks of this class in a model for a line of the training log."""
        del networks
        return {}


class Networks(NamedTuple):
    """Networks in some layers of an encoder or decoder."""

    build: Callable[[int], Network] | None = None
    """Builds a network from the width of the states."""
    layers: tuple[int, ...] = ()
    """Layers, counted from 1, that have such a network."""


NO_NETWORKS = Networks()


class PaddedNorm(ABC):
    """
    The interface of a norm that needs to know which positions are real.

    Buffers whose names begin with ``running_`` are running averages; checkpoints store them.
    """

    @abstractmethod
    def forward(
        self,
        x: Float[Tensor, "batch time d_model"],
        real: Bool[Tensor, "batch time"] | None = None,
    ) -> Float[Tensor, "batch time d_model"]:
        """Normalize states; padding (not `real`) must not change the states of real positions."""


Part = TypeVar("Part", bound=nn.Module)


class Parts(nn.ModuleList, Generic[Part]):
    """A `ModuleList` with typed elements; names of weights are the same as in a `ModuleList`."""

    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[Part]: ...

    @property
    def first(self) -> Part:
        """The first module."""
        return next(iter(self))
