"""
Trees as training text: words on one side, symbols on the other.

::

    trees ─ clean ─ RUN/trees/train.words and train.symbols ─ subwords and ids, as of any text
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from heedful.arguments import Files
from heedful.config.schema import RunConfig
from heedful.data.coverage import unknown_warning
from heedful.data.encoded.dataset import EncodedPairs
from heedful.data.overlap.leaks import HeldOutPairs
from heedful.errors import TextError
from heedful.files import write_whole
from heedful.preparation.corpora_file import CorpusPart
from heedful.preparation.raw_text import RawText
from heedful.preparation.training_data import (
    Say,
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
from heedful.tokenization.tokenizer import Tokenizer

_FOLDER = "trees"
_NAMED = 5


@dataclass(frozen=True)
class TreeText(UnpreparedText):
    """Training data from bracketed trees."""

    files: tuple[TextSource, ...]
    tokenizer: str | Path | None = None
    """A tokenizer whose source side is used instead of training one."""
    keep_target: bool = False
    """Whether the tokenizer's symbols are kept, because inherited weights use them."""
    _notes: list[str] = field(default_factory=list)
    """Further entries of the report, collected while the text was written."""
    _written: list[Corpus] = field(default_factory=list)
    """The text that was written."""

    def configure(self, config: RunConfig) -> RunConfig:
        """Name the sides, unless they have names."""
        return config.with_settings(
            {
                "data.source_language": config.data.source_language or "words",
                "data.target_language": config.data.target_language or "trees",
            }
        )

    def fingerprint(self) -> Sizes:
        """List names and sizes of the files."""
        return {"trees": file_records(self.files)}

    def describe(self) -> str:
        """Read the trees once and describe them."""
        report = TreeCleaning()
        read_clean(self.files, report)
        return report.summary()

    def weights(self) -> None:
        """Return None, because there is one corpus."""

    def report(self, pairs: Sequence[EncodedPairs], tokenizer: Tokenizer) -> Iterator[str]:
        """Describe what was kept and dropped."""
        yield from self._notes
        for encoded in pairs:
            yield encoded.report.summary()
            yield from encoded.report.notes
            for corpus in self._written:
                if warning := unknown_warning(encoded, tokenizer, corpus):
                    yield f"warning: {warning}"

    def prepare(
        self,
        folder: RunFolder,
        config: RunConfig,
        processes: int,
        say: Say,
        held_out: HeldOutPairs | None = None,
    ) -> None:
        """Write the trees as text, unless done, and encode it."""
        place = folder.path / _FOLDER
        sides = [place / f"train.{side}" for side in ("words", "symbols")]
        if not sides[-1].exists():
            self._write(config, sides)
        corpus = Corpus([TextSource(sides[0])], [TextSource(sides[1])])
        self._written[:] = [corpus]
        text = RawText((CorpusPart("", corpus),), (), self.tokenizer, self.keep_target)
        text.prepare(folder, config, processes, say)

    def ids(self, folder: RunFolder) -> list[Path]:
        """Return the folder of a run's ids."""
        return [folder.data]

    def _write(self, config: RunConfig, sides: Sequence[Path]) -> None:
        """Write the two sides of the text."""
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
                f"{len(too_long):,} trees have more than {config.data.max_length} symbols "
                f"(data.max_length) and are left out: {examples}" + ", …" * (len(too_long) > _NAMED)
            )
        sides[0].parent.mkdir(exist_ok=True)
        for side, lines in zip(sides, zip(*pairs, strict=True), strict=True):
            write_whole(side, "".join(f"{line}\n" for line in lines).encode())


def find_text(files: Files, tokenizer: str | Path | None = None) -> TreeText:
    """Find files of trees; `TextError` if one is missing."""
    return TreeText(tuple(expand(as_list(files))), tokenizer)


def read_clean(files: Sequence[TextSource], report: TreeCleaning | None = None) -> list[Tree]:
    """Read and clean all trees of some files; `TextError` if there are none."""
    trees = clean_trees((tree for file in files for tree in read_trees(file.path)), report)
    if not trees:
        names = _names(files)
        raise TextError(f"{names} must hold trees with words, but has none; give another file.")
    return trees


def _names(files: Sequence[TextSource]) -> str:
    """Name files in a message."""
    return ", ".join(str(file) for file in files)


def tree_pairs(
    trees: Sequence[Tree], parsing: ParsingConfig, name: str = "the file"
) -> list[tuple[str, str]]:
    """Write trees as lines of words and lines of symbols. `name`: of their file, for messages."""
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
