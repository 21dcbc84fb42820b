"""
Trees as training text: words on one side, symbols on the other.

::

    trees ─ clean ─ RUN/trees/train.words and train.symbols ─ subwords and ids, as for any text
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

from heedful.arguments import Files
from heedful.config.schema import RunConfig
from heedful.data.coverage import unknown_warning
from heedful.data.encoded.dataset import EncodedPairs
from heedful.errors import TextError
from heedful.files import write_whole
from heedful.preparation.corpora_file import CorpusPart
from heedful.preparation.raw_text import RawText
from heedful.preparation.training_data import (
    Preparation,
    Sizes,
    UnpreparedText,
    as_list,
    digest_of,
    file_records,
)
from heedful.runs.folder import RunFolder
from heedful.tasks.parsing.config import ParsingConfig
from heedful.tasks.parsing.trees.clean import TreeCleaning, clean_trees
from heedful.tasks.parsing.trees.linearize import check_labels, linearize
from heedful.tasks.parsing.trees.read import read_trees
from heedful.tasks.parsing.trees.sentence import join_words
from heedful.tasks.parsing.trees.tree import Tree
from heedful.text.corpus import Corpus, expand
from heedful.text.file_formats import TextSource
from heedful.text.nouns import count_noun
from heedful.tokenization.tokenizer import Tokenizer

_FOLDER = "trees"
_NAMED = 5


@dataclass(frozen=True)
class TreeText(UnpreparedText):
    """Training data from bracketed trees."""

    files: tuple[TextSource, ...]
    _notes: list[str] = field(default_factory=list)
    """Additional entries of the report, collected while the text is written."""
    _written: list[Corpus] = field(default_factory=list)
    """The corpus that was written from the trees."""

    def configure(self, config: RunConfig) -> RunConfig:
        """Name the source “words” and the target “trees”, unless they have names."""
        return config.with_settings(
            {
                "data.source_language": config.data.source_language or "words",
                "data.target_language": config.data.target_language or "trees",
            }
        )

    def fingerprint(self) -> Sizes:
        """List names and sizes of the files."""
        return {"trees": file_records(self.files)}

    def describe(self, config: RunConfig) -> str:
        """Read the trees, and describe how they were cleaned."""
        del config
        report = TreeCleaning()
        read_clean(self.files, report)
        return report.summary()

    def weights(self) -> None:
        """Return None, because there is one corpus."""

    def report(self, pairs: Sequence[EncodedPairs], tokenizer: Tokenizer) -> Iterator[str]:
        """Describe how many trees and pairs were kept and dropped."""
        yield from self._notes
        for encoded in pairs:
            yield encoded.report.summary()
            yield from encoded.report.notes
            for corpus in self._written:
                if warning := unknown_warning(encoded, tokenizer, corpus):
                    yield f"warning: {warning}"

    def prepare(self, job: Preparation) -> None:
        """Write the trees as text, unless this text already exists, and encode it."""
        place = job.folder.path / _FOLDER
        sides = [place / f"train.{side}" for side in ("words", "symbols")]
        if not sides[-1].exists():
            self._write(job.config, sides)
        corpus = Corpus([TextSource(sides[0])], [TextSource(sides[1])])
        self._written[:] = [corpus]
        part = CorpusPart("", corpus)
        text = RawText((part,), tokenizer=self.tokenizer, keep_target=self.keep_target)
        text.prepare(replace(job, held_out=None))

    def ids(self, folder: RunFolder) -> list[Path]:
        """Return the folder of a run's encoded text."""
        return [folder.data]

    def _write(self, config: RunConfig, sides: Sequence[Path]) -> None:
        """Write the source and target sides of the text."""
        report = TreeCleaning()
        trees = read_clean(self.files, report)
        if not any(tree.children for tree in trees):
            raise TextError(
                f"{_names(self.files)} must hold trees with phrases, but every tree is a single "
                "word; give other trees."
            )
        pairs = tree_pairs(trees, config.part(ParsingConfig), _names(self.files))
        self._notes.append(report.summary())
        left_out = set(report.empty)
        numbers = (number for number in count(1) if number not in left_out)
        too_long = [
            (number, len(symbols.split(" ")))
            for number, (_, symbols) in zip(numbers, pairs, strict=False)
            if symbols.count(" ") >= config.data.max_length
        ]
        if too_long:
            examples = ", ".join(f"number {n} with {count:,}" for n, count in too_long[:_NAMED])
            self._notes.append(
                f"{count_noun(len(too_long), 'tree')} with more than {config.data.max_length} "
                f"symbols (data.max_length) left out: {examples}" + ", …" * (len(too_long) > _NAMED)
            )
        sides[0].parent.mkdir(exist_ok=True)
        for side, lines in zip(sides, zip(*pairs, strict=True), strict=True):
            write_whole(side, "".join(f"{line}\n" for line in lines).encode())


def find_text(files: Files, tokenizer: str | Path | None = None) -> TreeText:
    """Find files of trees; raise `TextError` if a file is missing."""
    return TreeText(tuple(expand(as_list(files))), tokenizer=tokenizer)


def read_clean(files: Sequence[TextSource], report: TreeCleaning | None = None) -> list[Tree]:
    """Read and clean all trees of some files; raise `TextError` if there are no trees."""
    trees = clean_trees((tree for file in files for tree in read_trees(file.path)), report)
    if not trees:
        names = _names(files)
        raise TextError(f"{names} must hold trees with words, but has none; give another file.")
    return trees


def _names(files: Sequence[TextSource]) -> str:
    """Join the names of files for a message."""
    return ", ".join(str(file) for file in files)


def tree_pairs(
    trees: Sequence[Tree], parsing: ParsingConfig, name: str = "the file"
) -> list[tuple[str, str]]:
    """Convert trees to pairs of words and symbols. `name`: name of their file, for messages."""
    form = parsing.linearisation or "vinyals"
    check_labels(trees, form, name)
    return [
        (
            join_words(tree.words, parsing.lower_case, parsing.word_numbers),
            " ".join(linearize(tree, form, parsing.word_numbers)),
        )
        for tree in trees
    ]


def held_out(files: Files, config: RunConfig) -> tuple[tuple[list[str], list[str]], Sizes]:
    """Read the validation trees as sources and references, and list their files with digests."""
    texts = expand(as_list(files))
    pairs = tree_pairs(read_clean(texts), config.part(ParsingConfig), _names(texts))
    sources, symbols = zip(*pairs, strict=True)
    records = [
        {**record, "digest": digest_of(text.path)}
        for record, text in zip(file_records(texts), texts, strict=True)
    ]
    return (list(sources), list(symbols)), {"valid_source": records}
