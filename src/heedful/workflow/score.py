"""Log-probabilities of given pairs, from files, in constant memory."""

import json
from collections.abc import Iterator
from itertools import islice

from heedful.data.corpus import Corpus
from heedful.workflow.translator import Translator

_WINDOW = 2048


def score_lines(translator: Translator, corpus: Corpus, format: str = "text") -> Iterator[str]:
    """
    Score every pair of a corpus.

    Parameters
    ----------
    translator : Translator
        Does the work.
    corpus : Corpus
        Sources and their translations.
    format : {'text', 'jsonl'}, default 'text'
        The log-probability alone, or a JSON object with the subwords' own.

    Yields
    ------
    str
        One line a pair, without line end.

    Notes
    -----
    Natural logarithms, the end symbol included, no length penalty.
    """
    pairs = corpus.pairs()
    number = 0
    while window := list(islice(pairs, _WINDOW)):
        sources, targets = [s for s, _ in window], [t for _, t in window]
        for log_probabilities in translator.score(sources, targets):
            total = sum(log_probabilities)
            if format == "jsonl":
                entry = {"line": number, "log_probability": total, "tokens": log_probabilities}
                yield json.dumps(entry)
            else:
                yield f"{total:.6f}"
            number += 1
