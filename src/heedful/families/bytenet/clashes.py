"""Incompatible settings of ByteNet."""

from collections.abc import Iterator

from heedful.families.bytenet.config import ByteNetConfig
from heedful.settings.model import ModelSettings


def bytenet_clashes(model: ModelSettings, memory: int) -> list[str]:
    """List invalid settings, each with a correction. `memory`: width of the encoder's states."""
    return [*_blocks(model), *_join(model, memory)]


def _blocks(model: ModelSettings) -> Iterator[str]:
    """Check the sizes of blocks and kernels."""
    bytenet = model.part(ByteNetConfig)
    if bytenet.channels is None and model.d_model % 2:
        yield (
            "`model.d_model` must be even if `model.bytenet.channels` is none, because half of "
            f"`model.d_model` is the width inside a block, but got {model.d_model}"
        )
    if bytenet.max_dilation & (bytenet.max_dilation - 1):
        below = 1 << (bytenet.max_dilation.bit_length() - 1)
        yield (
            "`model.bytenet.max_dilation` must be a power of two, because dilations double, but "
            f"got {bytenet.max_dilation}; the nearest are {below} and {2 * below}"
        )
    kernels = {
        getattr(bytenet, f"{side}_kernel")
        for side in ("encoder", "decoder")
        if getattr(model, side) == "bytenet"
    }
    if kernels == {1} and bytenet.max_dilation != type(bytenet)().max_dilation:
        yield (
            "`model.bytenet.max_dilation` has an effect only with a kernel wider than one "
            "position, but all kernels have width 1; leave it out, or widen a kernel"
        )
    if model.encoder == "bytenet" and bytenet.encoder_kernel % 2 == 0:
        yield (
            "`model.bytenet.encoder_kernel` must be odd, because it covers both sides of a "
            f"position equally, but got {bytenet.encoder_kernel}"
        )


def _join(model: ModelSettings, memory: int) -> Iterator[str]:
    """Check that states and embeddings have the same width if they are summed."""
    if model.decoder != "bytenet" or model.part(ByteNetConfig).join != "summed":
        return
    if memory != model.d_model:
        yield (
            "`model.bytenet.join` = summed needs states of the encoder as wide as "
            f"`model.d_model` ({model.d_model}), but they are {memory} wide; concatenated accepts "
            "any width"
        )
