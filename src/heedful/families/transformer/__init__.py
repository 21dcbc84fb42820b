"""The Transformer, as one family among others; its modules are `heedful.model`."""

from heedful.families.family import Family


class TransformerFamily(Family):
    """The paper's model."""

    encoders = decoders = ("transformer",)
    traits = frozenset({"layers", "positions", "networks"})
    builder = "heedful.model.build"


FAMILY = TransformerFamily()
