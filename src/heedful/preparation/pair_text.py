"""
Training text from pairs in memory.

::

    pairs ─ RUN/pairs/train.source and train.target ─ subwords and ids, as for any text

The first rank writes the pairs once, so a resumed run has the same text and does not need the pairs
again.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from heedful.arguments import Files
from heedful.config.schema import RunConfig
from heedful.data.encoded.dataset import EncodedPairs
from heedful.errors import RunFolderError, TextError
from heedful.preparation.corpora_file import CorpusPart
from heedful.preparation.raw_text import RawText
from heedful.preparation.training_data import (
    Preparation,
    Sizes,
    UnpreparedText,
    as_list,
    file_records,
)
from heedful.runs.folder import RunFolder
from heedful.runs.run import read_settings
from heedful.text.corpus import Corpus, expand
from heedful.text.file_formats import TextSource
from heedful.text.pairs import PairRows, first_difference, store_pairs, stored_pairs
from heedful.tokenization.tokenizer import Tokenizer

PAIRS = "pairs"
"""The folder of the pairs inside a run folder."""
# A column name that is a language code: en, de-AT.
_LANGUAGE = re.compile(r"[a-z]{2,3}([-_][A-Za-z]{2,4})?")


@dataclass(frozen=True)
class PairText(UnpreparedText):
    """Training data from pairs in memory, or from pairs that a run has stored."""

    rows: PairRows | None
    """The pairs; None if the run has stored them."""
    resumed: RunFolder | None = None
    """The run that is continued, if any."""
    excluded: tuple[TextSource, ...] = ()
    """Texts whose lines training must not see, such as test sets."""
    _texts: list[RawText] = field(default_factory=list)
    """The stored text, once it exists."""

    def configure(self, config: RunConfig) -> RunConfig:
        """Infer unset languages from the names of the columns, or from the continued run."""
        source, target = config.data.source_language, config.data.target_language
        names: Sequence[object] = ()
        if self.resumed is not None and self.resumed.config.exists():
            began = read_settings(self.resumed).data
            names = began.source_language, began.target_language
        elif self.rows is not None:
            columns = self.rows.ordered(source, target)
            names = [name if _LANGUAGE.fullmatch(str(name)) else "" for name in columns]
        first, second = names or ("", "")
        languages = {"data.source_language": source or first}
        return config.with_settings({**languages, "data.target_language": target or second})

    def fingerprint(self) -> Sizes:
        """Record excluded files and the folder of pairs; `prepare` compares the stored pairs."""
        return {"exclude": file_records(self.excluded), PAIRS: [{"file": PAIRS}]}

    def describe(self, config: RunConfig) -> str:
        """Describe the pairs; only stored pairs are read for this."""
        corpus = self.resumed and stored_pairs(self.resumed.path / PAIRS, "train")
        return self._raw(corpus).describe(config) if corpus else "pairs in memory"

    def weights(self) -> None:
        """Return None, because there is only one corpus."""

    def report(self, pairs: Sequence[EncodedPairs], tokenizer: Tokenizer) -> Iterator[str]:
        """Describe how many pairs were kept and dropped."""
        for text in self._texts:
            yield from text.report(pairs, tokenizer)

    def prepare(self, job: Preparation) -> None:
        """Store the pairs, or compare them with the stored ones, and encode them."""
        place, data = job.folder.path / PAIRS, job.config.data
        corpus = stored_pairs(place, "train")
        pairs: Iterable[tuple[str, str]] = ()
        if self.rows is not None:
            pairs = self.rows.read(data.source_language, data.target_language)
        if corpus is None:
            corpus = store_pairs(place, "train", pairs)
        elif self.rows and (number := first_difference(corpus, pairs)) is not None:
            raise RunFolderError(
                f"--resume must continue the run in {job.folder.path} with its original "
                f"pairs, but pair {number} of `pairs` differs. Give the same pairs, or leave "
                "`pairs` out."
            )
        self._texts[:] = [self._raw(corpus)]
        self._texts[0].prepare(job)

    def ids(self, folder: RunFolder) -> list[Path]:
        """Return the folder of a run's ids."""
        return [folder.data]

    def _raw(self, corpus: Corpus) -> RawText:
        """Return the stored text as `RawText`, like text from files."""
        return RawText(
            (CorpusPart("", corpus),),
            self.excluded,
            tokenizer=self.tokenizer,
            keep_target=self.keep_target,
        )


def find_pair_text(
    pairs: Iterable[object] | None,
    resumed: RunFolder | None,
    other_text: bool,
    exclude: Files | None,
    tokenizer: str | Path | None,
) -> PairText | None:
    """
    Find pairs in memory, or in the run that is continued; None if there are none.

    `other_text`: whether the user also named text in another way. If so, giving pairs raises
    `TextError`.
    """
    if pairs is not None and other_text:
        raise TextError(
            "`pairs` are the training text, but another text was given too (--source, "
            "--target, --corpora, --data or a task's text); give only one."
        )
    stored = resumed and stored_pairs(resumed.path / PAIRS, "train")
    if pairs is None and (other_text or not stored):
        return None
    rows = None if pairs is None else PairRows("pairs", pairs)
    excluded = tuple(expand(as_list(exclude))) if exclude else ()
    return PairText(rows, resumed, excluded, tokenizer=tokenizer)
