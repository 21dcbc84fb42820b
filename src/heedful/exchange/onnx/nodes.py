"""
A growing ONNX graph: operators, constants and weights, each under a name of its own.

Names tell where they belong, ``decoder.layers.0/MatMul_17``, so that a drawing of the graph can be
read beside the model.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from heedful._version import __version__
from heedful.exchange.formats import import_extra

OPSET = 18
"""The set of operators: of the end of 2022, known to onnxruntime since 1.14."""
_IR = 8  # the file format of that time
# A file of protocol buffers ends at two gibibytes; larger weights lie in a file beside the graph.
_LARGEST = 1_900_000_000

Tensors = Mapping[str, str]
"""Names of tensors and of their axes, such as ``rows source``."""


class Nodes:
    """
    Collect operators, constants and weights.

    Attributes
    ----------
    place : str
        What is being written down, for the names that come next.

    Notes
    -----
    A constant or weight that is there already is not stored twice, so what is tied stays one.
    """

    def __init__(self) -> None:
        self.place = ""
        self._onnx: Any = import_extra("onnx", "writing ONNX graphs")
        self._nodes: list[Any] = []
        self._stored: dict[tuple[Any, ...], Any] = {}
        self._kept: list[Tensor] = []

    @property
    def single(self) -> int:
        """How ONNX calls fp32."""
        return int(self._onnx.TensorProto.FLOAT)

    @property
    def double(self) -> int:
        """How ONNX calls double precision."""
        return int(self._onnx.TensorProto.DOUBLE)

    def add(self, kind: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        """
        Add an operator.

        Parameters
        ----------
        kind : str
            Which.
        *inputs : str
            Names of tensors.
        out : str, default ''
            Name of its result; made up when empty.
        **attributes : object
            Its settings.

        Returns
        -------
        str
            Name of its result.

        Notes
        -----
        Every operator used here has one result.
        """
        name = f"{self.place}/{kind}_{len(self._nodes)}"
        node = self._onnx.helper.make_node(kind, inputs, [out or name], name, **attributes)
        self._nodes.append(node)
        return out or name

    def constant(self, value: Any) -> str:
        """
        Store a number or a few.

        Parameters
        ----------
        value : number, sequence of int, or ndarray
            A sequence becomes 64-bit whole numbers, as shapes and axes are.

        Returns
        -------
        str
            Its name.

        Notes
        -----
        Scalars have no axis.
        """
        array = np.array(value, dtype=None if hasattr(value, "dtype") else np.int64)
        key = (array.dtype.str, array.shape, array.tobytes())
        return self._store(key, array, f"constant_{len(self._stored)}")

    def weight(self, tensor: Tensor) -> str:
        """
        Store a weight.

        Parameters
        ----------
        tensor : Tensor of float
            A parameter, or a view of one.

        Returns
        -------
        str
            Its name.

        Notes
        -----
        In fp32.
        """
        self._kept.append(tensor)  # so that no other tensor comes to lie at its address
        key = (tensor.data_ptr(), tensor.shape, tensor.stride())
        array = np.ascontiguousarray(tensor.detach().float().cpu().numpy())
        return self._store(key, array, f"{self.place}/weight_{len(self._stored)}")

    def save(
        self, path: Path, name: str, inputs: Tensors, outputs: Tensors, metadata: Mapping[str, str]
    ) -> None:
        """
        Check and write the graph: the axes by the names of what goes in and comes out.

        Weights above two gibibytes lie beside it in a file of their own.
        """
        helper = self._onnx.helper
        weights = list(self._stored.values())
        graph = helper.make_graph(
            self._nodes, name, self._described(inputs), self._described(outputs), weights
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
        """Store an array unless it is there."""
        if key not in self._stored:
            self._stored[key] = self._onnx.numpy_helper.from_array(array, name)
        return str(self._stored[key].name)

    def _described(self, tensors: Tensors) -> list[Any]:
        """Declare what goes in or comes out; an axis with a number as its name is fixed."""
        return [
            self._onnx.helper.make_tensor_value_info(name, self._type(name), _shape(axes.split()))
            for name, axes in tensors.items()
        ]

    def _type(self, name: str) -> int:
        """Know the type of an input or output by its name: ids, a mask, or numbers."""
        kinds = self._onnx.TensorProto
        types = {"source": kinds.INT64, "tokens": kinds.INT64, "may_attend": kinds.BOOL}
        return int(types.get(name, kinds.FLOAT))


def _shape(axes: Sequence[str]) -> list[int | str]:
    """Turn names that are numbers into numbers."""
    return [int(axis) if axis.isdecimal() else axis for axis in axes]
