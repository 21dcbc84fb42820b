"""The text that all systems are trained and scored on."""

from pathlib import Path
from typing import NamedTuple

from heedful.data.text_parts import PARTS
from heedful.data.toy_grammar.corpus import write_grammar_text
from heedful.errors import TextError
from heedful.text.lines import plain_lines

_GRAMMAR_SIZES = (20_000, 300, 300)
_GRAMMAR_VOCABULARY = 1000
_GRAMMAR_NARROW = 2  # for a demonstration with simple sentences


class TableCorpus(NamedTuple):
    """Files `train`, `valid` and `test` in two languages, such as `train.en` and `train.de`."""

    folder: Path
    source: str
    target: str
    """Endings of the source and target files, which are language codes."""
    vocabulary: int
    """Number of subwords."""
    narrow: int = 1
    """Factor by which models are narrower than the table's."""

    def file(self, part: str, language: str) -> Path:
        """Return the path of a part's file in a language."""
        return self.folder / f"{part}.{language}"

    def lines(self, part: str, language: str) -> list[str]:
        """Read the lines of a part in a language."""
        return list(plain_lines(self.file(part, language)))

    def word_vocabulary(self) -> int:
        """Choose a vocabulary size that leaves some words unknown, as in every real text."""
        languages = (self.source, self.target)
        words = [
            {word for line in self.lines("train", language) for word in line.split()}
            for language in languages
        ]
        return min(self.vocabulary, *(9 * len(known) // 10 for known in words))


def grammar_corpus(folder: Path) -> TableCorpus:
    """Write English and French text of the embedded grammar."""
    write_grammar_text(folder, _GRAMMAR_SIZES)
    return TableCorpus(folder, "en", "fr", _GRAMMAR_VOCABULARY, _GRAMMAR_NARROW)


def find_corpus(folder: Path, source: str = "en", vocabulary: int = 4000) -> TableCorpus:
    """Find the six files of a folder; raises `TextError` if one is missing or lines are unequal."""
    if not folder.is_dir():
        raise TextError(
            f"the data must be a folder with train, valid and test in two languages, but {folder} "
            "is not a folder; correct its name."
        )
    targets = sorted({path.suffix[1:] for path in folder.glob("train.*")} - {source})
    if len(targets) != 1:
        names = ", ".join(path.name for path in sorted(folder.glob("train.*"))) or "none"
        raise TextError(
            f"{folder} must have train.{source} and train.XX, where XX is the target language, "
            f"but its training files are: {names}; choose another source language with "
            "--source-language."
        )
    corpus = TableCorpus(folder, source, targets[0], vocabulary)
    for part in PARTS:
        for language in (source, targets[0]):
            if not corpus.file(part, language).is_file():
                raise TextError(
                    f"{folder} must have train, valid and test in {source} and {targets[0]}, but "
                    f"{part}.{language} is missing; add it."
                )
        pair = [corpus.file(part, language) for language in (source, targets[0])]
        counts = [sum(1 for _ in plain_lines(file)) for file in pair]
        if counts[0] != counts[1] or not counts[0]:
            raise TextError(
                f"{pair[0]} and {pair[1]} must have the same number of lines, at least one, but "
                f"have {counts[0]:,} and {counts[1]:,}; give files whose lines are translations "
                "of each other."
            )
    return corpus


def choose_corpus(data: Path | None, source: str, vocabulary: int, folder: Path) -> TableCorpus:
    """Find the text of a folder; if none is named, write the embedded grammar's text."""
    return grammar_corpus(folder) if data is None else find_corpus(data, source, vocabulary)
