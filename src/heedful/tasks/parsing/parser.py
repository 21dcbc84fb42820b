"""
A trained parser.

::

    parser = heedful.Parser.load("runs/parser")
    print(parser.parse("the dog sleeps").tree)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from os import PathLike
from reprlib import repr as shorten
from typing import overload

from heedful.arguments import Files, checked, read_texts
from heedful.errors import ArgumentError, SettingError, TextError
from heedful.search.settings import SearchOptions
from heedful.tasks.parsing.config import ParsingConfig
from heedful.tasks.parsing.trees.linearize import SymbolLabels, delinearize
from heedful.tasks.parsing.trees.sentence import split_words
from heedful.tasks.parsing.trees.tree import Tree, flat_tree
from heedful.translation.result import Translation
from heedful.translation.translator import Translator, Warn


@dataclass(frozen=True)
class Parse:
    """The tree of a sentence."""

    tree: Tree
    """The tree; one flat phrase if the output is not a tree of the words."""
    score: float
    """Log-probability of `symbols`, divided by the length penalty."""
    symbols: str
    """The symbols that the model wrote."""
    is_tree: bool = True
    """Whether the output is a tree; a constrained search writes only trees."""
    alternatives: tuple["Parse", ...] = ()
    """The other trees of an n-best list, best first."""


class Parser:
    """
    A trained run that parses, or an ensemble of several runs.

    Parameters
    ----------
    translator : Translator
        Translator of a run that `heedful parse train` created.

    Raises
    ------
    SettingError
        If the run is a translator.

    Notes
    -----
    Create it with `Parser.load`. It is not thread-safe.
    """

    @checked
    def __init__(self, translator: Translator) -> None:
        form = translator.run.config.part(ParsingConfig).linearisation
        if form is None:
            raise SettingError(
                f"{translator.run.folder.path} must be a parser, but is a translator; give a run "
                "that `heedful parse train` trained."
            )
        self.translator, self.form = translator, form
        tokenizer = translator.tokenizer
        self.labels = SymbolLabels(tokenizer.pieces_target(range(tokenizer.target_size)), form)

    @classmethod
    @checked
    def load(
        cls,
        path: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        weights: str = "default",
        device: str = "auto",
        precision: str = "auto",
        threads: int = 0,
        constrained: bool = True,
        plugins: Files | None = None,
    ) -> "Parser":
        """
        Open a run folder, or several run folders as an ensemble.

        Parameters
        ----------
        path : str, Path, TrainingResult or sequence of them
            The folder of a run; several runs must share their tokenizer.
        weights : str, default 'default'
            ``average``, ``best``, ``last`` or ``step-N``, as for `Translator.load`.
        device : str, default 'auto'
            ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
        precision : {'auto', 'fp32', 'bf16', 'int8'}, default 'auto'
            As for `Translator.load`.
        threads : int, default 0
            Number of CPU threads; 0 for `OMP_NUM_THREADS` or, if it is not set, one per core.
        constrained : bool, default True
            Whether the search writes only trees of the words; true has no effect if the run's
            `parsing.constrained` is false. If false, an output that is not such a tree becomes one
            flat phrase.
        plugins : path or sequence of them, optional
            As for `Translator.load`.

        Returns
        -------
        Parser
            Ready to use.
        """
        translator = Translator.load(
            path,
            weights=weights,
            device=device,
            precision=precision,
            threads=threads,
            plugins=plugins,
        )
        if not constrained and translator.run.config.part(ParsingConfig).linearisation is not None:
            config = translator.run.config.with_settings({"parsing.constrained": False})
            translator.run = replace(translator.run, config=config)
        return cls(translator)

    @overload
    def parse(  # type: ignore[overload-overlap]  # a string is one sentence, not its letters
        self, sentences: str, options: SearchOptions | None = None
    ) -> Parse: ...

    @overload
    def parse(
        self,
        sentences: Iterable[str],
        options: SearchOptions | None = None,
        tags: Sequence[Sequence[str]] | None = None,
        first_line: int = 1,
        warn: Warn | None = None,
    ) -> list[Parse]: ...

    @checked
    def parse(
        self,
        sentences: str | Iterable[str],
        options: SearchOptions | None = None,
        tags: Sequence[Sequence[str]] | None = None,
        first_line: int = 1,
        warn: Warn | None = None,
    ) -> Parse | list[Parse]:
        """
        Parse a sentence or several.

        Parameters
        ----------
        sentences : str or iterable of str
            Words separated by spaces, tokenized as in the Penn Treebank.
        options : SearchOptions, optional
            Options of the search; the settings of the run if None.
        tags : sequence of sequence of str, optional
            Parts of speech of the words of each sentence, which appear in the trees. The model
            does not read them.
        first_line : int, default 1
            Line number of the first sentence, for messages.
        warn : callable, optional
            Called with the messages of `Translator.translate`, and with a message about each
            sentence whose tree would exceed the length limit. Such a sentence becomes one flat
            phrase.

        Returns
        -------
        Parse or list of Parse
            One parse for a string; otherwise a list in the order of the sentences.

        Raises
        ------
        TextError
            If a sentence has no words.
        """
        lines = read_texts("sentences", sentences)
        for number, line in enumerate(lines, start=first_line):
            if not split_words(line):
                raise TextError(
                    f"a sentence must have words to be parsed, but line {number} is empty; leave "
                    "it out."
                )
        parses = [*filter(None, self.parse_lines(lines, options, tags, first_line, warn))]
        return parses[0] if isinstance(sentences, str) else parses

    @checked
    def parse_lines(
        self,
        lines: Sequence[str],
        options: SearchOptions | None = None,
        tags: Sequence[Sequence[str]] | None = None,
        first_line: int = 1,
        warn: Warn | None = None,
    ) -> list[Parse | None]:
        """
        Parse lines, which may be empty.

        Parameters
        ----------
        lines : sequence of str
            Words separated by spaces, as for `parse`, or nothing.
        options, tags, first_line, warn : optional
            As for `parse`.

        Returns
        -------
        list of Parse or None
            One for each line; None for an empty line.
        """
        words = [tuple(split_words(line)) for line in lines]
        if tags is not None and list(map(len, tags)) != list(map(len, words)):
            raise ArgumentError(
                "`tags` must hold one part of speech for each word, but the numbers "
                "of tags and words differ."
            )
        for tag in chain.from_iterable(tags or ()):
            if not tag or set(tag) & set("() \t\r\n"):
                raise ArgumentError(
                    "`tags` must be parts of speech without parentheses or spaces, but got "
                    f"{shorten(tag)}; a tree cannot be written with this tag."
                )
        word_tags = [None] * len(words) if tags is None else list(map(tuple, tags))
        sources = [self.source_line(" ".join(sentence)) for sentence in words]
        options = options or SearchOptions()
        roomy = self._roomy(sources, options)
        written = self.translator.translate(
            ["" if line not in roomy else source for line, source in enumerate(sources)],
            options,
            first_line=first_line,
            warn=warn,
        )
        parses: list[Parse | None] = []
        for line, parts in enumerate(zip(written, words, word_tags, strict=True)):
            if not words[line]:
                parses.append(None)
                continue
            if line not in roomy and warn is not None:
                warn(
                    f"line {first_line + line} has {len(words[line]):,} words, too many for a tree "
                    "within search.max_length; it is written as one flat phrase."
                )
            parses.append(self._parse(*parts))
        return parses

    def _roomy(self, sources: Sequence[str], options: SearchOptions) -> set[int]:
        """Find the sentences whose smallest tree fits within the length limit of the output."""
        run, task = self.translator.run, self.translator.run.task
        limit = options.over(run.config.search).limit
        most = run.config.search.max_source_length
        ids = run.tokenizer.encode_source(sources)
        limits = [limit.tokens(min(len(source_ids), most)) for source_ids in ids]
        pairs = zip(sources, limits, strict=True)
        return {line for line, pair in enumerate(pairs) if task.has_room(*pair)}

    @checked
    def source_line(self, sentence: str) -> str:
        """
        Write a sentence as the model reads it, for `Translator.attend` and `score`.

        Parameters
        ----------
        sentence : str
            Words separated by spaces.

        Returns
        -------
        str
            The words, in lower case or numbered if the settings of the run say so.
        """
        return self.translator.run.task.source_line(sentence)

    def _parse(
        self, written: Translation, words: tuple[str, ...], tags: tuple[str, ...] | None
    ) -> Parse:
        """Convert the output of the model to a tree."""
        tree = delinearize(written.text.split(" "), words, self.form, tags, self.labels)
        return Parse(
            flat_tree(words, tags or ("XX",) * len(words)) if tree is None else tree,
            written.score,
            written.text,
            tree is not None,
            tuple(self._parse(alternative, words, tags) for alternative in written.alternatives),
        )
