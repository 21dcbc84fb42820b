"""Settings of recurrent models that do not go together."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from heedful.config.conditions import listed

if TYPE_CHECKING:
    from heedful.config.model import ModelConfig

_ONE_STATE = ("average", "sum")


def recurrent_clashes(model: "ModelConfig") -> list[str]:
    """List what does not fit, each with what to change; nothing for a Transformer."""
    found: list[str] = []
    if "recurrent" in (model.encoder, model.decoder):
        found += [*_depth(model), *_projection(model)]
    if model.encoder == "recurrent":
        found += _encoder(model)
    if model.decoder == "recurrent":
        found += [*_decoder(model), *_start(model)]
    return found


def _depth(model: "ModelConfig") -> Iterator[str]:
    """Check that there is a layer where residual connections begin."""
    begin = model.recurrent.residual_from
    sides = [side for side in ("encoder", "decoder") if getattr(model, side) == "recurrent"]
    deepest = max(getattr(model, f"{side}_layers") for side in sides)
    if begin is not None and begin > deepest:
        yield (
            "`model.recurrent.residual_from` must be at most the number of recurrent layers "
            f"({deepest}), because it would change nothing otherwise, but {begin} came"
        )
    for side in sides if begin == 1 else []:
        is_both = side == "encoder" and model.recurrent.direction.endswith("bidirectional")
        width = _state(model, side) * (2 if is_both else 1)
        if width != model.d_model:
            yield (
                "`model.recurrent.residual_from` = 1 adds embeddings to the states of the first "
                f"layer of the {side}, so both must be equally wide, but `model.d_model` is "
                f"{model.d_model} and the states are {width} wide"
            )


def _projection(model: "ModelConfig") -> Iterator[str]:
    """Check that there is an LSTM's output to be made narrower."""
    recurrent, size = model.recurrent, model.recurrent.projection_size
    if size is None:
        return
    if recurrent.cell != "lstm" or recurrent.fast_forward:
        yield (
            "`model.recurrent.projection_size` needs LSTMs without `model.recurrent.fast_forward`, "
            f"but {size} came for {recurrent.cell} cells"
            + (" with it" if recurrent.fast_forward else "")
        )
    for side in ("encoder", "decoder"):
        if getattr(model, side) == "recurrent" and size >= _hidden(model, side):
            yield (
                "`model.recurrent.projection_size` must be less than the width of the states of "
                f"the {side} ({_hidden(model, side)}), but {size} came"
            )


def _encoder(model: "ModelConfig") -> Iterator[str]:
    """Check the encoder alone, and its width beside a Transformer's decoder."""
    recurrent = model.recurrent
    both = recurrent.direction in ("bidirectional", "first-bidirectional")
    if recurrent.fast_forward and both:
        yield (
            "`model.recurrent.fast_forward` needs `model.recurrent.direction` to be forward or "
            f"interleaved, but {recurrent.direction} came"
        )
    if recurrent.direction == "first-bidirectional" and recurrent.residual_from in (1, 2):
        yield (
            "`model.recurrent.residual_from` must be at least 3 where the first layer is "
            "bidirectional, because the second reads twice its own width, but "
            f"{recurrent.residual_from} came"
        )
    if model.decoder == "transformer" and memory_width(model) != model.d_model:
        yield (
            "`model.recurrent.encoder_hidden_size` must give states as wide as `model.d_model` "
            f"({model.d_model}) for a Transformer's decoder, but they are {memory_width(model)} "
            "wide; a bidirectional encoder needs half of it"
        )


def _decoder(model: "ModelConfig") -> Iterator[str]:
    """Check attention, what is fed back and what is read out."""
    recurrent = model.recurrent
    yield from _attention(model) if recurrent.score != "none" else _no_attention(model)
    if model.tie_embeddings != "none" and _readout_width(model) != model.d_model:
        change = "`model.recurrent.readout_size`"
        if recurrent.readout in ("state", "state-context"):
            change = "`model.recurrent.readout` to attentional or maxout"
        yield (
            f"`model.tie_embeddings` = {model.tie_embeddings} needs a readout as wide as "
            f"`model.d_model` ({model.d_model}), but it is {_readout_width(model)} wide; change "
            f"{change}, or set `model.tie_embeddings` to none"
        )


def _no_attention(model: "ModelConfig") -> Iterator[str]:
    """Check that nothing needs a context where there is none."""
    recurrent = model.recurrent
    wanted = {
        "query": ("current",),
        "feed_layers": ("first",),
        "readout": ("state", "attentional", "maxout"),
        "feed": ("none",) if recurrent.readout == "state" else ("none", "readout"),
    }
    for name, allowed in wanted.items():
        if getattr(recurrent, name) not in allowed:
            yield (
                f"`model.recurrent.{name}` must be {listed(allowed)} without attention "
                f"(`model.recurrent.score` = none), but {getattr(recurrent, name)} came"
            )


def _attention(model: "ModelConfig") -> Iterator[str]:
    """Check what attention compares, and that it changes something."""
    recurrent, width = model.recurrent, _state(model, "decoder")
    if recurrent.readout == "state" and recurrent.feed != "context":
        yield (
            "`model.recurrent.feed` must be context if `model.recurrent.readout` is state, because "
            f"attention would change nothing otherwise, but {recurrent.feed} came"
        )
    if recurrent.feed == "none" and recurrent.feed_layers == "all":
        yield "`model.recurrent.feed_layers` must be first if nothing is fed, but all came"
    if recurrent.query == "previous" and model.encoder in _ONE_STATE:
        yield (
            f"`model.recurrent.query` must be current if `model.encoder` is {model.encoder}, "
            "because all positions of it are alike, but previous came"
        )
    if recurrent.score == "dot" and width != memory_width(model):
        yield (
            "`model.recurrent.score` = dot needs states of the encoder and of the decoder of one "
            f"width, but they are {memory_width(model)} and {width} wide; change a hidden_size, "
            "or choose general"
        )


def _start(model: "ModelConfig") -> Iterator[str]:
    """Check the decoder's first state."""
    start, direction = model.recurrent.start, model.recurrent.direction
    if start == "zero" and model.recurrent.score == "none":
        yield (
            "`model.recurrent.start` must not be zero without attention (`model.recurrent.score` = "
            "none), because the decoder would know nothing of the source, but zero came; mean fits "
            "any encoder"
        )
    if model.recurrent.projection_size is not None and start not in ("zero", "final"):
        yield (
            "`model.recurrent.start` must be zero or final if `model.recurrent.projection_size` is "
            f"set, because h and c are then of two widths, but {start} came"
        )
    if start in ("zero", "mean"):
        return
    if model.encoder != "recurrent":
        yield (
            "`model.recurrent.start` must be zero or mean after an encoder that is not recurrent "
            f"(`model.encoder` is {model.encoder}), but {start} came"
        )
        return
    top_is_both = direction in ("bidirectional", "interleaved") or (
        direction == "first-bidirectional" and model.encoder_layers == 1
    )
    if start == "backward" and not top_is_both:
        yield (
            "`model.recurrent.start` = backward needs an encoder whose top layer reads both ways, "
            f"but `model.recurrent.direction` is {direction}"
        )
    encoder, decoder = _hidden(model, "encoder"), _hidden(model, "decoder")
    fitting = {encoder, 2 * encoder} if start == "last" and top_is_both else {encoder}
    if start in ("last", "final") and decoder not in fitting:
        both = " or of both directions together" if len(fitting) > 1 else ""
        yield (
            f"`model.recurrent.start` = {start} needs layers of encoder and decoder of one width"
            f"{both}, but they are {encoder} and {decoder} wide; bridge fits any"
        )
    if start == "final" and model.encoder_layers != model.decoder_layers:
        yield (
            "`model.recurrent.start` = final needs as many layers in the encoder as in the "
            f"decoder, but there are {model.encoder_layers} and {model.decoder_layers}"
        )


def _hidden(model: "ModelConfig", side: str) -> int:
    """Width of the states of one direction."""
    own: int | None = getattr(model.recurrent, f"{side}_hidden_size")
    return own or model.recurrent.hidden_size or model.d_model


def _state(model: "ModelConfig", side: str) -> int:
    """Width of h of one direction."""
    return model.recurrent.projection_size or _hidden(model, side)


def memory_width(model: "ModelConfig") -> int:
    """Width of the encoder's states, as `heedful.model.recurrent.wiring` builds them."""
    if model.encoder != "recurrent":
        return model.d_model
    recurrent, width = model.recurrent, _state(model, "encoder")
    columns = 2 if recurrent.direction == "interleaved" else 1
    if recurrent.fast_forward:
        gates = {"lstm": 4, "gru": 3, "rnn": 1}[recurrent.cell] * width
        return columns * (width + gates) // 4
    first_only = recurrent.direction == "first-bidirectional" and model.encoder_layers > 1
    return width if recurrent.direction == "forward" or first_only else 2 * width


def _readout_width(model: "ModelConfig") -> int:
    """Width of what meets the output matrix."""
    recurrent, width = model.recurrent, _state(model, "decoder")
    if recurrent.readout == "state":
        return width
    if recurrent.readout == "state-context":
        return width + memory_width(model)
    return recurrent.readout_size or width
