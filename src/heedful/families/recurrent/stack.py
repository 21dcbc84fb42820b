"""Common parts of recurrent encoders and decoders: initial weights and counts of operations."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from heedful.families.recurrent.cells import RecurrentLayer
from heedful.families.recurrent.wiring import RecurrentWiring
from heedful.kernels.api import Dropout
from heedful.model.flops import RowLengths
from heedful.model.initial_weights import glorot, table
from heedful.model.parts import Network
from heedful.model.weights import Initialized


class RecurrentStack(nn.Module, Initialized):
    """The common base of recurrent encoders and decoders."""

    def __init__(self, wiring: RecurrentWiring) -> None:
        super().__init__()
        self.wiring = wiring
        self.layer_dropout = Dropout(wiring.layer_dropout)
        self.mixtures = nn.ModuleDict()  # checkpoints use this name for networks of every family

    def initialize(self, generator: torch.Generator) -> None:
        """
        Initialize all weights except the factor g of a score and the weights of mixtures.

        The distribution is uniform within a range, as in Luong et al. 2015, or within Glorot's
        bound for each gate separately, as in Joey NMT.
        """
        wiring = self.wiring
        for name, weight in self.named_parameters():
            if weight.dim() == 0 or name.startswith("mixtures."):  # not drawn here
                continue
            if wiring.initialisation == "uniform":
                _draw_uniformly(weight, wiring.initial_range, generator)
            elif weight.dim() == 1 and not name.endswith("energy"):
                nn.init.zeros_(weight)
            else:
                matrix = weight.view(len(weight), -1)
                for gate in matrix.split(wiring.hidden_size if ".rnn." in name else len(weight)):
                    glorot(gate, generator)
        for layer in self.modules():
            if isinstance(layer, RecurrentLayer) and layer.cell == "lstm":
                for name, weight in layer.named_parameters():
                    if "bias_ih" in name:  # its sum with bias_hh is the gate's bias
                        weight.data[layer.width : 2 * layer.width] += wiring.forget_bias

    def initialize_table(self, weight: Tensor, generator: torch.Generator) -> None:
        """Draw an embedding table like the weights; with Glorot's bound, as in a Transformer."""
        if self.wiring.initialisation == "uniform":
            _draw_uniformly(weight, self.wiring.initial_range, generator)
        else:
            table(weight, generator)

    def flops_of_layers(self, layers: nn.Module, lengths: RowLengths) -> int:
        """Count the operations of recurrent layers and networks, which never compute padding."""
        tokens = int(lengths.tokens.sum())
        weights = sum(weight.numel() for weight in layers.parameters() if weight.dim() == 2)
        above = sum(
            network.flops(tokens)
            for network in self.mixtures.modules()
            if isinstance(network, Network)
        )
        return 2 * weights * tokens + above

    def add_networks(self, widths: Sequence[int]) -> None:
        """Build the networks on top of the layers. `widths`: output width of each layer."""
        build, layers = self.wiring.networks
        for number, width in enumerate(widths, start=1):
            if build is not None and number in layers:
                self.mixtures[str(number)] = build(width)

    def add_residual(self, number: int, out: Tensor, below: Tensor) -> Tensor:
        """Add a layer's input to its output, if the layer has a residual connection."""
        begin = self.wiring.residual_from
        return out if begin is None or number < begin else out + below

    def mix(self, number: int, x: Tensor, real: Tensor | None = None) -> Tensor:
        """Apply the network on top of a layer, if there is one."""
        if str(number) not in self.mixtures:
            return x
        out = self.mixtures[str(number)](self.layer_dropout(x), real)
        return self.add_residual(number, out, x)


@torch.no_grad()
def _draw_uniformly(weight: Tensor, bound: float, generator: torch.Generator) -> None:
    """Draw from -bound to bound."""
    weight.uniform_(-bound, bound, generator=generator)
