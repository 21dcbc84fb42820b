"""Claims that are equations: both sides are computed and compared."""

from collections.abc import Sequence
from decimal import ROUND_CEILING, Context

import numpy as np
import torch

from heedful.families.convolution import Convolution
from heedful.model.embedding import SINUSOIDS
from heedful.paper.claims.statement import Measured
from heedful.visualise.size_curves import SizeCurve, SizePanel

_D_MODEL, _LENGTH = 64, 40
_EXACT, _SINGLE = 1e-9, 1e-6


def measure_convolution() -> Measured:
    """Compare a convolution with a sum of linear maps, one for each relative position."""
    widths, errors = (1, 3, 5, 9), []
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(2, _LENGTH, _D_MODEL, generator=generator, dtype=torch.float64)
    for width in widths:
        maps = Convolution(_D_MODEL, _D_MODEL, width).double()
        weight = maps.weight.detach()  # (outputs, kernel, inputs)
        summed = maps.bias.detach().expand_as(x).clone()
        for place in range(width):
            offset = place - width // 2
            rows = slice(max(0, -offset), _LENGTH - max(0, offset))
            read = slice(max(0, offset), _LENGTH - max(0, -offset))
            summed[:, rows] += x[:, read] @ weight[:, place].T
        errors.append(float((maps(x).detach() - summed).abs().max()))
    panel = _differences("kernel", widths, errors)
    return Measured(
        [max(errors) < _EXACT],
        [
            "A convolution and a sum of linear maps, one for each relative position, differ by at "
            f"most {_round_up(max(errors))}."
        ],
        "The sum of one map for each relative position equals the convolution to within "
        f"{_round_up(max(errors))}.",
        (panel,),
    )


def measure_shift() -> Measured:
    """Compare shifted sinusoids with sinusoids rotated by angles that depend only on the shift."""
    distances, errors = (1, 4, 16, 64), []
    positions = np.arange(512)
    rates = 10_000.0 ** (-np.arange(0, _D_MODEL, 2) / _D_MODEL)
    angles = np.outer(np.arange(1024), rates)
    table = np.stack((np.sin(angles), np.cos(angles)), axis=2).reshape(1024, _D_MODEL)
    ours = SINUSOIDS["interleaved"](0, 1024, _D_MODEL).double().numpy()
    rounded = float(np.abs(ours - table).max())
    for distance in distances:
        sine, cosine = table[positions, 0::2], table[positions, 1::2]
        turn = distance * rates  # the angle, which does not depend on the position
        turned = np.empty_like(table[positions])
        turned[:, 0::2] = sine * np.cos(turn) + cosine * np.sin(turn)
        turned[:, 1::2] = cosine * np.cos(turn) - sine * np.sin(turn)
        errors.append(float(np.abs(turned - table[positions + distance]).max()))
    panel = _differences("distance", distances, errors)
    return Measured(
        [max(errors) < _EXACT, rounded < _SINGLE],
        [
            "The rotated encoding of pos and the encoding of pos + k differ by at most "
            f"{_round_up(max(errors))}.",
            f"A model's table differs from the exact encodings by up to {_round_up(rounded)}.",
        ],
        "One rotation for each distance, the same at all 512 positions, gives the encoding of "
        f"the later position to within {_round_up(max(errors))} in double precision. A model's "
        "table of encodings is in single precision, and differs from the exact encodings by at "
        f"most {_round_up(rounded)}.",
        (panel,),
    )


def _round_up(limit: float) -> str:
    """Round an upper limit up to two significant digits, so that it remains an upper limit."""
    return f"{Context(2, ROUND_CEILING).create_decimal_from_float(limit):.1e}"


def _differences(axis: str, sizes: tuple[int, ...], errors: Sequence[float]) -> SizePanel:
    """Build a panel of the differences between the two sides, where rounding errors count as 0."""
    curve = SizeCurve("difference", tuple(errors))
    return SizePanel(axis, sizes, (curve,), "difference", allowed=_EXACT)
