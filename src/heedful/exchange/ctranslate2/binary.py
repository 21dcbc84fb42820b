"""
The file ``model.bin`` of CTranslate2, read with NumPy alone.

::

    version     uint32              2 to 6 here
    spec        text                such as TransformerBase, TransformerSpec
    revision    uint32
    variables   uint32, then each:  name, rank (uint8), sizes (uint32), values
                                    from version 4 on, type (uint8) and number of bytes;
                                    earlier, bytes per number (uint8) and count of numbers
    aliases     from version 3 on:  uint32, then each:  alias, name

Text is stored as its length (uint16), its bytes and a zero byte; the length includes the zero.
Numbers are little-endian. The file may be malicious: nothing is read past its end, and each number
is checked before it is used.
"""

import struct
import sys
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

from heedful.data.tensor_shapes import is_empty_and_vast
from heedful.errors import ExchangeError
from heedful.files import read_within
from heedful.machine.memory import free_memory

Array = np.ndarray

_VERSIONS = (2, 3, 4, 5, 6)
# Number types in the order of their codes; bfloat16 is read as its bits.
_TYPES = ("float32", "int8", "int16", "int32", "float16", "bfloat16")
_TYPES_BY_WIDTH = {4: "float32", 2: "int16", 1: "int8"}
_MOST_SIZES = 4
# Maximum ratio of named to stored numbers: aliases may name one table three times, and layers may
# share small vectors.
_MOST_TIMES = 8
_ALWAYS = 1 << 18


@dataclass(frozen=True)
class ModelFile:
    """The content of a ``model.bin``. `floats` returns the weights in float32."""

    spec: str
    """Name of the kind of model, such as TransformerSpec."""
    revision: int
    """Revision of the kind of model."""
    variables: dict[str, Array]
    """
    Variables as they are stored: integer weights are not yet divided by their scales, which are the
    variables ``…_scale``. An alias is the same array as its variable.
    """
    version: int

    def floats(self) -> dict[str, Array]:
        """Return all weights in float32; integer weights are divided by their scales."""
        # A weight in 8 bits has one scale per row, and a weight in 16 bits has a single scale.
        # Before version 4, the scale in 16 bits may be missing; it is then 1000.
        floats: dict[str, Array] = {}
        converted: dict[tuple[int, int, bool], Array] = {}  # convert an array only once
        for name, stored in self.variables.items():
            if name.endswith(("_scale", "_zero")) and name.rpartition("_")[0] in self.variables:
                continue
            scale = self.variables.get(f"{name}_scale")
            key = id(stored), id(scale), name.endswith("weight")
            if key not in converted:
                converted[key] = self._in_floats(name, stored)
            floats[name] = converted[key]
        return floats

    def _in_floats(self, name: str, stored: Array) -> Array:
        """Convert one array; an integer weight is divided by its scale."""
        if stored.ndim == 0 or not name.endswith("weight"):
            return stored.astype(np.float32) if stored.dtype == np.float16 else stored
        if stored.dtype.kind != "i":
            return stored.astype(np.float32)
        scale = self.variables.get(f"{name}_scale")
        if scale is None and stored.dtype == np.int16:
            scale = np.array(1000.0, np.float32)
        if scale is not None and not np.all(scale != 0):
            raise ExchangeError(
                f"model.bin must have a nonzero scale for {name}, but has a scale of 0; the file "
                "is damaged or quantized in another way."
            )
        if scale is None or scale.size not in (1, len(stored)):
            raise ExchangeError(
                f"model.bin must have one scale or a scale for each row of {name}, but has "
                f"{'none' if scale is None else scale.size} for {len(stored)} rows; the file is "
                "damaged or quantized in another way."
            )
        divisor = np.asarray(scale, np.float32).reshape(-1, *[1] * (stored.ndim - 1))
        return stored.astype(np.float32) / divisor


def read_model_file(path: Path) -> ModelFile:
    """
    Read a ``model.bin`` without executing its content; the file's length limits the memory use.

    Raises `ExchangeError` if the file cannot be read, is of another kind, or has the wrong length.
    """
    try:
        content = read_within(path, free_memory() or sys.maxsize)
    except OSError as error:
        raise ExchangeError(
            f"a folder of CTranslate2 must contain model.bin, but {path} cannot be read: "
            f"{error.strerror}; check the path."
        ) from error
    return _Reader(path, content).model()


class _Reader:
    """A reader of consecutive values from the bytes of a file."""

    def __init__(self, path: Path, content: bytes) -> None:
        self.path, self.content, self.place = path, content, 0

    def model(self) -> ModelFile:
        """Read the whole file."""
        version = self._number("I", "version")
        if version not in _VERSIONS:
            raise self._wrong(
                f"must begin with a version from {_VERSIONS[0]} to {_VERSIONS[-1]}, but begins "
                f"with {version}"
            )
        spec, revision = self._text(), self._number("I", "revision")
        variables: dict[str, Array] = {}
        for _ in range(self._number("I", "number of variables")):
            name = self._text()
            if name in variables:
                raise self._wrong(f"must name each variable once, but names {name!r} again")
            variables[name] = self._array(name, version)
        if version >= 3:
            for _ in range(self._number("I", "number of aliases")):
                self._alias(variables)
        self._check_aliases(variables)
        if self.place != len(self.content):
            raise self._wrong(
                f"must end after its last alias, but {len(self.content) - self.place:,} more "
                "bytes follow"
            )
        return ModelFile(spec, revision, variables, version)

    def _alias(self, variables: dict[str, Array]) -> None:
        """Read an alias of a variable and of its scale."""
        alias, name = self._text(), self._text()
        if name not in variables or alias in variables:
            raise self._wrong(
                f"must give new names to existing variables, but gives {name!r} the name {alias!r}"
            )
        variables[alias] = variables[name]
        if f"{name}_scale" in variables:
            variables[f"{alias}_scale"] = variables[f"{name}_scale"]

    def _check_aliases(self, variables: dict[str, Array]) -> None:
        """Refuse aliases that multiply the memory use; each would become a separate weight."""
        stored = sum({id(array): array.size for array in variables.values()}.values())
        named = sum(array.size for array in variables.values())
        if named > _MOST_TIMES * stored + _ALWAYS:
            raise self._wrong(
                f"must have few aliases, but its aliases turn {stored:,} numbers into {named:,}"
            )

    def _array(self, name: str, version: int) -> Array:
        """Read the sizes, type and values of an array."""
        rank = self._number("B", f"number of sizes of {name!r}")
        if rank > _MOST_SIZES:
            raise self._wrong(
                f"must have arrays of at most {_MOST_SIZES} dimensions, but {name!r} has {rank}"
            )
        sizes = tuple(self._number("I", f"size of {name!r}") for _ in range(rank))
        if is_empty_and_vast(sizes):
            raise self._wrong(
                f"must not have huge empty arrays, but {name!r} has the shape {sizes}"
            )
        code = self._number("B", f"type of {name!r}")
        count = self._number("I", f"length of {name!r}")
        if version >= 4:
            kind = _TYPES[code] if code < len(_TYPES) else None
        else:
            kind = _TYPES_BY_WIDTH.get(code)
            count *= code
        if kind is None:
            raise self._wrong(f"must have numbers of known types, but {name!r} is of type {code}")
        stored = np.dtype("<u2" if kind == "bfloat16" else kind).newbyteorder("<")
        if count != prod(sizes) * stored.itemsize:
            raise self._wrong(
                f"must have {prod(sizes) * stored.itemsize:,} bytes for {name!r} of shape "
                f"{sizes} and type {kind}, but has {count:,}"
            )
        array = np.frombuffer(self._take(count, f"values of {name!r}"), stored).reshape(sizes)
        if kind == "bfloat16":
            array = (array.astype("<u4") << 16).view("<f4")
        return array.astype(array.dtype.newbyteorder("="))

    def _text(self) -> str:
        """Read a name."""
        raw = self._take(self._number("H", "length of a name"), "name")
        try:
            if raw.endswith(b"\0"):
                return raw[:-1].decode("utf-8")
        except UnicodeDecodeError:
            pass
        raise self._wrong("must have names in UTF-8 that end in a zero byte, but one name does not")

    def _number(self, kind: str, label: str) -> int:
        """Read an integer."""
        number: int = struct.unpack(f"<{kind}", self._take(struct.calcsize(kind), label))[0]
        return number

    def _take(self, count: int, label: str) -> bytes:
        """Read `count` bytes; raise `ExchangeError` if the file has fewer left."""
        if count > len(self.content) - self.place:
            raise self._wrong(
                f"ends too early: its {label} needs {count:,} bytes from byte {self.place:,} on, "
                f"but the file has {len(self.content):,}"
            )
        self.place += count
        return self.content[self.place - count : self.place]

    def _wrong(self, problem: str) -> ExchangeError:
        """Build the error for a damaged file."""
        return ExchangeError(
            f"{self.path} {problem}; it is damaged or not a model of CTranslate2. Fetch it again."
        )
