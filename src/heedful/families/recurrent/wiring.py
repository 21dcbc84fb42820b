"""Sizes and settings of recurrent encoders and decoders."""

from dataclasses import dataclass
from typing import Literal

from heedful.arguments import check_counts, check_fields
from heedful.families.recurrent.cells import Cell
from heedful.families.recurrent.scores import Score
from heedful.model.parts import NO_NETWORKS, Networks


@dataclass(frozen=True)
class RecurrentWiring:
    """Sizes and settings of a recurrent encoder or decoder (`docs/explain/recurrent.md`)."""

    d_model: int
    """Width of the embeddings."""
    hidden_size: int
    """Width of the states in each direction."""
    layers: int
    cell: Cell = "lstm"
    projection_size: int | None = None
    """Width to which an LSTM projects the output of each direction; None means no projection."""
    residual_from: int | None = None
    """First layer, counted from 1, with a residual connection."""
    fast_forward: bool = False
    """Whether a layer also reads half of the product of the lower layer's input and weights."""
    embedding_dropout: float = 0.0
    layer_dropout: float = 0.0
    """Dropout probability of the input of every layer except the first."""

    direction: Literal["forward", "bidirectional", "first-bidirectional", "interleaved"] = "forward"
    """How the layers of an encoder read the source."""
    reverse_source: bool = False
    """Whether an encoder reads the source from its end."""

    memory_width: int = 0
    """Width of the states that a decoder attends to."""
    final_width: int = 0
    """Width of the encoder vector that gives a decoder's first state; 0 if there is none."""
    score: Score | Literal["none"] = "none"
    attention_size: int = 0
    """Inner width of additive and product scores."""
    query: Literal["current", "previous"] = "current"
    """Query of attention: the top state of this step, or the previous step's bottom state."""
    feed: Literal["none", "context", "readout"] = "none"
    """Vector that the layers read in addition to the embedding."""
    feed_layers: Literal["first", "all"] = "first"
    """The layers that read the vector chosen by `feed`."""
    readout: Literal["state", "state-context", "attentional", "maxout"] = "state"
    """The vector that the output matrix multiplies."""
    readout_size: int = 0
    """Width of an attentional or maxout readout."""
    readout_dropout: float = 0.0
    start: Literal["zero", "mean", "bridge", "backward", "last", "final"] = "zero"
    """Origin of the first state."""

    networks: Networks = NO_NETWORKS
    """Networks of another family on top of some layers."""

    initialisation: Literal["uniform", "glorot"] = "uniform"
    initial_range: float = 0.1
    forget_bias: float = 1.0

    @property
    def state_width(self) -> int:
        """Width of h of one direction."""
        return self.projection_size or self.hidden_size

    def __post_init__(self) -> None:
        check_fields(self)
        check_counts(d_model=self.d_model, hidden_size=self.hidden_size, layers=self.layers)
        if self.readout in ("attentional", "maxout"):
            check_counts(readout_size=self.readout_size)
        if self.score in ("additive", "normed-additive", "product"):
            check_counts(attention_size=self.attention_size)

    @property
    def gates(self) -> int:
        """Width of the projected input of all gates of one direction."""
        return {"lstm": 4, "gru": 3, "rnn": 1}[self.cell] * self.hidden_size

    @property
    def columns(self) -> int:
        """Number of columns of an encoder, which are parallel stacks of layers."""
        return 2 if self.direction == "interleaved" else 1

    @property
    def output_width(self) -> int:
        """Width of the states that an encoder returns."""
        if self.fast_forward:
            return self.columns * (self.hidden_size + self.gates) // 4
        return 2 * self.state_width if self.top_is_bidirectional else self.state_width

    @property
    def top_is_bidirectional(self) -> bool:
        """Whether an encoder's last layer, or its pair of last layers, reads in both directions."""
        only_first = self.direction == "first-bidirectional" and self.layers > 1
        return self.direction != "forward" and not only_first

    @property
    def readout_width(self) -> int:
        """Width of the states that a decoder returns."""
        if self.readout == "state":
            return self.state_width
        if self.readout == "state-context":
            return self.state_width + self.memory_width
        return self.readout_size

    def inputs_above(self, below: int) -> int:
        """Return the input width of a layer above one of width `below`, without the fed vector."""
        return below + (self.gates // 2 if self.fast_forward else 0)
