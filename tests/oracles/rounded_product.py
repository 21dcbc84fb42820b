"""A product whose inputs and weights are rounded, as the formula says, summed in fp64."""

from torch import Tensor, nn

from heedful.machine.processor import int8_levels


class RoundedProduct(nn.Module):
    """Rounds to 8 bits with a scale for each row and each output, or to bf16."""

    def __init__(self, weight: Tensor, bias: Tensor | None, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.weight = self._round(weight.detach().double())
        self.bias = None if bias is None else bias.detach().double()

    def _round(self, rows: Tensor) -> Tensor:
        if self.kind == "bf16":
            return rows.bfloat16().double()
        step = rows.abs().amax(dim=-1, keepdim=True).clamp(min=1e-12) / int8_levels()
        return (rows / step).round() * step

    def forward(self, x: Tensor, relu: bool = False) -> Tensor:
        rounded = self._round(x.double())
        out = nn.functional.linear(rounded, self.weight, self.bias).float()
        return out.relu() if relu else out
