"""
The protocol buffer of a SentencePiece model: its kind, its special ids and its pieces.

Ids are the positions of the pieces in the file and do not affect segmentation. So a model is
adapted by moving its special symbols to the front and adding missing ones. Field numbers are taken
from sentencepiece_model.proto.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from heedful.errors import TokenizerError
from heedful.tokenization.special_symbols import SPECIAL_IDS, SPECIAL_PIECES

# Field numbers and values of ModelProto, SentencePiece, TrainerSpec and NormalizerSpec.
_PIECE, _TRAINER_SPEC, _NORMALIZER_SPEC = 1, 2, 3
_TEXT, _SCORE, _TYPE, _NORMAL, _UNKNOWN, _CONTROL = 1, 2, 3, 1, 2, 3
_CHARACTERS_MAP, _DUMMY_PREFIX, _REMOVE_SPACES, _ESCAPE_SPACES = 2, 3, 4, 5
_ABSENT = (1 << 64) - 1  # -1 as protocol buffers write it
_MODEL_TYPE, _VOCABULARY_SIZE = 3, 4
_IDS = {"unknown": 40, "start": 41, "end": 42, "pad": 43}
_NAMES = {"unknown": 45, "start": 46, "end": 47, "pad": 48}
_MODEL_TYPES = {1: "unigram", 2: "bpe", 3: "word", 4: "character"}

FLAGS = "--pad_id=0 --unk_id=1 --bos_id=2 --eos_id=3"
"""Options of `spm_train` for our special ids."""


def kind_of(model: bytes) -> str:
    """Read a model's kind; “bpe” for a damaged model, which sentencepiece reports later."""
    try:
        trainer = dict(_fields(model)).get(_TRAINER_SPEC, b"")
        kind = dict(_fields(trainer)).get(_MODEL_TYPE, 1) if isinstance(trainer, bytes) else 0
        return _MODEL_TYPES[int(kind)]
    except (IndexError, KeyError, ValueError):
        return "bpe"


def with_our_ids(model: bytes, processor: Any) -> bytes:
    """
    Move the special symbols of a model to our ids.

    `processor`: the loaded model. Returns the same bytes if the model already has these ids.

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
    return _assemble(fields, [*special, *others], numbers)


class AddedPiece(NamedTuple):
    """A piece that is added to a model."""

    text: str
    score: float
    control: bool = False
    """Whether it is a control symbol, which no text produces."""


def with_pieces(model: bytes, added: Sequence[AddedPiece]) -> bytes:
    """Append pieces to a model that sentencepiece has read."""
    fields = list(_fields(model))
    pieces = [content for number, content in fields if number == _PIECE]
    for text, score, control in added:
        pieces.append(_piece(text, score, _CONTROL if control else _NORMAL))
    return _assemble(fields, pieces, {_VOCABULARY_SIZE: len(pieces)})


def _assemble(
    fields: Sequence[tuple[int, Any]], pieces: Sequence[bytes], numbers: dict[int, int]
) -> bytes:
    """Serialize a model with new pieces, and with new values in its training settings."""
    trainer: bytes = dict(fields).get(_TRAINER_SPEC, b"")
    # If a field occurs twice, readers use its last value.
    rest = [(number, content) for number, content in fields if number > _TRAINER_SPEC]
    return _model(pieces, trainer + _message(numbers), rest)


def _model(pieces: Iterable[bytes], trainer: bytes, rest: Iterable[tuple[int, Any]]) -> bytes:
    """Serialize a model from its pieces, its training settings and the fields after them."""
    fields = [*((_PIECE, piece) for piece in pieces), (_TRAINER_SPEC, trainer), *rest]
    return b"".join(_field(number, content) for number, content in fields)


def _message(fields: Mapping[int, bytes | int]) -> bytes:
    """Serialize a message from its fields."""
    return b"".join(_field(number, value) for number, value in fields.items())


def unigram_model(
    pieces: Sequence[tuple[str, float]], special: Mapping[str, int], characters: bytes
) -> bytes:
    """
    Write a unigram model.

    `pieces`: the text and score of each piece. `special`: the ids of ``unknown``, ``end`` and so
    on.
    `characters`: sentencepiece's compiled character map; empty for none.
    """
    types = dict.fromkeys(special.values(), _CONTROL) | {special["unknown"]: _UNKNOWN}
    numbers = {_MODEL_TYPE: 1, _VOCABULARY_SIZE: len(pieces)}
    numbers |= {number: special.get(name, _ABSENT) for name, number in _IDS.items()}
    names = {_NAMES[name]: pieces[place][0].encode() for name, place in special.items()}
    normalizer = _field(_CHARACTERS_MAP, characters) if characters else b""
    normalizer += _message(dict.fromkeys((_DUMMY_PREFIX, _REMOVE_SPACES, _ESCAPE_SPACES), 1))
    messages = (
        _piece(text, score, types.get(place, _NORMAL)) for place, (text, score) in enumerate(pieces)
    )
    trainer = _message(numbers) + _message(names)
    return _model(messages, trainer, [(_NORMALIZER_SPEC, normalizer)])


def _piece(text: str, score: float, kind: int) -> bytes:
    """Serialize a piece."""
    return _field(_TEXT, text.encode()) + _score(score) + _field(_TYPE, kind)


def _score(score: float) -> bytes:
    """Serialize the score of a piece."""
    return _varint(_SCORE << 3 | 5) + struct.pack("<f", score)


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Iterate over the numbers and values (bytes or integers) of a message's fields."""
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
    """Serialize a field: bytes with their length, or an integer."""
    if isinstance(content, int):
        return _varint(number << 3) + _varint(content)
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    """Serialize an integer, with seven bits in each byte."""
    content = bytearray()
    while number > 0x7F:
        content.append(number & 0x7F | 0x80)
        number >>= 7
    content.append(number)
    return bytes(content)


def build_model(
    kind: str, pieces: Sequence[tuple[str, float]], charsmap: bytes, names: Mapping[str, str]
) -> bytes:
    """
    Serialize a model from the pieces and scores of another format.

    `kind`: “unigram” or “bpe”. `charsmap`: normalization rules as compiled by sentencepiece; empty
    for none. `names`: the spellings of the unknown, start and end symbols; they need not be in
    `pieces`.
    """
    special = {"unknown": _UNKNOWN, "start": _CONTROL, "end": _CONTROL}
    content = [
        _message({_TEXT: names[name].encode(), _TYPE: piece_type})
        for name, piece_type in special.items()
    ]
    content += [
        _field(_TEXT, piece.encode()) + _score(score)
        for piece, score in pieces
        if piece not in names.values()
    ]
    numbers = {
        _MODEL_TYPE: next(number for number, name in _MODEL_TYPES.items() if name == kind),
        _VOCABULARY_SIZE: len(content),
        **{_IDS[name]: place for place, name in enumerate(special)},
    }
    spelled = {_NAMES[name]: text.encode() for name, text in names.items()}
    normalizer = _field(1, b"identity") + (_field(_CHARACTERS_MAP, charsmap) if charsmap else b"")
    trainer = _message(numbers) + _message(spelled)
    return _model(content, trainer, [(_NORMALIZER_SPEC, normalizer)])


def charsmap_of(model: bytes) -> bytes:
    """Return the compiled normalization rules of a model; empty if it has none."""
    spec = dict(_fields(model)).get(_NORMALIZER_SPEC, b"")
    return bytes(dict(_fields(spec)).get(_CHARACTERS_MAP, b""))
