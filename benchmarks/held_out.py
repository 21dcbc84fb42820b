"""
Held-out pairs that occur in the training text of known corpora, as `heedful train` reports them.

    python -m benchmarks.held_out

Compares each corpus with its own validation and test sets. Writes `docs/results/held-out.json` and
builds the page from it.
"""

from collections.abc import Iterable, Iterator
from itertools import count, islice
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

from benchmarks.report import ResultPage, arguments, data_folder
from heedful.data.overlap.leaks import Leaks
from heedful.experiments.page import table
from heedful.experiments.record import Record
from heedful.preparation.held_out import read_held_out
from heedful.text.corpus import Corpus, expand

# Number of pairs that are read at once, as in training.
_PAIRS = 10_000


class ComparedCorpus(NamedTuple):
    """A corpus and its held-out sets."""

    name: str
    languages: tuple[str, str]
    train: tuple[str, ...]
    """Patterns of the training files, with `*` for the language."""
    held_out: tuple[str, ...]
    """A file pattern for each held-out set, with `*` for the language."""


_WMT = tuple(f"newstest{year}" for year in range(2009, 2013))


def _tatoeba(languages: tuple[str, str], folder: str) -> ComparedCorpus:
    """Describe a corpus that has training, development and test files."""
    train, dev, test = (f"{folder}/{part}.*.xz" for part in ("train", "dev", "test"))
    return ComparedCorpus(folder, languages, (train,), (dev, test))


CORPORA = (
    *(
        ComparedCorpus(
            f"multi30k, en-{language}",
            ("en", language),
            ("multi30k/raw/train.*.gz",),
            ("multi30k/raw/val.*.gz", "multi30k/raw/test_2016_flickr.*.gz"),
        )
        for language in ("de", "fr")
    ),
    _tatoeba(("en", "de"), "tatoeba-en-de"),
    _tatoeba(("en", "fr"), "tatoeba-en-fr"),
    _tatoeba(("en", "ja"), "tanaka-en-ja"),
    ComparedCorpus(
        "europarl-fr-en",
        ("fr", "en"),
        tuple(f"europarl-fr-en/train.{shard:02}.*.xz" for shard in range(10)),
        ("europarl-fr-en/dev.*.xz",),
    ),
    ComparedCorpus(
        "news tests 2008 to 2012",
        ("en", "de"),
        tuple(f"wmt-newstest/en-de/{name}.*.xz" for name in ("news-test2008", *_WMT)),
        ("wmt-newstest/en-de/newstest2013.*.xz", "wmt-newstest/en-de/newstest2014.*.xz"),
    ),
)


def main() -> None:
    """Compare every corpus with each of its held-out sets."""
    options = arguments(__doc__).parse_args()
    rows = [row for corpus in CORPORA for row in compare(corpus, data_folder())]
    PAGE.keep("held-out", {"rows": rows}, options.commit)


def compare(corpus: ComparedCorpus, folder: Path) -> Iterator[dict[str, Any]]:
    """Compare the training text with each held-out set; yield a row for each set."""
    for name in corpus.held_out:
        held_out, _ = read_held_out(_read([name], corpus.languages, folder))
        begun = process_time()
        leaks = Leaks(held_out)
        seconds, numbers = process_time() - begun, count(1)
        pairs = _read(corpus.train, corpus.languages, folder).pairs()
        while part := list(islice(pairs, _PAIRS)):
            sources, targets = ([pair[side] for pair in part] for side in (0, 1))
            begun = process_time()
            lines = [next(numbers) for _ in part]
            leaks.count(sources, targets, lines)
            seconds += process_time() - begun
        row = {
            "corpus": corpus.name,
            "held_out": Path(name).name.split(".")[0],
            "held_out_pairs": len(held_out.lines),
            "pairs": next(numbers) - 1,
            "exact": leaks.exact,
            "both": leaks.both,
            "near": leaks.near,
            "repeated": leaks.repeated,
            "seconds": seconds,
            "note": leaks.note(),
        }
        print(row, flush=True)
        yield row


def _read(names: Iterable[str], languages: tuple[str, str], folder: Path) -> Corpus:
    """Find the files of both languages."""
    names = list(names)
    source, target = (
        expand([folder / name.replace("*", language) for name in names]) for language in languages
    )
    return Corpus(source, target)


def body(record: Record) -> str:
    """Format the measurements as Markdown."""
    rows = [
        row | {"share": row["repeated"] / row["held_out_pairs"]}
        for row in record.measurements["rows"]
    ]
    rows_of_page = table(
        "training text | pairs | held-out set | its pairs | repeated in training | share "
        "| training pairs with an exact repetition | both sides "
        "| training pairs with a near repetition",
        "{corpus} | {pairs:,} | {held_out} | {held_out_pairs:,} | {repeated:,} | {share:.1%} "
        "| {exact:,} | {both:,} | {near:,}",
        rows,
    )
    return (
        "The table counts held-out pairs with an exact or near repetition in the training text, "
        "and the training pairs with these repetitions. `heedful train` and `heedful data prepare` "
        "report the same counts "
        "([definition](../howto/text.md#held-out-text-in-the-training-text)). No text was "
        f"cleaned.\n\n{rows_of_page}\n\nThe option `--exclude` with the held-out files drops these "
        "training pairs."
    )


PAGE = ResultPage("held-out", "Held-out text in training text", {"held-out": body})


if __name__ == "__main__":
    main()
