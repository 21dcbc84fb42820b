"""
Training cost in floating-point operations.

Two ways to say it. The paper multiplies the training time by the number of GPUs and an estimate of
what each sustains (Table 2 and its footnote); that measures the machine that was used up. The other
way counts what the model computes, from its shapes and the lengths of its batches; that measures
the model.

Counted are products, a multiply-add as two operations, as everybody counts them (Kaplan et al.
2020, “Scaling Laws for Neural Language Models”, section 2.1). Sums, norms, softmax and the update
of the weights are a few percent more and left out; looking an embedding up multiplies nothing. The
backward pass has two products for each one of the forward pass: the gradients of input and weights,
or of both inputs in attention.

Each encoder and decoder says which of its products it computes for padding too
(`heedful.model.contracts`). Where it removes padding, none is counted.
"""

# Section 6.1, footnote 5: “2.8, 3.7, 6.0 and 9.5 TFLOPS for K80, K40, M40 and P100, respectively”.
SUSTAINED_TFLOPS = {"K80": 2.8, "K40": 3.7, "M40": 6.0, "P100": 9.5}
Number = int | float


def paper_flops(hours: Number, devices: int, sustained_tflops: float) -> float:
    """
    Estimate the cost of a training as the paper does.

    Section 6.1: “multiplying the training time, the number of GPUs used, and an estimate of the
    sustained single-precision floating-point capacity of each GPU”.

    The base and the big model of Table 2, 12 hours and 3.5 days on eight P100:

    >>> f"{paper_flops(12, 8, SUSTAINED_TFLOPS['P100']):.1e}"
    '3.3e+18'
    >>> f"{paper_flops(3.5 * 24, 8, SUSTAINED_TFLOPS['P100']):.1e}"
    '2.3e+19'
    """
    return hours * 3600 * devices * sustained_tflops * 1e12
