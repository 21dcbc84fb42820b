"""Streaming translation in constant memory and input order; output is written without delay."""

import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, TypeVar

from heedful.search.settings import SearchOptions
from heedful.text.lines import json_line
from heedful.text.nouns import count_noun
from heedful.text.reading.note import ReadingCounts
from heedful.translation.engine import TranslationEngine
from heedful.translation.mbr import least_risk
from heedful.translation.reading import LongLines
from heedful.translation.result import Translation, WordAlignment
from heedful.translation.side_files import zip_side_files

# This many lines are sorted by length together: enough for full batches of similar length.
_WINDOW = 2048
_PAUSE_SECONDS = 0.05
# Replacement for “|||” in a text, because “|||” separates the fields of an n-best list.
_ESCAPED = "&#124;" * 3
_Item = TypeVar("_Item")


@dataclass(frozen=True)
class OutputFormat:
    """
    The output format of translations.

    Several translations per line are written as in Moses: ``number ||| text ||| score``, with the
    links as a further field. ``|||`` in a text becomes ``&#124;&#124;&#124;``.
    """

    format: str = "text"
    """``text`` for plain lines, or ``jsonl`` for one JSON object per line."""
    n_best: int = 1
    """Number of translations written per line."""
    scores: bool = False
    """Whether plain lines include the score."""
    alignments: bool = False
    """Whether plain lines include the word links."""

    def lines(self, number: int, translation: Translation, source: str = "") -> Iterator[str]:
        """
        Format one translated line.

        `number`: number of the input line, counted from 0. `source`: the input line, for the word
        links.

        One translation in plain text is the text alone, or score, text and links separated by tabs.
        """
        if self.format == "jsonl":
            entry = {"line": number, **_entry(translation)}
            if self.n_best > 1:
                entry["alternatives"] = [
                    _entry(alternative) for alternative in translation.alternatives
                ]
            yield json_line(entry)
        elif self.n_best > 1:
            for candidate in (translation, *translation.alternatives):
                text = candidate.text.strip().replace("|||", _ESCAPED)
                parts = [str(number), text, f"{candidate.score:.6f}"]
                yield " ||| ".join(parts + self._links(candidate, source))
        else:
            score = [f"{translation.score:.6f}"] if self.scores else []
            links, text = self._links(translation, source), translation.text
            if score or links:  # a tab in the text would look like a separator of fields
                text = text.strip().replace("\t", " ")
            yield "\t".join([*score, text, *links])

    def replaced_controls(self, translation: Translation) -> int:
        """Count the control characters that were replaced in the output of a line."""
        written = (translation, *translation.alternatives)[: self.n_best]
        return sum(candidate.replaced_controls for candidate in written)

    def _links(self, translation: Translation, source: str) -> list[str]:
        """Format the links as a field, if requested."""
        if not self.alignments:
            return []
        alignment = translation.alignment
        return [str(alignment.between_spaces(source)) if alignment else ""]


def translate_lines(
    translator: TranslationEngine,
    lines: Iterable[str],
    output: TextIO,
    output_format: OutputFormat,
    warn: Callable[[str], None],
    options: SearchOptions | None = None,
    *,
    name: str = "the input",
    side_files: Mapping[str, Path] | None = None,
    mbr: bool = False,
    align_by: str = "",
    replace_unknown: bool | Mapping[str, str] = False,
    glossary: Mapping[str, str] | None = None,
    protected: Sequence[str] | None = None,
    long_lines: LongLines = "split",
) -> int:
    """
    Translate a stream of lines.

    `options`: options of the search; `n_best` is the number of translations of each line.
    `mbr`: whether to write the translations with minimum Bayes risk.

    A thread reads at most two groups of lines ahead, so memory does not grow with the text.
    """
    done = replaced = replaced_lines = 0
    changed = ReadingCounts()
    files = side_files or {}
    warned: set[str] = set()

    def warn_once(text: str) -> None:
        """Warn about each line, but give each kind of warning about the whole input only once."""
        first = text.split(" ", maxsplit=1)[0]
        kind = "share" if first[:1].isdigit() else first
        if kind == "line" or kind not in warned:
            warned.add(kind)
            warn(text)

    for window in windows(zip_side_files(lines, name, files)):
        side_entries = {what: [entries[what] for _, entries in window] for what in files}
        translations = translator.translate(
            [line for line, _ in window],
            options,
            target_prefix=side_entries.get("target_prefix"),
            force_phrases=side_entries.get("force_phrases"),
            avoid_phrases=side_entries.get("avoid_phrases"),
            alignments=output_format.alignments,
            align_by=align_by,
            replace_unknown=replace_unknown,
            glossary=glossary,
            protected=protected,
            long_lines=long_lines,
            first_line=done + 1,
            warn=warn_once,
        )
        if mbr:
            translations = [
                least_risk(translation, output_format.n_best) for translation in translations
            ]
        for (source, _), translation in zip(window, translations, strict=True):
            controls = output_format.replaced_controls(translation)
            replaced += controls
            replaced_lines += controls > 0
            changed.add(translation.reading)
            for line in output_format.lines(done, translation, source):
                output.write(line + "\n")
            done += 1
        output.flush()
    if replaced:
        warn(
            f"the model wrote control characters or line breaks ({replaced:,} in "
            f"{count_noun(replaced_lines, 'line')}); each was replaced by a space."
        )
    for sentence in changed.warnings():
        warn(sentence)
    return done


def windows(lines: Iterable[_Item], size: int = _WINDOW) -> Iterator[list[_Item]]:
    """Group the lines that are available, without waiting for more."""
    arrived: queue.Queue[_Item | BaseException | None] = queue.Queue(maxsize=2 * size)
    given_up = threading.Event()

    def read() -> None:
        try:
            for line in lines:
                while not given_up.is_set():
                    try:
                        arrived.put(line, timeout=1.0)
                        break
                    except queue.Full:
                        continue
                if given_up.is_set():
                    return
            arrived.put(None)
        except BaseException as error:
            arrived.put(error)

    threading.Thread(target=read, daemon=True).start()
    try:
        window: list[_Item] = []
        while True:
            try:
                item = arrived.get(timeout=_PAUSE_SECONDS if window else None)
            except queue.Empty:
                yield window
                window = []
                continue
            if item is not None and not isinstance(item, BaseException):
                window.append(item)
                if len(window) < size:
                    continue
            if window:
                yield window
                window = []
            if isinstance(item, BaseException):
                raise item
            if item is None:
                return
    finally:
        given_up.set()


def alignment_entry(alignment: WordAlignment) -> dict[str, Any]:
    """Convert an alignment to plain values."""
    return {
        "alignment": [list(link) for link in alignment.links],
        "source_words": list(alignment.source_words),
        "target_words": list(alignment.target_words),
    }


def _entry(translation: Translation) -> dict[str, Any]:
    """Convert a translation to plain values."""
    entry: dict[str, Any] = {
        "text": translation.text,
        "score": translation.score,
        "log_probability": translation.log_probability,
        "tokens": list(translation.tokens),
    }
    if translation.alignment:
        entry |= alignment_entry(translation.alignment)
    if translation.reading is not None and (note := translation.reading.to_dict()):
        entry["reading"] = note
    return entry
