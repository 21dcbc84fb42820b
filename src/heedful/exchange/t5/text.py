"""
The tokenizer of a T5 folder: ``spiece.model``, sentinels, and the tasks in `config.json`.

The ids of the sentencepiece model come first, then the sentinels in descending order, then table
rows without a token. A task is a prefix for each source line, with search settings;
``task_specific_params`` in `config.json` lists the tasks.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from heedful.errors import ExchangeError
from heedful.exchange.formats import Problems, ReadOptions
from heedful.exchange.huggingface.settings import check_added, id_mapping_of, optional_settings
from heedful.exchange.huggingface.unigram import FILE, sentencepiece_of, unigram_pieces
from heedful.files import read_within
from heedful.tokenization.id_mapping import IdMapping
from heedful.tokenization.imported_model import ImportedModel
from heedful.tokenization.sentencepiece_model import load_processor
from heedful.tokenization.serialization import LONGEST_PREFIX
from heedful.tokenization.tokenizer import Tokenizer

MODEL = "spiece.model"
SENTINEL = "<extra_id_{}>"
_UNKNOWN = "<unk>"
_NO_TOKEN = "<row_{}>"
_SENTINELS = re.compile(r"<extra_id_(\d+)>")
_TRANSLATION = re.compile(r"translation_([A-Za-z-]+)_to_([A-Za-z-]+)")
_MOST_SENTINELS = 10_000


class PrefixTask(NamedTuple):
    """A task of a model: a prefix, languages and search settings."""

    prefix: str = ""
    """Text before each source line."""
    languages: tuple[str, str] = ("", "")
    search: Mapping[str, Any] = {}
    """Settings of `generate` that differ for the task."""


def read_task(settings: Mapping[str, Any], options: ReadOptions, reasons: Problems) -> PrefixTask:
    """
    Find the task by its name, its languages or the user's prefix.

    Without a task or a prefix, source lines stay unchanged.
    """
    known = settings.get("task_specific_params") or {}
    if not isinstance(known, dict) or not all(isinstance(part, dict) for part in known.values()):
        reasons.add_if(True, "task_specific_params must contain a table for each task")
        return PrefixTask()
    languages = options.source_language, options.target_language
    name, prefix = options.task, options.source_prefix
    reasons.add_if(bool(name and prefix), "--task and --source-prefix must not be given together")
    if name and name not in known:
        tasks = ", ".join(known) or "the model has none"
        reasons.add_if(True, f"--task must name a task of the model ({tasks}), but is {name!r}")
        return PrefixTask()
    if not name and not prefix:
        name = next((task for task in known if all(languages) and _pair(task) == languages), "")
    prefix = prefix or known.get(name, {}).get("prefix") or ""
    reasons.add_if(
        not isinstance(prefix, str) or len(prefix) > LONGEST_PREFIX,
        f"the prefix of a task must be text of at most {LONGEST_PREFIX:,} characters",
    )
    task = task_of_prefix(settings, prefix)
    both = languages[0] or task.languages[0], languages[1] or task.languages[1]
    return task._replace(languages=both)


def task_of_prefix(settings: Mapping[str, Any], prefix: Any) -> PrefixTask:
    """Find the task with a prefix, else create a task without languages or settings."""
    for name, values in (settings.get("task_specific_params") or {}).items():
        if prefix and values.get("prefix") == prefix:
            search = {key: value for key, value in values.items() if key != "prefix"}
            return PrefixTask(prefix, _pair(name), search)
    return PrefixTask(str(prefix))


def task_notes(settings: Mapping[str, Any], task: PrefixTask) -> tuple[str, ...]:
    """List the tasks of the model if none was chosen."""
    known = settings.get("task_specific_params")
    if task.prefix or not isinstance(known, dict) or not known:
        return ()
    names = ", ".join(str(name) for name in [*known][:20])
    return (
        "this model was trained with a prefix before each source line; choose a task with --task "
        f"({names}), or give the prefix with --source-prefix",
    )


def _pair(task: str) -> tuple[str, str]:
    """Read the languages from a task's name."""
    match = _TRANSLATION.fullmatch(task)
    return (match[1], match[2]) if match else ("", "")


def read_vocabulary(
    path: Path, settings: Mapping[str, Any], spelled: Mapping[str, Any]
) -> tuple[IdMapping, bytes]:
    """Read the sentencepiece model, and map its ids and those of the sentinels to ours."""
    content = _model(path, settings)
    processor = load_processor(content)
    pieces = [str(processor.id_to_piece(n)) for n in range(processor.get_piece_size())]
    rows = settings["vocab_size"]
    if len(pieces) > rows:
        raise ExchangeError(
            f"{path / MODEL} must have at most {rows:,} pieces, one for each row of the embedding "
            f"table, but has {len(pieces):,}; tokenizer and weights belong to different models."
        )
    numbers = {piece: number for number, piece in enumerate(pieces)}
    count = _sentinels(spelled, path)
    last = len(pieces) + count - 1
    if SENTINEL.format(0) not in numbers:
        sentinels = {SENTINEL.format(n): last - n for n in range(count)}
        # sentinels without a row are left out
        numbers |= {piece: number for piece, number in sentinels.items() if number < rows}
    places = {
        "pad": settings.get("pad_token_id"),
        "unknown": processor.unk_id(),
        "end": settings.get("eos_token_id"),
    }
    special: dict[str, str | None] = {}
    for name, place in places.items():
        if type(place) is not int or not 0 <= place < len(pieces):
            raise ExchangeError(
                f"the id of the {name} symbol must be an id below {len(pieces):,}, the number of "
                f"pieces in {path / MODEL}, but is {place!r}; correct config.json."
            )
        special[name] = pieces[place]
    special["start"] = _start(settings, numbers, special, path)
    return id_mapping_of(path / MODEL, numbers, special, rows), content


def _model(path: Path, settings: Mapping[str, Any]) -> bytes:
    """Read the sentencepiece model, or build one from the `tokenizer.json` of transformers 5."""
    if (path / MODEL).is_file():
        return read_within(path / MODEL)
    pieces = unigram_pieces(path)
    while pieces and _SENTINELS.fullmatch(pieces[-1][0]):
        pieces.pop()  # sentinels follow the model's own pieces
    unknown = next((n for n, (text, _) in enumerate(pieces) if text == _UNKNOWN), None)
    places = {
        "pad": settings.get("pad_token_id"),
        "unknown": unknown,
        "end": settings.get("eos_token_id"),
    }
    if not all(type(place) is int and 0 <= place < len(pieces) for place in places.values()):
        raise ExchangeError(
            f"{path / FILE} must have pieces for padding, unknown text and the end, but their ids "
            f"are {', '.join(map(repr, places.values()))}; correct config.json or this file."
        )
    return sentencepiece_of(path, pieces, {name: int(place or 0) for name, place in places.items()})


def _start(
    settings: Mapping[str, Any],
    numbers: dict[str, int],
    special: Mapping[str, str | None],
    path: Path,
) -> str:
    """
    Find the start symbol, or a row that can serve as the start symbol.

    The class starts decoding with padding and has no start symbol. Our start symbol needs a row
    that no text uses: because the logits have no bias, a new row would get some probability.
    """
    wanted, by_number = settings.get("decoder_start_token_id"), {n: p for p, n in numbers.items()}
    piece = by_number.get(wanted) if type(wanted) is int else None
    if piece is not None and piece not in special.values():
        return piece
    free = [number for number in range(settings["vocab_size"]) if number not in by_number]
    if free:
        numbers[_NO_TOKEN.format(free[0])] = free[0]
        return _NO_TOKEN.format(free[0])
    sentinels = [piece for piece in numbers if _SENTINELS.fullmatch(piece)]
    if not sentinels:
        raise ExchangeError(
            f"the embeddings of the model in {path} must have a free row for the start symbol, "
            "but every row belongs to a subword; add a row."
        )
    return min(sentinels, key=numbers.__getitem__)


def _sentinels(spelled: Mapping[str, Any], path: Path) -> int:
    """Count the sentinels; refuse other added tokens, which the sentencepiece model lacks."""
    count = spelled.get("extra_ids", 100)
    if type(count) is not int or not 0 <= count <= _MOST_SENTINELS:
        raise ExchangeError(
            f"extra_ids of {path / 'tokenizer_config.json'} must be a number from 0 to "
            f"{_MOST_SENTINELS:,}, but is {count!r}; correct it."
        )
    usual = {str(spelled.get(f"{name}_token")) for name in ("pad", "eos", "unk", "bos")}
    usual |= {"<pad>", "</s>", "<unk>"}
    check_added(
        path,
        spelled,
        optional_settings(path / FILE),
        f"{MODEL} and sentinels",
        lambda name: name in usual or _SENTINELS.fullmatch(name),
    )
    return count


def build_tokenizer(id_mapping: IdMapping, content: bytes, task: PrefixTask) -> Tokenizer:
    """Build the tokenizer of both sides."""
    return Tokenizer(
        ImportedModel(id_mapping, "sentencepiece", content),
        source_language=task.languages[0],
        target_language=task.languages[1],
        source_prefix=task.prefix,
    )


def count_sentinels(tokenizer: Tokenizer) -> int:
    """Count the sentinels that are not in the sentencepiece model itself."""
    model = tokenizer.models[0]
    assert isinstance(model, ImportedModel)  # the writer has refused all others
    own = load_processor(model.files()["model"]).get_piece_size()
    numbered_pieces = zip(model.id_mapping.pieces, model.id_mapping.origins, strict=True)
    return sum(
        piece is not None and number is not None and number >= own and bool(_SENTINELS.match(piece))
        for piece, number in numbered_pieces
    )
