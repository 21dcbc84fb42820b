"""
Learning rates: equation 3 of the paper (section 5.3), and those of other recipes.

Each function gives the rate of a step, counted from 1. All but the paper's rise linearly to a peak
over the warm-up, as equation 3 does: the first step has ``peak / warmup`` (Hugging Face's has 0).
"""

import math


def paper_rate(step: int, d_model: int, warmup: int, factor: float = 1.0) -> float:
    """Compute equation 3: ``factor * d_model^-0.5 * min(step^-0.5, step * warmup^-1.5)``."""
    # The peak, at ``step == warmup``, is ``factor * (d_model * warmup)^-0.5``. The authors' code
    # counts steps from 0 and adds one, which is the same.
    return float(factor * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))


def constant_rate(step: int, peak: float, warmup: int = 0) -> float:
    """Compute ``peak * min(1, step / warmup)``."""
    return peak * step / warmup if step < warmup else peak


def inverse_sqrt_rate(step: int, peak: float, warmup: int, minimum: float = 0.0) -> float:
    """Compute ``peak * (warmup / step)^0.5`` after the warm-up."""
    # Equal to `paper_rate` for ``peak = (d_model * warmup)^-0.5``; fairseq's ``inverse_sqrt`` has
    # the same decay.
    if step < warmup:
        return constant_rate(step, peak, warmup)
    return max(minimum, peak * math.sqrt(warmup / step))


def cosine_rate(step: int, peak: float, warmup: int, steps: int, minimum: float = 0.0) -> float:
    """Compute half a cosine wave, from the peak at step `warmup` to the minimum at step `steps`."""
    # Loshchilov and Hutter 2017, equation 5, without restarts. After the last step the rate stays.
    if step < warmup:
        return constant_rate(step, peak, warmup)
    progress = min(1.0, (step - warmup) / max(1, steps - warmup))
    return minimum + (peak - minimum) * (1.0 + math.cos(math.pi * progress)) / 2.0


def decayed_rate(
    step: int,
    peak: float,
    warmup: int,
    decays: int,
    decay_factor: float = 0.5,
    minimum: float = 0.0,
) -> float:
    """Compute ``peak * decay_factor^decays``; `decays`: those of schedules step and plateau."""
    lowered = peak * decay_factor**decays
    if step < warmup:
        return constant_rate(step, lowered, warmup)
    return max(minimum, lowered)


def decays_before(step: int, decay_start: int, decay_steps: int) -> int:
    """Count the decays of schedule step: 0 up to `decay_start`, 1 in the next `decay_steps`, …."""
    return max(0, -(-(step - decay_start) // decay_steps))
