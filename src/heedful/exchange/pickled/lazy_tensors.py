"""Lazy tensors of a checkpoint, checked before they are read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.data.tensor_shapes import is_empty_and_vast
from heedful.errors import ExchangeError
from heedful.exchange.pickled.placeholders import GlobalName, Make, OpaqueObject

STORAGES = {
    "DoubleStorage": "f8",
    "FloatStorage": "f4",
    "HalfStorage": "f2",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "i8",
    "IntStorage": "i4",
    "ShortStorage": "i2",
    "CharStorage": "i1",
    "ByteStorage": "u1",
    "BoolStorage": "?",
}
"""NumPy's type for each storage class of torch; NumPy lacks bfloat16."""

# A valid file grows at most sixfold: half precision becomes single, and three tables may be stored
# as one.
_MOST_TIMES = 8
_ALWAYS = 1 << 20


@dataclass(frozen=True)
class Storage:
    """The location of a block of numbers."""

    key: str
    """Name of the block in the checkpoint."""
    kind: str
    """NumPy type of the numbers, a value of `STORAGES`."""
    numbers: int
    read: Callable[[str], bytes]
    """Function that reads the bytes of a block by its key."""

    @property
    def width(self) -> int:
        """Bytes per number."""
        return 2 if self.kind == "bfloat16" else np.dtype(self.kind).itemsize


@dataclass(frozen=True)
class StoredTensor:
    """A lazy tensor: shape, strides and offset in a storage, checked when it is read."""

    storage: Storage
    """Storage that contains the numbers."""
    offset: int
    """Index of the first number."""
    shape: tuple[int, ...]
    """Sizes of the axes."""
    strides: tuple[int, ...]
    """Distance between neighbors along each axis, counted in numbers."""

    def numpy(self) -> NDArray[Any]:
        """Read the numbers; `ExchangeError` if they are not all inside the storage."""
        # A tensor that repeats a few numbers many times is also refused, because otherwise a small
        # file could fill the memory.
        self._check()
        content = self.storage.read(self.storage.key)
        if len(content) < self.storage.numbers * self.storage.width:
            raise _damage_error(f"storage {self.storage.key!r:.40} is incomplete")
        kind = "u2" if self.storage.kind == "bfloat16" else self.storage.kind
        numbers = np.frombuffer(content, np.dtype(kind).newbyteorder("<"), self.storage.numbers)
        strides = tuple(stride * self.storage.width for stride in self.strides)
        view = np.lib.stride_tricks.as_strided(
            numbers[self.offset :], self.shape, strides, writeable=False
        )
        if self.storage.kind == "bfloat16":
            return (view.astype(np.uint32) << 16).view(np.float32)
        if kind == "f2":
            return view.astype(np.float32)
        return np.array(view)

    @property
    def size(self) -> int:
        """Count the numbers in Python integers, because NumPy's types overflow."""
        return prod(self.shape)

    def _check(self) -> None:
        """Refuse a tensor that is not inside its storage."""
        fits = (
            len(self.shape) == len(self.strides) <= 8
            and self.offset >= 0
            and all(size >= 0 for size in self.shape)
            and all(stride >= 0 for stride in self.strides)
            and self.size <= self.storage.numbers
            and not is_empty_and_vast(self.shape)
        )
        reach = sum((n - 1) * step for n, step in zip(self.shape, self.strides, strict=False))
        last = self.offset + reach if fits and self.size else -1
        if not fits or last >= self.storage.numbers:
            raise _damage_error(
                f"a tensor of shape {str(self.shape)[:60]} that starts at element "
                f"{str(self.offset)[:20]} does not fit into storage {self.storage.key!r:.40} of "
                f"{self.storage.numbers} elements"
            )


def read_arrays(values: Mapping[Any, Any], path: Path) -> dict[str, NDArray[Any]]:
    """Read all tensors among the values; refuse a total size far larger than the file."""
    tensors = {
        name: tensor
        for name, tensor in values.items()
        if isinstance(name, str) and isinstance(tensor, StoredTensor)
    }
    size = sum(tensor.size * max(4, tensor.storage.width) for tensor in tensors.values())
    if size > _MOST_TIMES * path.stat().st_size + _ALWAYS:
        raise _damage_error(
            f"its tensors would have {size:,} bytes, many times the size of the file, which "
            "suggests a malicious file"
        )
    return {name: tensor.numpy() for name, tensor in tensors.items()}


def tensor_makers() -> dict[str, Make]:
    """Return the functions that replace torch's tensor constructors and NumPy's scalars."""
    names: dict[str, Make] = {
        "torch._utils._rebuild_tensor": lambda a: _tensor(a[0], a[1], a[2], a[3]),
        "torch._utils._rebuild_tensor_v2": lambda a: _tensor(a[0], a[1], a[2], a[3]),
        "torch._utils._rebuild_parameter": lambda a: a[0],
        "torch.nn.parameter.Parameter": lambda a: a[0],
        "torch.Size": lambda a: tuple(a[0]),
        "torch.device": lambda a: str(a[0])[:40],
        "torch.serialization._get_layout": lambda a: str(a[0])[:40],
    }
    storages = [*STORAGES, "UntypedStorage"]
    for name in storages:
        names[f"torch.{name}"] = names[f"torch.storage.{name}"] = _never
    for name in _DTYPES:
        names[f"torch.{name}"] = _never
    for module in ("numpy.core.multiarray", "numpy._core.multiarray"):
        names[f"{module}.scalar"] = _number
        names[f"{module}._reconstruct"] = lambda a: OpaqueObject("numpy.ndarray")
    names["numpy.dtype"] = lambda a: OpaqueObject("numpy.dtype", a)
    names["numpy.ndarray"] = _never
    return names


def storage_kind(storage_type: Any) -> str:
    """Return a storage's number type; `ExchangeError` for types that no translation model has."""
    kind = (
        storage_type.path.rpartition(".")[2]
        if isinstance(storage_type, GlobalName)
        else "something else"
    )
    if kind not in STORAGES:
        raise _damage_error(
            f"the type of its numbers is {kind[:40]!r}, not one of {', '.join(STORAGES)}"
        )
    return STORAGES[kind]


def _tensor(storage: Any, offset: Any, shape: Any, strides: Any) -> StoredTensor:
    """Check the types of a tensor's description; reading the tensor checks the values."""
    are_integers = all(
        isinstance(part, tuple) and all(type(number) is int for number in part)
        for part in (shape, strides)
    )
    if not isinstance(storage, Storage) or type(offset) is not int or not are_integers:
        raise TypeError("a tensor must have a storage, an offset, a shape and strides")
    return StoredTensor(storage, offset, shape, strides)


def _number(arguments: tuple[Any, ...]) -> Any:
    """Convert a NumPy scalar, given by type and bytes, to a Python number."""
    kind, content = arguments
    name = kind.arguments[0] if isinstance(kind, OpaqueObject) and kind.arguments else None
    if name not in ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u1", "b1"):
        return OpaqueObject("numpy.scalar")
    content = content.encode("latin-1") if isinstance(content, str) else content
    return np.frombuffer(content, np.dtype(name), 1)[0].item()


def _never(arguments: tuple[Any, ...]) -> Any:
    """Refuse to call a name that checkpoints never call."""
    raise TypeError(f"a type was called with {len(arguments)} values")


def _damage_error(reason: str) -> ExchangeError:
    """Build the error for a damaged or malicious checkpoint."""
    return ExchangeError(
        "The tensors of a checkpoint must have known types and fit into the file, but "
        f"{reason}; copy it again, or ask its author."
    )


_DTYPES = (
    *("float64", "float32", "float16", "bfloat16"),
    *("int64", "int32", "int16", "int8", "uint8", "bool"),
)
