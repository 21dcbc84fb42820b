"""The learning rate schedule: equation 3 of the paper (section 5.3)."""


def learning_rate(step: int, d_model: int, warmup: int, factor: float = 1.0) -> float:
    """
    Compute the learning rate of a step.

    Parameters
    ----------
    step : int
        Number of the step, counted from 1.
    d_model : int
        Width of the model.
    warmup : int
        Steps over which the rate rises.
    factor : float, default 1.0
        Multiplies the whole schedule; the paper has none.

    Returns
    -------
    float
        ``factor * d_model^-0.5 * min(step^-0.5, step * warmup^-1.5)``.

    Notes
    -----
    Rises linearly, then falls with the inverse square root of the step; the peak, at ``step ==
    warmup``, is ``factor * (d_model * warmup)^-0.5``. The authors' code counts steps from 0 and
    adds one, which is the same.
    """
    return float(factor * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))
