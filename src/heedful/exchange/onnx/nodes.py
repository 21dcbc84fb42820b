"""
A builder for ONNX graphs: operators, constants and weights with unique names.

Names show their place in the model, such as ``decoder.layers.0/MatMul_17``.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from heedful._version import __version__
from heedful.exchange.extras import import_extra

OPSET = 18
"""The operator set, from the end of 2022; onnxruntime has supported it since 1.14."""
_IR = 8  # the version of the file format from 2022
# A protocol buffer has at most two gibibytes; larger weights need a second file.
_LARGEST = 1_900_000_000

Tensors = Mapping[str, str]
"""The axes of each tensor by its name, such as ``{"source": "rows source"}``."""


class Nodes:
    """A builder of an ONNX graph that stores a shared weight once, so tied weights stay tied."""

    def __init__(self) -> None:
        self.place = ""
        self._onnx: Any = import_extra("onnx", "writing ONNX graphs")
        self.types: Any = self._onnx.TensorProto
        self._nodes: list[Any] = []
        self._stored: dict[tuple[Any, ...], Any] = {}
        self._kept: list[Tensor] = []

    def add(self, kind: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        """Add an operator."""
        name = f"{self.place}/{kind}_{len(self._nodes)}"
        node = self._onnx.helper.make_node(kind, inputs, [out or name], name, **attributes)
        self._nodes.append(node)
        return out or name

    def constant(self, value: Any) -> str:
        """Store a constant."""
        array = np.array(value, dtype=None if hasattr(value, "dtype") else np.int64)
        key = (array.dtype.str, array.shape, array.tobytes())
        return self._store(key, array, f"constant_{len(self._stored)}")

    def weight(self, tensor: Tensor) -> str:
        """Store a weight in fp32."""
        # Keep a reference, so that no other tensor gets the same address.
        self._kept.append(tensor)
        key = (tensor.data_ptr(), tensor.shape, tensor.stride())
        array = np.ascontiguousarray(tensor.detach().float().cpu().numpy())
        return self._store(key, array, f"{self.place}/weight_{len(self._stored)}")

    def save(
        self, path: Path, name: str, inputs: Tensors, outputs: Tensors, metadata: Mapping[str, str]
    ) -> None:
        """Check and write the graph; a graph that is too large for one file is not checked."""
        helper = self._onnx.helper
        weights = list(self._stored.values())
        graph = helper.make_graph(
            self._nodes, name, self._declare(inputs), self._declare(outputs), weights
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=_IR,
            producer_name="heedful",
            producer_version=__version__,
        )
        helper.set_model_props(model, dict(metadata))
        large = sum(weight.ByteSize() for weight in weights) > _LARGEST
        if not large:
            self._onnx.checker.check_model(model, full_check=True)
        self._onnx.save(
            model,
            path,
            save_as_external_data=large,
            location=f"{path.name}.data" if large else None,
        )

    def _store(self, key: tuple[Any, ...], array: np.ndarray, name: str) -> str:
        """Store an array unless it is already stored."""
        if key not in self._stored:
            self._stored[key] = self._onnx.numpy_helper.from_array(array, name)
        return str(self._stored[key].name)

    def _declare(self, tensors: Tensors) -> list[Any]:
        """Declare inputs or outputs; an axis whose name is a number has this fixed size."""
        return [
            self._onnx.helper.make_tensor_value_info(name, self._type(name), _shape(axes.split()))
            for name, axes in tensors.items()
        ]

    def _type(self, name: str) -> int:
        """Return the type of an input or output by its name: ids, a mask, or numbers."""
        ids, mask = self.types.INT64, self.types.BOOL
        kinds = {"source": ids, "tokens": ids, "memory_mask": mask}
        return int(kinds.get(name, self.types.FLOAT))


def _shape(axes: Sequence[str]) -> list[int | str]:
    """Convert numeric axis names to numbers."""
    return [int(axis) if axis.isdecimal() else axis for axis in axes]
