"""
ConvS2S in NumPy, one sentence at a time, written from the equations (Gehring et al. 2017).

Works on arrays by name: `weight` (outputs, kernel, inputs), `gain` and `bias` of each layer.
"""

import numpy as np


def layer(weights, name, x, causal=False):
    """Convolve a sentence, shape (time, inputs), position by position."""
    weight, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
    outputs, kernel, _ = weight.shape
    if f"{name}.gain" in weights:  # w = g v / |v|
        norms = np.sqrt((weight**2).sum((1, 2)))
        weight = weight * (weights[f"{name}.gain"] / norms)[:, None, None]
    first = kernel - 1 if causal else (kernel - 1) // 2
    out = np.empty((len(x), outputs))
    for place in range(len(x)):
        out[place] = bias
        for tap in range(kernel):
            read = place + tap - first
            if 0 <= read < len(x):
                out[place] += weight[:, tap] @ x[read]
    return out


def glu(x):
    """Multiply one half by the sigmoid of the other."""
    a, b = np.split(x, 2, axis=1)
    return a / (1 + np.exp(-b))


def stack(weights, side, layers, embeddings, attend=None):
    """fc1, the layers, fc2; `layers` are triples (channels, kernel, how far below it adds)."""
    inputs = [layer(weights, f"{side}.fc1", embeddings)]
    for number, (_, _, below) in enumerate(layers):
        causal = side == "decoder"
        y = glu(layer(weights, f"{side}.convolutions.{number}", inputs[-1], causal))
        if attend is not None:
            y = attend(number, y)
        if below:
            residual = inputs[-below]
            if f"{side}.projections.{number}.weight" in weights:
                residual = layer(weights, f"{side}.projections.{number}", residual)
            y = (y + residual) * np.sqrt(0.5)
        inputs.append(y)
    return layer(weights, f"{side}.fc2", inputs[-1])


def states(weights, source, target, encoder_layers, decoder_layers, attending):
    """
    Run both sides on embedded tokens, positions included; `attending` counts layers from 1.

    Returns what meets the output matrix, and the attention of each layer that attends.
    """
    keys = stack(weights, "encoder", encoder_layers, source)
    values = (keys + source) * np.sqrt(0.5)
    recorded = []

    def attend(number, y):
        name = f"decoder.attention.{number}"
        if number + 1 not in attending:
            return y
        queries = (layer(weights, f"{name}.in_proj", y) + target) * np.sqrt(0.5)
        scores = queries @ keys.T
        shares = np.exp(scores - scores.max(1, keepdims=True))
        shares /= shares.sum(1, keepdims=True)
        recorded.append(shares)
        m = len(source)
        context = m * np.sqrt(1 / m) * (shares @ values)
        return (layer(weights, f"{name}.out_proj", context) + y) * np.sqrt(0.5)

    return stack(weights, "decoder", decoder_layers, target, attend), recorded
