"""
A convolution in place of an encoder's self-attention.

::

    y_i = Σ_d W_d x_{i+d} + b      d from -⌊r/2⌋ to ⌊r/2⌋

Attention weighs neighbors by their content. A convolution weighs them by their position, with one
linear map for each relative position.
"""

from jaxtyping import Float
from torch import Generator, Tensor, nn

from heedful.arguments import check_counts, checked
from heedful.errors import SettingError
from heedful.families.convolution import Convolution
from heedful.model.flops import RowLengths
from heedful.model.initial_weights import glorot
from heedful.model.layout import Layout, pad
from heedful.model.parts import Mixer, check_mixed


class RelativeMaps(Mixer):
    """
    One linear map for each of `width` relative positions; `width` is odd.

    This is a centered convolution with a kernel of this width. Beyond the ends of a sentence there
    are zeros.
    """

    @checked
    def __init__(self, d_model: int, width: int) -> None:
        super().__init__()
        check_counts(d_model=d_model, width=width)
        if width % 2 == 0:
            raise SettingError(
                f"`width` must be odd, to cover both sides of a position equally, but got {width}."
            )
        self.d_model = d_model
        self.convolution = Convolution(d_model, d_model, width)

    def forward(
        self,
        queries_from: Float[Tensor, "batch time d_model"],
        keys_from: Float[Tensor, "batch time d_model"],
        layout: Layout | Tensor | None = None,
    ) -> tuple[Float[Tensor, "batch time d_model"], None]:
        """
        Map each position's neighbors and sum the results; padding counts as zero.

        Both arguments must be the same sequence, as in self-attention. Returns new states, and None
        in place of weights.
        """
        layout = Layout.of(layout)
        check_mixed("RelativeMaps", self.d_model, queries_from, keys_from, layout.mask)
        x = pad(queries_from, layout.query_packing)
        if layout.mask is not None:
            x = x.masked_fill(~layout.mask[:, 0, 0].unsqueeze(2), 0.0)
        out = self.convolution(x)
        return (out if layout.query_packing is None else layout.query_packing.pack(out)), None

    def initialize(self, generator: Generator) -> None:
        """Draw weights within Glorot's bound for the matrix from all neighbors to one position."""
        glorot(self.convolution.weight.flatten(1), generator)
        nn.init.zeros_(self.convolution.bias)

    def flops(self, lengths: RowLengths, leaves_out: bool) -> int:
        """Count the operations for all rows, including restored padding."""
        del leaves_out
        return 2 * self.convolution.weight.numel() * int(lengths.places.sum())
