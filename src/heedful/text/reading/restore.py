"""
Restoration of a translation: loops are cut; case, terms and held pieces are restored.

Each step edits a `Draft`, which keeps the links of the words valid.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple
from unicodedata import category

from heedful.text.reading.case import CasedWords, restore_line, restore_word
from heedful.text.reading.draft import Draft, Edit, joined_edits, word_spans
from heedful.text.reading.held import Piece
from heedful.text.reading.letter_case import UNKNOWN, Languages
from heedful.text.reading.loops import cut_letter_loops, cut_word_loops
from heedful.text.reading.model_line import Gap, ModelLine
from heedful.text.reading.note import HeldNote, Where
from heedful.text.reading.place import best_place, linked_run, marks_after, marks_before
from heedful.text.reading.prefix import move_after_prefix
from heedful.text.reading.terms import UNSPACED

Span = tuple[int, int]


def cut_loops(translation: Draft, source: str, fixed: int = 0) -> tuple[Draft, int]:
    """Cut loops that the source lacks, from character `fixed` on; also return their number."""
    folded = [word.lower() for word in translation.words]
    spans = translation.spans
    edits = [
        Edit(max(fixed, spans[start - 1][1]), spans[end - 1][1], "")
        for start, end in cut_word_loops(folded, source.lower().split(" "))
        if spans[end - 1][1] > fixed
    ]
    if edits:
        translation = translation.edited(edits).without_empty()
    cuts, edits = len(edits), []
    for (start, end), word in zip(translation.spans, translation.words, strict=True):
        shorter, number = cut_letter_loops(word, source) if start >= fixed else (word, 0)
        cuts += number
        if number:
            edits.append(Edit(start, end, shorter))
    return translation.edited(edits), cuts


def restore_case(
    translation: Draft,
    originals: Sequence[str],
    cased: CasedWords,
    languages: Languages = UNKNOWN,
    fixed: int = 0,
) -> tuple[Draft, str]:
    """Restore the case of the source from character `fixed` on; also return the kind of case."""
    if not any(cased.changed):
        return translation, ""
    words = restore_line(translation.words, cased.line, languages.target)
    single = [number for number, changed in enumerate(cased.changed) if changed]
    case: str = cased.line or "words"
    if cased.line == "sentence":
        single = single[1:]
        case = "sentence words" if single else case
    if single and cased.line not in ("upper", "title"):
        linked = {j: i for i, j in sorted(translation.links, reverse=True) if i in single}
        for j, i in linked.items():
            words[j] = restore_word(originals[i], words[j], languages)
        if not translation.links:
            case = "lost"
    edits = [
        Edit(start, end, word)
        for (start, end), word, before in zip(
            translation.spans, words, translation.words, strict=True
        )
        if word != before and start >= fixed
    ]
    return translation.edited(edits), case


class _Put(NamedTuple):
    """The edit that fills a gap, and how its position was chosen."""

    gap: Gap
    edit: Edit
    where: Where


def put_back(
    translation: Draft, line: ModelLine, line_words: Sequence[Span], fixed: int = 0
) -> tuple[Draft, tuple[HeldNote, ...]]:
    """
    Put terms and held pieces into a translation.

    `line_words`: words of the prepared line; the links of the result connect them with words of the
    new text. `fixed`: the end of a prefix that is not changed.
    """
    if not line.gaps and not translation.links:
        return translation, ()
    seen = word_spans(line.text)
    runs = _term_runs(translation, line.gaps, seen)
    puts = [
        _put_term(translation, gap, line.text, runs[number], seen)
        if gap.piece.kind == "term"
        else _put_piece(translation, gap, line.text, seen, list(filter(None, runs)))
        for number, gap in enumerate(line.gaps)
    ]
    if fixed:
        puts = [
            put._replace(edit=move_after_prefix(put.edit, translation.text, fixed)) for put in puts
        ]
    edits = joined_edits(put.edit for put in puts if put.edit.text)
    changed = translation.edited(edits)
    words = word_spans(changed.text)
    links = set(_moved_links(changed, line, seen, line_words, words))
    here = 0
    for put in sorted(puts, key=lambda put: put.edit.start):
        start = changed.text.find(put.gap.piece.put, here)
        here = start + len(put.gap.piece.put) if start >= 0 else here
        if start >= 0:
            sources = _touched_words(line_words, put.gap.line)
            links.update(_links_of(put.gap.piece, sources, _touched_words(words, (start, here))))
    notes = tuple(
        HeldNote(put.gap.piece.text, put.gap.piece.put, put.where)
        for put in puts
        if put.where == "end" or not _is_mark(put.gap.piece)
    )
    return Draft(changed.text, tuple(words), tuple(sorted(links))), notes


def _links_of(
    piece: Piece, sources: Sequence[int], targets: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Link all words of a term to all words of its replacement, and other words one to one."""
    if piece.kind == "term":
        yield from product(sources, targets)
    elif sources and targets:
        most = max(len(sources), len(targets))
        for place in range(most):
            source, target = place * len(sources) // most, place * len(targets) // most
            yield sources[source], targets[target]


def _term_runs(translation: Draft, gaps: Sequence[Gap], seen: Sequence[Span]) -> list[Span | None]:
    """Find the target words of each term; no word belongs to two terms."""
    runs: list[Span | None] = []
    taken: set[int] = set()
    for gap in gaps:
        run: Span | None = None
        if gap.piece.kind == "term":
            links = [(i, j) for i, j in translation.links if j not in taken]
            run, _ = linked_run(_touched_words(seen, gap.seen), len(translation.spans), links)
            taken |= set(range(*run)) if run else set()
        runs.append(run)
    return runs


def _put_term(
    translation: Draft, gap: Gap, text: str, run: Span | None, seen: Sequence[Span]
) -> _Put:
    """Replace the translation of a term, or insert the replacement if none is found."""
    put, spans = gap.piece.put, translation.spans
    if run is None:
        empty_gap = gap._replace(seen=(gap.seen[0], gap.seen[0]))
        return _between_words(translation, empty_gap, len(_before(seen, gap.seen[0])))
    if not _is_its_own(translation, gap, text, run, seen):
        place = len(translation.text)
        return _Put(gap, Edit(place, place, f" {put}"), "end")
    start = marks_before(translation.text, *spans[run[0]])
    end = marks_after(translation.text, *spans[run[1] - 1])
    return _Put(gap, Edit(start, max(start, end), put), "aligned")


def _is_its_own(translation: Draft, gap: Gap, text: str, run: Span, seen: Sequence[Span]) -> bool:
    """Whether a run of words translates only a term; often unclear in scripts without spaces."""
    inside = _touched_words(seen, gap.seen)
    around = text[seen[inside[0]][0] : gap.seen[0]] + text[gap.seen[1] : seen[inside[-1]][1]]
    if any(map(str.isalnum, around)):
        return False
    is_shared = any(run[0] <= j < run[1] and i not in inside for i, j in translation.links)
    words = translation.text[translation.spans[run[0]][0] : translation.spans[run[1] - 1][1]]
    is_joined = re.search(f"[{UNSPACED}]", words) or run == (0, len(translation.spans))
    return not (is_shared and is_joined)


def _put_piece(
    translation: Draft, gap: Gap, text: str, seen: Sequence[Span], runs: Sequence[Span]
) -> _Put:
    """Choose the position of a piece that was cut out."""
    place, put, target = gap.seen[0], gap.piece.put, translation.text
    is_first = not any(map(str.isalnum, text[:place]))
    if is_first or not any(map(str.isalnum, text[place:])):
        before = " " if gap.spaced[0] and not is_first else ""
        after = " " if gap.spaced[1] and is_first else ""
        where = _after_opening(target, text[:place]) if is_first else len(target)
        if not is_first and text[place:]:
            where = _before_closing(target)
        return _Put(gap, Edit(where, where, f"{before}{put}{after}"), "edge")
    number = len(_before(seen, place))
    within = [(start, end) for start, end in seen if start < place < end]
    if within and any(map(str.isalnum, text[within[0][0] : place])):
        number += 1
    return _between_words(translation, gap, number, bool(within), runs)


def _between_words(
    translation: Draft,
    gap: Gap,
    number: int,
    is_glued: bool = False,
    runs: Sequence[Span] = (),
) -> _Put:
    """
    Choose a position between words by their links, or the end if the links are uncertain.

    `number`: number of source words before the gap. `is_glued`: whether punctuation of the same
    word follows the gap.
    """
    text, spans, put = translation.text, translation.spans, gap.piece.put
    boundary, is_sure = best_place(number, len(spans), translation.links)
    if not is_sure:
        return _Put(gap, Edit(len(text), len(text), f" {put}"), "end")
    # The position must not be inside the translation of a term.
    boundary = next((end for start, end in runs if start < boundary < end), boundary)
    before, after = gap.spaced
    if boundary == 0:
        edit = Edit(0, 0, f"{put} " if after else put)
    elif is_glued or boundary == len(spans):
        place = marks_after(text, *spans[boundary - 1]) if is_glued else _before_closing(text)
        edit = Edit(place, place, f" {put}" if before else put)
    else:
        left, right = spans[boundary - 1][1], spans[boundary][0]
        if before == after:
            edit = Edit(left, right, f" {put} " if before else put)
        else:
            place = right if before else left
            edit = Edit(place, place, put)
    return _Put(gap, edit, "aligned")


def _is_mark(piece: Piece) -> bool:
    """Whether a piece is punctuation that the vocabulary lacks; such a piece needs no note."""
    return piece.put == piece.text and all(category(sign)[0] in "PZ" for sign in piece.text)


def _after_opening(target: str, marks: str) -> int:
    """Return the end of the punctuation that a translation shares with the start of its source."""
    return len(marks.rstrip()) if marks.strip() and target.startswith(marks.rstrip()) else 0


def _before_closing(target: str) -> int:
    """Return the start of the punctuation at the end of a translation."""
    place = len(target)
    while place and not target[place - 1].isalnum():
        place -= 1
    return place or len(target)


def _before(spans: Sequence[Span], place: int) -> list[Span]:
    """List the words that end before a position."""
    return [span for span in spans if span[1] <= place]


def _touched_words(spans: Sequence[Span], part: Span) -> list[int]:
    """List the indices of the words that a part of a text overlaps."""
    first = bisect_right(spans, part[0], key=lambda span: span[1])
    stop = bisect_left(spans, part[1], key=lambda span: span[0])
    return list(range(first, stop))


def _moved_links(
    changed: Draft,
    line: ModelLine,
    seen: Sequence[Span],
    line_words: Sequence[Span],
    words: Sequence[Span],
) -> Iterator[tuple[int, int]]:
    """Convert links to word indices in the prepared line and in the new text."""
    for i, j in changed.links:
        if i < len(seen):
            start, end = seen[i]
            origin = line.origin(start), line.origin(end - 1) + 1
            for source in _touched_words(line_words, origin):
                for target in _touched_words(words, changed.spans[j]):
                    yield source, target
