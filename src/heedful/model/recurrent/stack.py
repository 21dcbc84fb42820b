"""What recurrent encoders and decoders share: their first weights, and how these are counted."""

import torch
from torch import Tensor, nn

from heedful.model.initial_weights import glorot, table, uniform
from heedful.model.memory import Initialised
from heedful.model.recurrent.cells import RecurrentLayer
from heedful.model.recurrent.wiring import RecurrentWiring


class RecurrentStack(nn.Module, Initialised):
    """What recurrent encoders and decoders share."""

    def __init__(self, wiring: RecurrentWiring) -> None:
        super().__init__()
        self.wiring = wiring

    def initialise(self, generator: torch.Generator) -> None:
        """
        Draw all weights but the number g of a score.

        Uniform within a range, as in Luong et al. 2015, or Glorot's for each gate on its own, as in
        Joey NMT.
        """
        wiring = self.wiring
        for name, weight in self.named_parameters():
            if weight.dim() == 0:
                continue
            if wiring.initialisation == "uniform":
                uniform(weight, wiring.initial_range, generator)
            elif weight.dim() == 1 and not name.endswith("energy"):
                nn.init.zeros_(weight)
            else:
                matrix = weight.view(len(weight), -1)
                for gate in matrix.split(wiring.hidden_size if ".rnn." in name else len(weight)):
                    glorot(gate, generator)
        for layer in self.modules():
            if isinstance(layer, RecurrentLayer) and layer.cell == "lstm":
                for name, weight in layer.named_parameters():
                    if "bias_ih" in name:  # the other bias is added to this one
                        weight.data[layer.width : 2 * layer.width] += wiring.forget_bias

    def initialise_table(self, weight: Tensor, generator: torch.Generator) -> None:
        """Draw a table as the other weights, or as a Transformer's."""
        if self.wiring.initialisation == "uniform":
            uniform(weight, self.wiring.initial_range, generator)
        else:
            table(weight, generator)

    def weights_of_position(self) -> int:
        """Count the weights of products at each position: all but those of the start state."""
        return sum(
            weight.numel()
            for name, weight in self.named_parameters()
            if weight.dim() == 2 and "start_proj" not in name
        )
