"""The settings of recurrent encoders and decoders."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from heedful.settings.conditions import ActsIf
from heedful.settings.field_types import Positive, Share, Width
from heedful.settings.table import SettingsTable

ENCODER = ActsIf("model.encoder", ("recurrent",))
DECODER = ActsIf("model.decoder", ("recurrent",))
ATTENTION = ActsIf("model.recurrent.score", unless=("none",))


class RecurrentConfig(SettingsTable):
    """Recurrent encoders and decoders."""

    table: ClassVar[str] = "model.recurrent"

    cell: Literal["lstm", "gru", "rnn"] = "lstm"
    """Kind of cell: LSTM, GRU, or a simple recurrent cell with tanh."""
    hidden_size: Width | None = None
    """Width of the states in each direction. None means d_model."""
    encoder_hidden_size: Annotated[Width | None, ENCODER] = None
    """Width of the encoder's states. None means hidden_size."""
    decoder_hidden_size: Annotated[Width | None, DECODER] = None
    """Width of the decoder's states. None means hidden_size."""
    projection_size: Annotated[Width | None, ActsIf("model.recurrent.cell", ("lstm",))] = None
    """Width to which each LSTM's output is projected. None means no projection."""
    direction: Annotated[
        Literal["forward", "bidirectional", "first-bidirectional", "interleaved"], ENCODER
    ] = "bidirectional"
    """Encoder direction: forward, both, both only in layer 1, or alternating in two stacks."""
    reverse_source: Annotated[bool, ENCODER] = False
    """Whether the encoder reads the source in reverse order."""
    residual_from: Annotated[int, Field(ge=1)] | None = None
    """First of the layers with a residual connection, counted from 1. None means no layer."""
    fast_forward: bool = False
    """Whether a layer also reads half of the product of the lower layer's input and weights."""
    score: Annotated[
        Literal["none", "dot", "general", "scaled", "additive", "normed-additive", "product"],
        DECODER,
    ] = "additive"
    """Attention score of a decoder state and an encoder state; none means no attention."""
    attention_size: Annotated[
        Width | None, ActsIf("model.recurrent.score", ("additive", "normed-additive", "product"))
    ] = None
    """Inner width of additive and product scores. None means the width of the decoder's states."""
    query: Annotated[Literal["current", "previous"], ATTENTION] = "current"
    """Query of attention: the top state of this step, or the bottom state of the previous step."""
    feed: Annotated[Literal["none", "context", "readout"], DECODER] = "readout"
    """Second input of a decoder step: none, the attention context, or the previous readout."""
    feed_layers: Annotated[
        Literal["first", "all"], ActsIf("model.recurrent.feed", unless=("none",))
    ] = "first"
    """Decoder layers that read the input chosen by feed."""
    readout: Annotated[Literal["state", "state-context", "attentional", "maxout"], DECODER] = (
        "attentional"
    )
    """Input of the output matrix: the state, state and context, a tanh layer of both, or maxout."""
    readout_size: Annotated[
        Width | None, ActsIf("model.recurrent.readout", ("attentional", "maxout"))
    ] = None
    """Width of an attentional or maxout readout. None means the width of the decoder's states."""
    start: Annotated[Literal["zero", "mean", "bridge", "backward", "last", "final"], DECODER] = (
        "bridge"
    )
    """Initial decoder state: zero, a projection of encoder states, or a copy (last, final)."""
    embedding_dropout: Share | None = None
    """Dropout probability of embeddings. None means model.dropout."""
    layer_dropout: Share | None = None
    """Dropout probability between layers. None means model.dropout."""
    readout_dropout: Annotated[Share | None, DECODER] = None
    """Dropout probability of the readout, or its input if attentional. None means model.dropout."""
    initialisation: Literal["uniform", "glorot"] = "uniform"
    """Distribution of the initial weights: uniform up to initial_range, or Glorot's."""
    initial_range: Annotated[Positive, ActsIf("model.recurrent.initialisation", ("uniform",))] = 0.1
    """Largest absolute value of the initial weights."""
    forget_bias: Annotated[float, ActsIf("model.recurrent.cell", ("lstm",))] = 1.0
    """Number added to the initial bias of an LSTM's forget gate."""
