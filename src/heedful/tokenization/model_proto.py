"""
SentencePiece's file of a model, a protocol buffer: its kind, and its special ids.

Ids are the places of the pieces in the file, and segmentation does not depend on them. So a model
whose special symbols stand elsewhere, as `spm_train` leaves them, becomes one of ours by moving
them to the front, and by adding those that it lacks. Numbers of fields are those of
sentencepiece_model.proto.
"""

from collections.abc import Iterator
from typing import Any

from heedful.errors import TokenizerError
from heedful.tokenization.special_symbols import SPECIAL_IDS, SPECIAL_PIECES

# Of ModelProto, SentencePiece and TrainerSpec.
_PIECE, _TRAINER_SPEC = 1, 2
_TEXT, _TYPE, _CONTROL = 1, 3, 3
_MODEL_TYPE, _VOCABULARY_SIZE = 3, 4
_IDS = {"unknown": 40, "start": 41, "end": 42, "pad": 43}
_NAMES = {"unknown": 45, "start": 46, "end": 47, "pad": 48}
_MODEL_TYPES = {1: "unigram", 2: "bpe", 3: "word", 4: "character"}

FLAGS = "--pad_id=0 --unk_id=1 --bos_id=2 --eos_id=3"
"""What `spm_train` needs for our special ids."""


def kind_of(model: bytes) -> str:
    """Read how a model splits text; “bpe” of a broken one, which sentencepiece will report."""
    try:
        trainer = dict(_fields(model)).get(_TRAINER_SPEC, b"")
        kind = dict(_fields(trainer)).get(_MODEL_TYPE, 1) if isinstance(trainer, bytes) else 0
        return _MODEL_TYPES[int(kind)]
    except (IndexError, KeyError, ValueError):
        return "bpe"


def with_our_ids(model: bytes, processor: Any) -> bytes:
    """
    Move the special symbols of a model to our ids.

    `processor`: the loaded model. Returns the same bytes if they have these ids already.

    Raises `TokenizerError` if an ordinary piece has the name of a special symbol that is missing.
    """
    ids = [processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id()]
    if ids == [*SPECIAL_IDS.values()]:
        return model
    fields = list(_fields(model))
    pieces = [content for number, content in fields if number == _PIECE]
    trainer = dict(fields).get(_TRAINER_SPEC, b"")
    named = dict(_fields(trainer))
    special = []
    for symbol, place, usual in zip(SPECIAL_IDS, ids, SPECIAL_PIECES, strict=True):
        if place >= 0:
            special.append(pieces[place])
            continue
        name = bytes(named.get(_NAMES[symbol], usual.encode()))
        if any(dict(_fields(piece))[_TEXT] == name for piece in pieces):
            raise TokenizerError(
                f"A sentencepiece model must have a special symbol for {symbol}, but "
                f"{name.decode()!r} is an ordinary subword of this one; train it again with "
                f"{FLAGS}."
            )
        special.append(_field(_TEXT, name) + _field(_TYPE, _CONTROL))
    others = [piece for place, piece in enumerate(pieces) if place not in ids]
    numbers = {_IDS[symbol]: our for symbol, our in SPECIAL_IDS.items()}
    numbers[_VOCABULARY_SIZE] = len(special) + len(others)
    # Of a number that comes twice the last one counts.
    trainer += b"".join(_field(number, value) for number, value in numbers.items())
    rest = [(number, content) for number, content in fields if number > _TRAINER_SPEC]
    return b"".join(
        _field(number, content)
        for number, content in [
            *((_PIECE, piece) for piece in (*special, *others)),
            (_TRAINER_SPEC, trainer),
            *rest,
        ]
    )


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Iterate over the fields of a message: bytes, or a whole number."""
    place = 0

    def varint() -> int:
        nonlocal place
        number = shift = 0
        while True:
            byte = message[place]
            place += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number
            if shift > 63:
                raise ValueError("a number of more than 64 bits")

    while place < len(message):
        key = varint()
        number, form = key >> 3, key & 7
        if form == 0:
            yield number, varint()
            continue
        size = {1: 8, 5: 4}.get(form) or (varint() if form == 2 else 0)
        if not size and form != 2:
            raise ValueError(f"field of form {form}")
        yield number, message[place : place + size]
        place += size


def _field(number: int, content: bytes | int) -> bytes:
    """Serialise a field: bytes with their length, or a whole number."""
    if isinstance(content, int):
        return _varint(number << 3) + _varint(content)
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    """Serialise a whole number, seven bits a byte."""
    content = bytearray()
    while number > 0x7F:
        content.append(number & 0x7F | 0x80)
        number >>= 7
    content.append(number)
    return bytes(content)
