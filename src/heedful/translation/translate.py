"""Lines in, translations out: in constant memory, in order, as soon as the input pauses."""

import json
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, TypeVar

from heedful.translation.engine import TranslationEngine
from heedful.translation.mbr import least_risk
from heedful.translation.result import Translation, WordAlignment
from heedful.translation.side_files import zip_side_files

# So many lines are sorted by length together: enough for full batches of similar length.
_WINDOW = 2048
_PAUSE_SECONDS = 0.05
_Item = TypeVar("_Item")


@dataclass(frozen=True)
class OutputFormat:
    """
    Say how translations are written.

    Attributes
    ----------
    format : {'text', 'jsonl'}, default 'text'
        Plain lines, or one JSON object a line.
    n_best : int, default 1
        Translations a line.
    scores : bool, default False
        Whether plain lines carry the score.
    alignments : bool, default False
        Whether plain lines carry the links of their words.

    Notes
    -----
    Several translations a line are written as Moses does: ``number ||| text ||| score``, and the
    links as a further field.
    """

    format: str = "text"
    n_best: int = 1
    scores: bool = False
    alignments: bool = False

    def lines(self, number: int, translation: Translation) -> Iterator[str]:
        """
        Write one translated line.

        Parameters
        ----------
        number : int
            Of the input line, counted from 0.
        translation : Translation
            With its alternatives.

        Yields
        ------
        str
            Output lines without line end.

        Notes
        -----
        In plain text with one translation it is the text alone, or score, text and links with tabs
        between them.
        """
        if self.format == "jsonl":
            entry = {"line": number, **_entry(translation)}
            if self.n_best > 1:
                entry["alternatives"] = [_entry(other) for other in translation.alternatives]
            yield json.dumps(entry, ensure_ascii=False)
        elif self.n_best > 1:
            for one in (translation, *translation.alternatives):
                parts = [str(number), _one_line(one.text), f"{one.score:.6f}"]
                yield " ||| ".join(parts + self._links(one))
        else:
            score = [f"{translation.score:.6f}"] if self.scores else []
            yield "\t".join([*score, _one_line(translation.text), *self._links(translation)])

    def _links(self, translation: Translation) -> list[str]:
        """Write the links as a field, if they are wanted."""
        return [str(translation.alignment)] if self.alignments else []


def translate_lines(
    translator: TranslationEngine,
    lines: Iterable[str],
    output: TextIO,
    output_format: OutputFormat,
    warn: Callable[[str], None],
    *,
    name: str = "the input",
    side_files: Mapping[str, Path] | None = None,
    mbr: int = 0,
    **search: Any,
) -> int:
    """
    Translate a stream of lines.

    Parameters
    ----------
    translator : TranslationEngine
        Does the work.
    lines : iterable of str
        Without line ends; may be endless or slow.
    output : text file
        Where translations go; flushed whenever the input pauses.
    output_format : OutputFormat
        How they are written.
    warn : callable
        Told in a sentence about lines that had to be cut, and once about unknown subwords.
    name : str, default 'the input'
        What to call `lines` in messages.
    side_files : mapping of str to Path, optional
        Files with one entry for each line: ``target_prefix``, ``force_phrases``,
        ``avoid_phrases``.
    mbr : int, default 0
        Candidates to draw for each line, of which the one of least risk is written; 0 for none.
    **search : object
        Passed to its `translate`.

    Returns
    -------
    int
        Number of lines.

    Notes
    -----
    Reads ahead in a thread of its own, at most two windows, so memory does not grow with the text.
    """
    done = 0
    files = side_files or {}
    told: set[str] = set()

    def warn_once(text: str) -> None:
        """Tell of each line, but of the input as a whole only once."""
        kind = "line" if text.startswith("line ") else "input"
        if kind == "line" or kind not in told:
            told.add(kind)
            warn(text)

    for window in windows(zip_side_files(lines, name, files)):
        asked: dict[str, Any] = {what: [entries[what] for _, entries in window] for what in files}
        found = translator.translate(
            [line for line, _ in window],
            n_best=mbr or output_format.n_best,
            first_line=done + 1,
            warn=warn_once,
            **asked,
            **search,
        )
        if mbr:
            found = [least_risk(translation, output_format.n_best) for translation in found]
        for translation in found:
            for line in output_format.lines(done, translation):
                output.write(line + "\n")
            done += 1
        output.flush()
    return done


def windows(lines: Iterable[_Item], size: int = _WINDOW) -> Iterator[list[_Item]]:
    """
    Group lines that are there, without waiting for ones that are not.

    Parameters
    ----------
    lines : iterable
        May block for any time between two lines; a line may carry what belongs to it.
    size : int, default 2048
        Most lines of a group.

    Yields
    ------
    list
        A full group, or what came before the input paused.

    Notes
    -----
    An error of the iterable is raised here, after the lines before it were handed out.
    """
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
    """
    Name the parts of an alignment.

    Parameters
    ----------
    alignment : WordAlignment
        Words and links.

    Returns
    -------
    dict
        For JSON.

    Notes
    -----
    With the words, since links count words and only who counted knows what a word is.
    """
    return {
        "alignment": [list(link) for link in alignment.links],
        "source_words": list(alignment.source_words),
        "target_words": list(alignment.target_words),
    }


def _entry(translation: Translation) -> dict[str, Any]:
    """Name the parts of a translation."""
    entry = {
        "text": translation.text,
        "score": translation.score,
        "log_probability": translation.log_probability,
        "tokens": list(translation.tokens),
    }
    return entry | (alignment_entry(translation.alignment) if translation.alignment else {})


def _one_line(text: str) -> str:
    """Keep output aligned with input: byte pieces can spell a line feed."""
    return text.replace("\n", " ").replace("\r", " ")
