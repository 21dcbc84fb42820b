"""
From text to subwords and ids: what `heedful data prepare` and `heedful train` share.

Torch is not needed for this and is not loaded.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.config.schema import RunConfig
from heedful.data.cleaning.filter import PairFilter
from heedful.data.cleaning.rules import TextRules, read_excluded
from heedful.data.coverage import unknown_warning
from heedful.data.encoded.dataset import EncodedPairs
from heedful.data.encoded.encode import encode_corpus
from heedful.machine.memory import give_memory_back
from heedful.machine.processor import usable_cores
from heedful.preparation.corpora_file import CorpusPart
from heedful.preparation.tokenizer import make_tokenizer
from heedful.preparation.training_data import Say, Sizes, file_records, has_subwords
from heedful.runs.folder import RunFolder
from heedful.text.corpus import Corpus, language_of
from heedful.text.file_formats import TextSource
from heedful.tokenization.tokenizer import Tokenizer

_TELL_SECONDS = 10.0


@dataclass(frozen=True)
class RawText:
    """
    Name the text files that a model is trained on.

    Attributes
    ----------
    parts : tuple of CorpusPart
        One corpus or several.
    excluded : tuple of TextSource, optional
        Texts whose lines must not be trained on, such as test sets.
    tokenizer : str or Path, optional
        What `tokenizer_from_files` reads, to be used instead of learning subwords.

    Notes
    -----
    A `Material`.
    """

    parts: tuple[CorpusPart, ...]
    excluded: tuple[TextSource, ...] = ()
    tokenizer: str | Path | None = None

    def configure(self, config: RunConfig) -> RunConfig:
        """
        Fill the languages in from the files' endings where they are not set.

        Parameters
        ----------
        config : RunConfig
            Settings.

        Returns
        -------
        RunConfig
            With languages, if the endings tell any.

        Notes
        -----
        `train.en.gz` is English.
        """
        first = self.parts[0].corpus
        source, target = first.source[0], first.target[0]
        return config.with_settings(
            {
                "data.source_language": config.data.source_language or language_of(source),
                "data.target_language": config.data.target_language or language_of(target),
            }
        )

    def fingerprint(self) -> Sizes:
        """
        List names and sizes of the files.

        Returns
        -------
        dict of str to list of dict
            A list for each side and for the excluded texts.

        Notes
        -----
        The content is in the encoded pairs; sizes tell quickly whether it can be the same.
        """
        found: Sizes = {"exclude": file_records(self.excluded)}
        for part in self.parts:
            place = f"{part.name}." if part.name else ""
            found[f"{place}source"] = file_records(part.corpus.source)
            found[f"{place}target"] = file_records(part.corpus.target)
            if part.weight is not None:
                found[f"{place}weight"] = [{"weight": part.weight}]
        return found

    def describe(self) -> str:
        """
        Read the text once.

        Returns
        -------
        str
            How many pairs there are.

        Notes
        -----
        Unequal line counts and broken characters show here.
        """
        read_excluded(self.excluded)
        counts = [(part.name, sum(1 for _ in part.corpus.pairs())) for part in self.parts]
        names = ", ".join(f"{name} {count:,}" for name, count in counts if name)
        total = f"{sum(count for _, count in counts):,} pairs"
        return f"{total} ({names})" if names else total

    def weights(self) -> list[float] | None:
        """
        List the weights of the corpora.

        Returns
        -------
        list of float or None
            In any unit; None if their sizes decide.

        Notes
        -----
        See `heedful.data.mixing.mixing_shares`.
        """
        return _weights([part.weight for part in self.parts])

    def report(self, pairs: Sequence[EncodedPairs], tokenizer: Tokenizer) -> Iterator[str]:
        """
        Say what became of the text.

        Parameters
        ----------
        pairs : sequence of EncodedPairs
            Of each corpus.
        tokenizer : Tokenizer
            What they were encoded with.

        Yields
        ------
        str
            A line for the person at the terminal.

        Notes
        -----
        The text is looked at again only if much of it is unknown to the tokenizer.
        """
        for part, encoded in zip(self.parts, pairs, strict=True):
            name = f"{part.name}: " if part.name else ""
            yield f"{name}{encoded.report.summary()}"
            yield from encoded.report.notes
            if warning := unknown_warning(encoded, tokenizer, part.corpus):
                yield f"warning: {name}{warning}"

    def prepare(self, folder: RunFolder, config: RunConfig, processes: int, say: Say) -> None:
        """
        Learn the subwords and encode the pairs, if that has not been done.

        Parameters
        ----------
        folder : RunFolder
            Where both go.
        config : RunConfig
            Settings.
        processes : int
            Processes that encode; 0 for one on each core.
        say : callable
            Told how far it is, if it takes long.

        Returns
        -------
        None
            Nothing.

        Notes
        -----
        The subwords are written whole or not at all; encoding goes on where it was interrupted.
        """
        if not has_subwords(folder):
            self.learn(config).save(folder.path)
        self.encode(folder, config, processes, say)

    def ids(self, folder: RunFolder) -> list[Path]:
        """
        Tell where the ids of a run lie.

        Parameters
        ----------
        folder : RunFolder
            The run.

        Returns
        -------
        list of Path
            In the run itself, a folder for each corpus.

        Notes
        -----
        Only training needs them.
        """
        return [folder.data / part.name for part in self.parts]

    def learn(self, config: RunConfig) -> Tokenizer:
        """
        Learn subwords.

        Parameters
        ----------
        config : RunConfig
            Settings.

        Returns
        -------
        Tokenizer
            Not yet saved.

        Notes
        -----
        All the text is read first, so that unequal line counts and broken characters show before
        any work is done.
        """
        for part in self.parts:
            for _ in part.corpus.pairs():
                pass
        sources = [text for part in self.parts for text in part.corpus.source]
        targets = [text for part in self.parts for text in part.corpus.target]
        tokenizer = make_tokenizer(config, Corpus(sources, targets), self.tokenizer)
        give_memory_back()
        return tokenizer

    def encode(self, folder: RunFolder, config: RunConfig, processes: int, say: Say) -> None:
        """
        Encode the pairs with the subwords that the folder holds, if that has not been done.

        Parameters
        ----------
        folder : RunFolder
            Where the ids go.
        config : RunConfig
            Settings.
        processes : int
            Processes that encode; 0 for one on each core.
        say : callable
            Told every ten seconds how far it is.

        Returns
        -------
        None
            Nothing.

        Notes
        -----
        The result does not depend on the number of processes. With `data.subword_sampling`
        the text of the pairs is kept beside their ids.
        """
        left = [
            (part, ids)
            for part, ids in zip(self.parts, self.ids(folder), strict=True)
            if not ids.exists()
        ]
        if not left:
            return
        data, tokenizer = config.data, Tokenizer.load(folder.path)
        rules = TextRules(
            data.source_language,
            data.target_language,
            data.min_script_share,
            data.drop_duplicates,
            read_excluded(self.excluded),
        )
        for part, ids in left:
            encode_corpus(
                part.corpus,
                tokenizer,
                PairFilter(data.max_length, data.max_length_ratio),
                ids,
                rules=rules,
                processes=processes or usable_cores(),
                keep_text=data.subword_sampling > 0,
                progress=_PairCounter(say),
            )


class _PairCounter:
    """Says every ten seconds how many pairs have been read."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._last = time.monotonic()

    def __call__(self, pairs: int) -> None:
        now = time.monotonic()
        if now - self._last >= _TELL_SECONDS:
            self._last = now
            self._say(f"encoding: {pairs:,} pairs read")


def _weights(weights: Sequence[float | None]) -> list[float] | None:
    """Give the weights of all, or None if there are none."""
    return [weight for weight in weights if weight is not None] or None
