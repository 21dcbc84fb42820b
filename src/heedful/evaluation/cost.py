"""
Training cost in floating-point operations.

There are two measures. The paper multiplies the training time by the number of GPUs and an estimate
of the sustained capacity of each (Table 2 and its footnote). This product measures the use of the
machine. The other measure counts the operations of the model, from its shapes and the lengths of
its batches.

Only matrix products are counted, with two operations for each multiply-add, as is usual (Kaplan et
al. 2020, “Scaling Laws for Neural Language Models”, section 2.1). Sums, norms, softmax and the
update of the weights are omitted, and would add a few percent. Embedding lookups need no
multiplication. The backward pass has two matrix products for each matrix product of the forward
pass: the gradients of input and weights, or of both inputs in attention.

Each encoder and decoder states which of its matrix products it also computes for padding
(`heedful.model.contracts`). Padding that is removed is not counted.
"""

# Section 6.1, footnote 5: “2.8, 3.7, 6.0 and 9.5 TFLOPS for K80, K40, M40 and P100, respectively”.
SUSTAINED_TFLOPS = {"K80": 2.8, "K40": 3.7, "M40": 6.0, "P100": 9.5}
Number = int | float


def paper_flops(hours: Number, devices: int, sustained_tflops: float) -> float:
    """
    Estimate the cost of a training run as the paper does.

    Section 6.1: “multiplying the training time, the number of GPUs used, and an estimate of the
    sustained single-precision floating-point capacity of each GPU”.

    The base and the big model of Table 2, 12 hours and 3.5 days on eight P100 GPUs:

    >>> f"{paper_flops(12, 8, SUSTAINED_TFLOPS['P100']):.1e}"
    '3.3e+18'
    >>> f"{paper_flops(3.5 * 24, 8, SUSTAINED_TFLOPS['P100']):.1e}"
    '2.3e+19'
    """
    return hours * 3600 * devices * sustained_tflops * 1e12
