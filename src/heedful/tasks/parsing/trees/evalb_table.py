"""The exact table that EVALB prints: a line for each sentence, and both summaries."""

from collections.abc import Iterator

from heedful.tasks.parsing.trees.evalb import (
    ERROR,
    SKIP,
    EvalbResult,
    EvalbSentence,
    EvalbTotals,
    percent,
)

_HEAD = (
    "  Sent.                        Matched  Bracket   Cross        Correct Tag",
    " ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy",
)
_RULE = "=" * 76


def evalb_table(result: EvalbResult) -> Iterator[str]:
    """Yield the lines that EVALB prints for a result."""
    yield from (*_HEAD, _RULE)
    for number, sentence in enumerate(result.sentences, start=1):
        yield _row(number, sentence)
    yield _RULE
    yield _total_row(result.all)
    yield "=== Summary ==="
    yield from _summary("All", result.all)
    yield from _summary(f"len<={result.parameters.cutoff}", result.short)


def _row(number: int, sentence: EvalbSentence) -> str:
    """Format the line of a sentence."""
    recall, precision = (
        percent(sentence.matched, sentence.gold),
        percent(sentence.matched, sentence.test),
    )
    return (
        f"{number:4}  {sentence.length:3}    {sentence.status}  {recall:6.2f} {precision:6.2f}   "
        f"{sentence.matched:3}    {sentence.gold:3}  {sentence.test:3}    {sentence.crossing:3}   "
        f"{sentence.words:4}  {sentence.tags:4}   {percent(sentence.tags, sentence.words):6.2f}"
    )


def _total_row(totals: EvalbTotals) -> str:
    """Format the line of totals; if a side has no brackets, EVALB omits all bracket statistics."""
    matched, gold, test, crossing, words, tags = map(
        totals.total, ("matched", "gold", "test", "crossing", "words", "tags")
    )
    row = f"  {words:5} {tags:5}   {totals.tagging:6.2f}"
    if not (gold and test):
        return row
    scores = f"{totals.recall:6.2f} {totals.precision:6.2f}"
    return f"{'':16}{scores} {matched:6} {gold:5} {test:5}  {crossing:5}{row}"


def _summary(name: str, totals: EvalbTotals) -> Iterator[str]:
    """Yield the lines of a summary."""
    yield ""
    yield f"-- {name} --"
    for label, number in (
        ("Number of sentence", len(totals.sentences)),
        ("Number of Error sentence", totals.number(ERROR)),
        ("Number of Skip  sentence", totals.number(SKIP)),
        ("Number of Valid sentence", len(totals.valid)),
    ):
        yield f"{label:<25} = {number:6}"
    f1 = totals.f1
    for label, score in (
        ("Bracketing Recall", totals.recall),
        ("Bracketing Precision", totals.precision),
        ("Bracketing FMeasure", f1),
        ("Complete match", totals.complete),
        ("Average crossing", totals.crossing),
        ("No crossing", totals.crossing_at_most(0)),
        ("2 or less crossing", totals.crossing_at_most(2)),
        ("Tagging accuracy", totals.tagging),
    ):
        # on most CPUs, C prints 0 / 0 in this way
        yield f"{label:<25} = {'-nan' if score is None else format(score, '.2f'):>6}"
