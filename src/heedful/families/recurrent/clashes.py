"""Incompatible settings of recurrent models."""

from collections.abc import Iterator

from heedful.families.recurrent.config import RecurrentConfig
from heedful.families.registry import encoder_family, part_layers
from heedful.settings.conditions import list_values
from heedful.settings.model import ModelSettings


def recurrent_clashes(model: ModelSettings, memory: int) -> list[str]:
    """List invalid settings, each with a correction. `memory`: width of the encoder's states."""
    clashes = [*_depth(model), *_projection(model), *_mixtures(model)]
    if model.encoder == "recurrent":
        clashes += _encoder(model)
    if model.decoder == "recurrent":
        clashes += [*_decoder(model, memory), *_start(model)]
    return clashes


def _depth(model: ModelSettings) -> Iterator[str]:
    """Check that residual connections can begin at layer `residual_from`."""
    recurrent = model.part(RecurrentConfig)
    begin = recurrent.residual_from
    sides = [side for side in ("encoder", "decoder") if getattr(model, side) == "recurrent"]
    deepest = max(getattr(model, f"{side}_layers") for side in sides)
    if begin is not None and begin > deepest:
        yield (
            "`model.recurrent.residual_from` must be at most the number of recurrent layers "
            f"({deepest}), because it would change nothing otherwise, but got {begin}"
        )
    for side in sides if begin == 1 else []:
        is_both = side == "encoder" and model.part(RecurrentConfig).direction.endswith(
            "bidirectional"
        )
        width = _state_width(model, side) * (2 if is_both else 1)
        if width != model.d_model:
            yield (
                f"`model.recurrent.residual_from` = 1 needs states of the first layer of the "
                f"{side} as wide as `model.d_model` ({model.d_model}), but they are {width} wide"
            )


def _projection(model: ModelSettings) -> Iterator[str]:
    """Check the type of the cells and the size of the projection."""
    recurrent = model.part(RecurrentConfig)
    size = recurrent.projection_size
    if size is None:
        return
    if recurrent.cell != "lstm" or recurrent.fast_forward:
        yield (
            "`model.recurrent.projection_size` needs LSTMs without "
            f"`model.recurrent.fast_forward`, but got {size} with {recurrent.cell} cells"
            + (" and fast-forward connections" if recurrent.fast_forward else "")
        )
    for side in ("encoder", "decoder"):
        if getattr(model, side) == "recurrent" and size >= _hidden_width(model, side):
            yield (
                "`model.recurrent.projection_size` must be less than the width of the states of "
                f"the {side} ({_hidden_width(model, side)}), but got {size}"
            )


def _encoder(model: ModelSettings) -> Iterator[str]:
    """Check the encoder's settings, and its width if the decoder is a Transformer's."""
    recurrent = model.part(RecurrentConfig)
    both = recurrent.direction in ("bidirectional", "first-bidirectional")
    if recurrent.fast_forward and both:
        yield (
            "`model.recurrent.fast_forward` needs `model.recurrent.direction` to be forward or "
            f"interleaved, but got {recurrent.direction}"
        )
    if recurrent.direction == "first-bidirectional" and recurrent.residual_from in (1, 2):
        yield (
            "`model.recurrent.residual_from` must be at least 3 if `model.recurrent.direction` "
            "is first-bidirectional, because the second layer's input is wider than its states, "
            f"but got {recurrent.residual_from}"
        )
    if model.decoder == "transformer" and memory_width(model) != model.d_model:
        yield (
            "`model.recurrent.encoder_hidden_size` must give states as wide as `model.d_model` "
            f"({model.d_model}) for a Transformer decoder, but they are {memory_width(model)} "
            "wide; a bidirectional encoder needs half of `model.d_model`"
        )


def _decoder(model: ModelSettings, memory: int) -> Iterator[str]:
    """Check attention, feedback and readout."""
    recurrent = model.part(RecurrentConfig)
    yield from _attention(model, memory) if recurrent.score != "none" else _no_attention(model)
    width = _readout_width(model, memory)
    if model.tie_embeddings in ("all", "output") and width != model.d_model:
        change = "`model.recurrent.readout_size`"
        if recurrent.readout in ("state", "state-context"):
            change = "`model.recurrent.readout` to attentional or maxout"
        yield (
            f"`model.tie_embeddings` = {model.tie_embeddings} needs a readout as wide as "
            f"`model.d_model` ({model.d_model}), but it is {width} wide; change "
            f"{change}, or set `model.tie_embeddings` to none"
        )


def _no_attention(model: ModelSettings) -> Iterator[str]:
    """Check that no setting needs a context if there is no attention."""
    recurrent = model.part(RecurrentConfig)
    wanted = {
        "query": ("current",),
        "feed_layers": ("first",),
        "readout": ("state", "attentional", "maxout"),
        "feed": ("none",) if recurrent.readout == "state" else ("none", "readout"),
    }
    for name, allowed in wanted.items():
        if getattr(recurrent, name) not in allowed:
            yield (
                f"`model.recurrent.{name}` must be {list_values(allowed)} without attention "
                f"(`model.recurrent.score` = none), but got {getattr(recurrent, name)}"
            )


def _attention(model: ModelSettings, memory: int) -> Iterator[str]:
    """Check the states that attention compares, and that attention has an effect."""
    recurrent, width = model.part(RecurrentConfig), _state_width(model, "decoder")
    if recurrent.readout == "state" and recurrent.feed != "context":
        yield (
            "`model.recurrent.feed` must be context if `model.recurrent.readout` is state, because "
            f"attention would change nothing otherwise, but got {recurrent.feed}"
        )
    if recurrent.feed == "none" and recurrent.feed_layers == "all":
        yield (
            "`model.recurrent.feed_layers` must be first if `model.recurrent.feed` is none, but "
            "got all"
        )
    if recurrent.query == "previous" and encoder_family(model.encoder).no_alignment(model):
        yield (
            f"`model.recurrent.query` must be current if `model.encoder` is {model.encoder}, "
            "whose positions all have the same state, but got previous"
        )
    if recurrent.score == "dot" and width != memory:
        yield (
            f"`model.recurrent.score` = dot needs encoder and decoder states of the same width, "
            f"but they are {memory} and {width} wide; change a hidden size, "
            "or set `model.recurrent.score` to general"
        )


def _start(model: ModelSettings) -> Iterator[str]:
    """Check the decoder's first state."""
    recurrent = model.part(RecurrentConfig)
    start, direction = recurrent.start, recurrent.direction
    if start == "zero" and recurrent.score == "none":
        yield (
            "`model.recurrent.start` must not be zero without attention (`model.recurrent.score` = "
            "none), because the decoder would ignore the source, but got zero; choose mean"
        )
    if recurrent.projection_size is not None and start not in ("zero", "final"):
        yield (
            "`model.recurrent.start` must be zero or final if `model.recurrent.projection_size` "
            f"is set, because h and c then differ in width, but got {start}"
        )
    if start in ("zero", "mean"):
        return
    if model.encoder != "recurrent":
        yield (
            "`model.recurrent.start` must be zero or mean if `model.decoder` is recurrent and "
            f"`model.encoder` is {model.encoder}, which has no recurrent states, but got {start}"
        )
        return
    top_is_both = direction in ("bidirectional", "interleaved") or (
        direction == "first-bidirectional" and model.encoder_layers == 1
    )
    if start == "backward" and not top_is_both:
        yield (
            "`model.recurrent.start` = backward needs an encoder whose top layer reads in both "
            f"directions, but `model.recurrent.direction` is {direction}"
        )
    encoder, decoder = _hidden_width(model, "encoder"), _hidden_width(model, "decoder")
    fitting = {encoder, 2 * encoder} if start == "last" and top_is_both else {encoder}
    if start in ("last", "final") and decoder not in fitting:
        both = " or as both directions together" if len(fitting) > 1 else ""
        yield (
            f"`model.recurrent.start` = {start} needs decoder layers as wide as one direction of "
            f"the encoder's layers{both}, but they are {decoder} and {encoder} wide; choose "
            f"bridge, which accepts any width"
        )
    if start == "final" and model.encoder_layers != model.decoder_layers:
        yield (
            "`model.recurrent.start` = final needs as many layers in the encoder as in the "
            f"decoder, but there are {model.encoder_layers} and {model.decoder_layers}"
        )


def _mixtures(model: ModelSettings) -> Iterator[str]:
    """Check that the recurrent settings allow mixtures of experts."""
    for side in ("encoder", "decoder"):
        if getattr(model, side) == "recurrent" and part_layers(model, side):
            yield from _room_for_mixtures(model.part(RecurrentConfig), side)


def _room_for_mixtures(recurrent: RecurrentConfig, side: str) -> Iterator[str]:
    """Check one side of a model with mixtures."""
    if recurrent.fast_forward:
        yield (
            "`model.recurrent.fast_forward` must be false with mixtures of experts, which are not "
            "linear, but got true"
        )
    if side == "encoder":
        if recurrent.direction == "interleaved":
            yield (
                "`model.recurrent.direction` must not be interleaved if the encoder has mixtures "
                "of experts, because an interleaved encoder has two columns of layers; choose "
                "another direction"
            )
        return
    alone = recurrent.feed == "none" and recurrent.query == "current"
    below = (
        recurrent.query == "previous"
        and recurrent.feed == "context"
        and recurrent.feed_layers == "first"
    )
    if not (alone or below):
        change = "`model.recurrent.feed` to none"
        if recurrent.score != "none":
            change = (
                "`model.recurrent.query` to previous, `model.recurrent.feed` to context and "
                "`model.recurrent.feed_layers` to first"
            )
        yield (
            "mixtures of experts need recurrent decoder layers without feedback: set "
            f"{change}, or `model.experts.decoder_layers` to none"
        )


def _hidden_width(model: ModelSettings, side: str) -> int:
    """Return the width of one direction's states before any projection."""
    recurrent = model.part(RecurrentConfig)
    own: int | None = getattr(recurrent, f"{side}_hidden_size")
    return own or recurrent.hidden_size or model.d_model


def _state_width(model: ModelSettings, side: str) -> int:
    """Return the width of h of one direction."""
    return model.part(RecurrentConfig).projection_size or _hidden_width(model, side)


def memory_width(model: ModelSettings) -> int:
    """Compute the width of a recurrent encoder's states, as `RecurrentWiring.output_width` does."""
    recurrent, width = model.part(RecurrentConfig), _state_width(model, "encoder")
    columns = 2 if recurrent.direction == "interleaved" else 1
    if recurrent.fast_forward:
        gates = {"lstm": 4, "gru": 3, "rnn": 1}[recurrent.cell] * width
        return columns * (width + gates) // 4
    first_only = recurrent.direction == "first-bidirectional" and model.encoder_layers > 1
    return width if recurrent.direction == "forward" or first_only else 2 * width


def _readout_width(model: ModelSettings, memory: int) -> int:
    """Return the width of the input of the output matrix."""
    recurrent, width = model.part(RecurrentConfig), _state_width(model, "decoder")
    if recurrent.readout == "state":
        return width
    if recurrent.readout == "state-context":
        return width + memory
    return recurrent.readout_size or width
