"""
Encoding of text to disk: read, filter, encode in several processes, merge.

::

    corpus ─ rules for text ─ shards of 10,000 pairs ─┬─ process ─ shard file ─┬─ encoded pairs
                                                      └─ process ─ shard file ─┘

The result is the same, byte for byte, for any number of processes and after any number of
interruptions. Finished shards are kept in a hidden folder next to the result until all shards are
finished.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from itertools import chain, islice
from pathlib import Path

from heedful.data.cleaning.filter import RULES, CleaningReport, PairFilter
from heedful.data.cleaning.rules import TextFilter, TextRules
from heedful.data.encoded.dataset import META, EncodedPairs
from heedful.data.encoded.merge_shards import id_type, write_pairs
from heedful.data.encoded.shards import (
    Shard,
    encode_shard,
    is_finished,
    read_numbers,
    read_part,
    read_report,
    shard_digest,
)
from heedful.data.encoded.texts import write_texts
from heedful.data.encoded.whole_folder import whole_folder
from heedful.data.encoded.worker_pool import Workers
from heedful.data.overlap.leaks import Leaks
from heedful.errors import TextError
from heedful.machine.processor import can_start_threads
from heedful.text.corpus import Corpus
from heedful.text.escapes import has_escapes
from heedful.tokenization.tokenizer import Tokenizer

# A process encodes one shard at a time, and a run that was killed repeats unfinished shards. The
# limit on characters bounds the memory that long lines take.
_SHARD_PAIRS = 10_000
_SHARD_CHARACTERS = 4_000_000
_ENDING = ".safetensors"
_ALL_RULES_OFF = TextRules()


def encode_corpus(
    corpus: Corpus,
    tokenizer: Tokenizer,
    pair_filter: PairFilter,
    folder: Path,
    *,
    rules: TextRules = _ALL_RULES_OFF,
    processes: int = 1,
    keep_text: bool = False,
    progress: Callable[[int], object] | None = None,
    leaks: Leaks | None = None,
) -> EncodedPairs:
    """
    Encode text to disk.

    `leaks`: counts the kept pairs that repeat held-out text.

    Text is processed in shards of a few megabytes, so memory use is constant, except for the hashes
    that find duplicates. The files are written into a hidden folder, synced and renamed, so
    `folder` is complete or absent. After an interruption, the text is read and filtered again, and
    only missing shards are encoded.

    Raises `TextError` if the text cannot be used, or no pair is kept. Raises `StorageError` if the
    disk is full or the folder cannot be written. Raises `RunFolderError` if `folder` holds
    something other than encoded text.
    """
    folder = Path(folder)
    shards = folder.with_name(f".{folder.name}.shards")
    try:
        with whole_folder(folder, META, "finished shards are kept") as partial:
            shards.mkdir(exist_ok=True)
            report = CleaningReport()
            fits = _length_test(tokenizer, pair_filter)
            texts = _shards(corpus, rules, report, progress, leaks, fits)
            parts = _encode(texts, shards, tokenizer, pair_filter, processes)
            report = CleaningReport.merged([report, *map(read_report, parts)])
            _require_pairs(report, shards)
            write_pairs(
                partial,
                map(read_part, parts),
                (id_type(tokenizer.source_size), id_type(tokenizer.target_size)),
                report,
                {
                    "tokenizer": tokenizer.fingerprint,
                    "filter": asdict(pair_filter),
                    "rules": {**asdict(rules), "excluded": len(rules.excluded)},
                },
            )
            if keep_text:
                write_texts(_kept_pairs(corpus, parts), partial)
        shutil.rmtree(shards, ignore_errors=True)
    finally:
        if not any(shards.glob(f"*{_ENDING}")):
            shutil.rmtree(shards, ignore_errors=True)
    return EncodedPairs.open(folder, tokenizer)


def _shards(
    corpus: Corpus,
    rules: TextRules,
    report: CleaningReport,
    on_progress: Callable[[int], object] | None,
    leaks: Leaks | None,
    fits: Callable[[str, str], bool],
) -> Iterator[Shard]:
    """
    Read and filter the text; dropped pairs go into the report, kept pairs into shards.

    `fits`: whether a pair of a shard is within the limits of length.
    """
    judge = TextFilter(rules)
    report.notes += judge.notes
    read, escaped, first_escaped = 0, 0, 0
    for sources, targets in _chunks(corpus.pairs()):
        shard = Shard([], [], [])
        reasons = judge.reasons(sources, targets)
        for line, (reason, source, target) in enumerate(
            zip(reasons, sources, targets, strict=True), start=read + 1
        ):
            if has_escapes(source) or has_escapes(target):
                escaped, first_escaped = escaped + 1, first_escaped or line
            if reason is None:
                shard.lines.append(line)
                shard.sources.append(source)
                shard.targets.append(target)
            else:
                report.drop(reason, line, source, target)
        read += len(sources)
        if on_progress is not None:
            on_progress(read)
        if shard.lines:
            yield shard
            if leaks is not None:  # while processes encode the shard
                leaks.count(shard.sources, shard.targets, shard.lines, fits)
    if escaped:
        report.notes.append(
            f"{escaped:,} of {read:,} pairs contain escapes of Moses' tokenizer, such as &apos; "
            f"or @-@, the first on line {first_escaped:,}; a model learns to write these escapes. "
            "data.unescape=true undoes them."
        )
    report.notes += corpus.skipped.notes()
    if leaks is not None and (note := leaks.note()):
        report.notes.append(note)


def _length_test(tokenizer: Tokenizer, pair_filter: PairFilter) -> Callable[[str, str], bool]:
    """Return a function that tests the lengths of a pair whose shard may not be encoded yet."""

    def fits(source: str, target: str) -> bool:
        try:
            (source_ids,) = tokenizer.encode_source([source])
            (target_ids,) = tokenizer.encode_target([target])
        except TextError:  # the encoding of the shard raises it again
            return False
        return pair_filter.reason(len(source_ids), len(target_ids)) is None

    return fits


def _chunks(pairs: Iterator[tuple[str, str]]) -> Iterator[tuple[list[str], list[str]]]:
    """Group pairs so that memory stays bounded, even for lines of a megabyte."""
    sources: list[str] = []
    targets: list[str] = []
    characters = 0
    for source, target in pairs:
        sources.append(source)
        targets.append(target)
        characters += len(source) + len(target)
        if len(sources) == _SHARD_PAIRS or characters >= _SHARD_CHARACTERS:
            yield sources, targets
            sources, targets, characters = [], [], 0
    if sources:
        yield sources, targets


def _encode(
    shards: Iterator[Shard],
    folder: Path,
    tokenizer: Tokenizer,
    pair_filter: PairFilter,
    processes: int,
) -> list[Path]:
    """Encode the missing shards; return the files of all shards."""
    paths = []
    # two shards show whether there is work for several processes
    first = list(islice(shards, 2))
    with ExitStack() as stack:
        workers = None
        if processes > 1 and len(first) > 1 and can_start_threads(processes):
            subwords = folder / "tokenizer"
            subwords.mkdir(exist_ok=True)
            tokenizer.save(subwords)
            workers = stack.enter_context(Workers(processes, subwords, pair_filter))
        for number, shard in enumerate(chain(first, shards)):
            packed = shard.pack()
            digest = shard_digest(packed, tokenizer.fingerprint, pair_filter)
            paths.append(folder / f"{number:08d}-{digest}{_ENDING}")
            if is_finished(paths[-1]):
                continue
            if workers is None:
                encode_shard(shard, tokenizer, pair_filter, paths[-1])
            else:
                workers.submit(paths[-1], packed)
    return paths


def _kept_pairs(corpus: Corpus, parts: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """Read the text again and yield only the kept pairs."""
    lines = enumerate(corpus.pairs(), start=1)
    for wanted in chain.from_iterable(read_numbers(path).tolist() for path in parts):
        yield next(pair for line, pair in lines if line == wanted)


def _require_pairs(report: CleaningReport, shards: Path) -> None:
    """Refuse text if every pair was dropped."""
    if not report.kept:
        shutil.rmtree(shards, ignore_errors=True)
        most = max(report.dropped, key=lambda reason: report.dropped[reason])
        raise TextError(
            "At least one sentence pair must pass the filter rules, but none did "
            f"({report.summary()}). The most frequent reason is that {RULES[most]}. Change that "
            "rule, or correct the text."
        )
