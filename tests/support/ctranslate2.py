"""Files in the binary format of CTranslate2."""

import struct

import numpy as np

TYPES = ("float32", "int8", "int16", "int32", "float16", "bfloat16")


def text(name):
    return struct.pack("<H", len(name) + 1) + name.encode() + b"\0"


def stored(array):
    return array.dtype.name, array.shape, array.tobytes()


def model_bin(variables, aliases=(), version=6):
    out = struct.pack("<I", version) + text("TransformerSpec") + struct.pack("<I", 7)
    out += struct.pack("<I", len(variables))
    for name, (kind, sizes, raw) in variables.items():
        out += text(name) + struct.pack(f"<B{len(sizes)}I", len(sizes), *sizes)
        if version >= 4:
            out += struct.pack("<BI", TYPES.index(kind), len(raw))
        else:
            width = np.dtype(kind).itemsize
            out += struct.pack("<BI", width, len(raw) // width)
        out += raw
    if version >= 3:
        out += struct.pack("<I", len(aliases))
        out += b"".join(text(alias) + text(name) for alias, name in aliases)
    return out
