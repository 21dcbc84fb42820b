"""
A safe unpickler, which executes nothing.

A pickle is a small program: it names functions and calls them, so a checkpoint from a stranger can
do whatever its author wanted. This reader builds plain values from the instructions, which
`pickletools` only decodes. Names are never imported: each is looked up in a list of the names and
packages that checkpoints need, and any other name is refused.

::

    numbers, text, bytes, lists, tuples, dictionaries, sets    themselves
    argparse.Namespace, omegaconf, torchtext, ... objects      `OpaqueObject`: name and contents
    tensors                                                    `StoredTensor`: read on demand
    anything else                                              ExchangeError
"""

import pickletools
from collections.abc import Callable, Iterable
from typing import Any

from heedful.errors import ExchangeError
from heedful.exchange.pickled.placeholders import (
    CONTAINERS,
    GlobalName,
    Make,
    OpaqueObject,
    build_dictionary,
    key_of,
    of_type,
)

_FAMILIES = ("argparse", "fairseq", "joeynmt", "omegaconf", "onmt", "pathlib", "torchtext")
_OBJECTS = frozenset(
    {
        "__builtin__.object",
        "builtins.object",
        "functools.partial",
        "torch.optim.adam.Adam",
        "torch.nn.modules.container.ParameterDict",
        "types.SimpleNamespace",
        "typing.Any",
    }
)
_PLAIN_TYPES = (
    "int",
    "long",
    "float",
    "str",
    "unicode",
    "bool",
    "bytes",
    "complex",
    "NoneType",
    "type",
)
# Valid checkpoints stay far below these limits; without them, a small pickle could copy one list
# until the memory is full.
_MOST_COPIED = 1 << 26
_MOST_NUMBERS = 5_000
# These containers keep values in order and never hash them.
_LISTS = frozenset(
    {f"{module}.{name}" for module in ("builtins", "__builtin__") for name in ("list", "tuple")}
    | {"collections.deque"}
)
_LONGEST_NUMBER = 1 << 12
# One byte can create a list of 64 bytes; valid checkpoints have up to several hundred thousand
# instructions.
_MOST_INSTRUCTIONS = 1 << 23


def read_inert(file: Any, makers: dict[str, Make], persistent: Callable[[Any], Any]) -> Any:
    """
    Read one pickle from a stream without executing it; shared and circular references are kept.

    Raises `ExchangeError` if the pickle is damaged, or names anything that checkpoints do not need.
    One message lists up to ten refused names and the number of others.
    """
    machine = _Machine(makers, persistent)
    try:
        instructions = pickletools.genops(file)
        for number, (instruction, argument, _) in enumerate(instructions):
            if instruction.name == "STOP":
                break
            if number == _MOST_INSTRUCTIONS:
                raise ValueError(f"it has more than {number:,} instructions")
            machine.run(instruction.name, argument)
        result = machine.stack.pop()
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ExchangeError(
            "A checkpoint must be a complete pickle, but this one cannot be decoded "
            f"({type(error).__name__}: {str(error)[:200]}); copy the file again."
        ) from error
    if machine.refused:
        raise ExchangeError(
            "A checkpoint may contain only tensors, numbers, text and settings, but this one names "
            f"{_format_names(machine.refused)}; none of it was executed. Do not load this file "
            "anywhere else unless you know who wrote it."
        )
    return result


class _Machine:
    """The stack and memo of a pickle machine."""

    def __init__(self, makers: dict[str, Make], persistent: Callable[[Any], Any]) -> None:
        self.stack: list[Any] = []
        self.refused: set[str] = set()
        self._marks: list[int] = []
        self._memory: dict[int, Any] = {}
        self._makers = CONTAINERS | makers
        self._persistent = persistent
        self._copied = self._numbers = 0

    def run(self, name: str, argument: Any) -> None:
        """Process one opcode."""
        if name in _VALUES:
            if isinstance(argument, int) and argument.bit_length() > _LONGEST_NUMBER:
                raise ValueError(f"a number has {argument.bit_length()} bits")
            self.stack.append(_text(argument) if name in _OLD_TEXT else argument)
        elif name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name]())
        elif name in _GETS:
            self.stack.append(self._memory[int(argument)])
        elif name in _PUTS:
            self._memory[int(argument)] = self.stack[-1]
        elif name in _TUPLES:
            self.stack.append(tuple(self._take(_TUPLES[name])))
        elif name == "GLOBAL":
            self.stack.append(self._name(*argument.split(" ", 1)))
        elif name in _STEPS:
            getattr(self, f"_{name.lower()}")()
        elif name not in _IGNORED:
            raise ValueError(f"checkpoints never have the instruction {name}")

    def _take(self, count: int) -> list[Any]:
        """Pop the top elements."""
        if len(self.stack) < count:
            raise IndexError("the stack is empty")
        taken = self.stack[-count:]
        del self.stack[-count:]
        return taken

    def _since_mark(self) -> list[Any]:
        """Pop the values above the last mark."""
        mark = self._marks.pop()
        taken = self.stack[mark:]
        del self.stack[mark:]
        return taken

    def _memoize(self) -> None:
        self._memory[len(self._memory)] = self.stack[-1]

    def _mark(self) -> None:
        self._marks.append(len(self.stack))

    def _pop(self) -> None:
        if self._marks and self._marks[-1] == len(self.stack):
            self._marks.pop()
        else:
            self.stack.pop()

    def _pop_mark(self) -> None:
        self._since_mark()

    def _dup(self) -> None:
        self.stack.append(self.stack[-1])

    def _tuple(self) -> None:
        self.stack.append(tuple(self._since_mark()))

    def _list(self) -> None:
        self.stack.append(self._since_mark())

    def _dict(self) -> None:
        values = self._since_mark()
        self.stack.append({})
        self._update(values)

    def _frozenset(self) -> None:
        values = self._since_mark()
        self._count(values)
        self.stack.append(frozenset(map(key_of, values)))

    def _append(self) -> None:
        self._extend(self._take(1))

    def _appends(self) -> None:
        self._extend(self._since_mark())

    def _extend(self, values: list[Any]) -> None:
        """Append values to the list on top of the stack."""
        target = self.stack[-1]
        entries = target.entries if isinstance(target, OpaqueObject) else of_type(list, target)
        entries.extend(values)

    def _setitem(self) -> None:
        self._update(self._take(2))

    def _setitems(self) -> None:
        self._update(self._since_mark())

    def _update(self, values: list[Any]) -> None:
        """Add pairs to the dictionary on top of the stack."""
        target = self.stack[-1]
        self._count(values[::2])
        pairs = build_dictionary(values)
        if isinstance(target, OpaqueObject):
            target.entries.extend(pairs.items())
        else:
            of_type(dict, target).update(pairs)

    def _additems(self) -> None:
        values = self._since_mark()
        self._count(values)
        of_type(set, self.stack[-1]).update(map(key_of, values))

    def _count(self, keys: Iterable[Any]) -> None:
        """Limit the number of keys that are not text, because numbers can have equal hashes."""
        self._numbers += sum(not isinstance(key, str | bytes) for key in keys)
        if self._numbers > _MOST_NUMBERS:
            raise ValueError(f"it has more than {_MOST_NUMBERS:,} keys that are not text")

    def _stack_global(self) -> None:
        module, name = self._take(2)
        self.stack.append(self._name(of_type(str, module), of_type(str, name)))

    def _name(self, module: str, name: str) -> GlobalName:
        """Check whether a name is allowed, and record it as refused if not."""
        path = f"{module}.{name}"
        family = module.split(".", 1)[0]
        known = (
            path in self._makers
            or path in _OBJECTS
            or family in _FAMILIES
            or (module in ("builtins", "__builtin__") and name in _PLAIN_TYPES)
        )
        if not known:
            self.refused.add(path)
        return GlobalName(path)

    def _reduce(self) -> None:
        self.stack.append(self._call_result(*self._take(2)))

    _newobj = _reduce

    def _newobj_ex(self) -> None:
        called, arguments, keywords = self._take(3)
        result = self._call_result(called, arguments)
        if keywords:
            of_type(OpaqueObject, result).state.update(of_type(dict, keywords))
        self.stack.append(result)

    def _call_result(self, called: Any, arguments: Any) -> Any:
        """Return the result of a call."""
        path = of_type(GlobalName, called).path
        values = of_type(tuple, arguments)
        self._copied += sum(len(v) for v in values if isinstance(v, list | tuple | dict | str))
        if self._copied > _MOST_COPIED:
            raise ValueError("it copies the same values over and over")
        if path in CONTAINERS and path not in _LISTS:
            items = [item for value in values if isinstance(value, list) for item in value]
            self._count(
                item[0] if isinstance(item, list | tuple) and item else item for item in items
            )
        if path in self._makers:
            return self._makers[path](values)
        return OpaqueObject(path, values)

    def _build(self) -> None:
        state, target = self.stack.pop(), self.stack[-1]
        if isinstance(target, OpaqueObject):
            parts = state if isinstance(state, tuple) else (state,)
            for part in parts:
                if isinstance(part, dict):
                    target.state.update(part)
                elif part is not None:
                    target.entries.append(part)
        elif isinstance(target, GlobalName):
            raise TypeError(f"{target.path} is not an object with a state")
        # Attributes of dictionaries and tensors are torch's own, such as `_metadata`, and are
        # ignored.

    def _binpersid(self) -> None:
        self.stack.append(self._persistent(self.stack.pop()))


def _format_names(names: set[str]) -> str:
    """Format the refused names."""
    shown = [ascii(name)[1:-1][:80] for name in sorted(names)[:10]]
    return ", ".join(shown) + (f" and {len(names) - 10} others" if len(names) > 10 else "")


def _text(value: Any) -> Any:
    """Decode text of Python 2, in which `pickletools` decodes each byte separately."""
    raw = value.encode("latin-1") if isinstance(value, str) else value
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw


_OLD_TEXT = frozenset({"SHORT_BINSTRING", "BINSTRING"})
_VALUES = _OLD_TEXT | frozenset(
    {
        *("BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT"),
        *("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES"),
        "BINBYTES8",
    }
)
_CONSTANTS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_TUPLE": tuple,
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
    "EMPTY_SET": set,
}
_STEPS = frozenset(
    {
        *("MEMOIZE", "MARK", "POP", "POP_MARK", "DUP"),
        *("TUPLE", "LIST", "DICT", "FROZENSET"),
        *("APPEND", "APPENDS", "SETITEM", "SETITEMS", "ADDITEMS"),
        *("STACK_GLOBAL", "REDUCE", "NEWOBJ", "NEWOBJ_EX", "BUILD", "BINPERSID"),
    }
)
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_GETS = frozenset({"BINGET", "LONG_BINGET"})
_PUTS = frozenset({"BINPUT", "LONG_BINPUT"})
_IGNORED = frozenset({"PROTO", "FRAME"})
