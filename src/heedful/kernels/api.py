"""
The interface of the kernels, from which the rest of heedful imports them.

Each function has a plain equivalent in documented functions of torch, and tests compare the two.
"""

# ruff: noqa: F401  # the names are for importers

from heedful.kernels.add_norm import add_and_normalize, has_add_norm
from heedful.kernels.attention import (
    SHORT,
    Packing,
    cached_attention,
    leaves_padding_out,
    short_attention,
    use_cpu_kernel,
)
from heedful.kernels.dropout import Dropout
from heedful.kernels.fusion import fuse_kernels
from heedful.kernels.graphs import Graph
from heedful.kernels.linear import (
    LINEAR_FACTORIES,
    Int8Linear,
    Linear,
    LinearFactory,
    bias_gradient,
    can_prepack,
    join,
    linear,
    lookup,
    split,
)
from heedful.kernels.loss import (
    chunk_rows,
    chunked_loss,
    softmax_kind,
)
from heedful.kernels.masked_loss import masked_loss
from heedful.kernels.native.compile import processor_flags
from heedful.kernels.native.layers import (
    NATIVE_ACTIVATIONS,
    ROWS_OF_A_BLOCK,
    AttendedStates,
    NativeLayers,
    best_continuations,
    best_of_rows,
    log_probabilities,
)
from heedful.kernels.native.product import (
    NativeBf16Linear,
    NativeFp32Linear,
    NativeInt8Linear,
    NativeLinear,
    can_multiply,
    can_multiply_bf16,
    compiled_origin,
    is_plain,
    kernels_kind,
    native_products,
    why_not_native,
)
from heedful.kernels.operations import (
    Arguments,
    is_product,
    observe_operations,
    operation_name,
    products_in_turn,
    tensors_in,
)
from heedful.kernels.pair_loss import PairFactors, chunked_pair_loss
from heedful.kernels.product_rates import measured_rates, remembered_rates, resolve_precision
from heedful.kernels.recurrent import (
    can_flatten,
    flatten_weights,
    lstm_cell,
    sigmoid_gradient,
    wants_flat_weights,
)
from heedful.kernels.rotation import can_rotate, rotate
from heedful.kernels.torch_internals import (
    approach_all,
    change_count,
    copy_all,
    fused_scaling,
    kernels_choice,
    scale_all,
)
from heedful.kernels.varlen import UP_TO_ITSELF, PackedRows, has_packed_kernel, packed_attention
