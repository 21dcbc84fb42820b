"""The interface of translation engines."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from heedful.errors import SettingError
from heedful.search.observer import SearchObserver
from heedful.search.settings import SearchOptions
from heedful.tokenization.tokenizer import Tokenizer
from heedful.translation.reading import LongLines, TextReader
from heedful.translation.result import Translation


@runtime_checkable
class TranslationEngine(Protocol):
    """The interface of an engine that translates lines of text."""

    tokenizer: Tokenizer

    @property
    def reader(self) -> TextReader:
        """The reader of source lines."""
        ...

    def translate(
        self,
        texts: Sequence[str],
        options: SearchOptions | None = None,
        *,
        target_prefix: Sequence[str] | None = None,
        force_phrases: Sequence[Sequence[str]] | None = None,
        avoid_phrases: Sequence[Sequence[str]] | None = None,
        probabilities: bool = False,
        attention: bool = False,
        alignments: bool = False,
        align_by: str = "",
        replace_unknown: bool | Mapping[str, str] = False,
        first_line: int = 1,
        glossary: Mapping[str, str] | None = None,
        protected: Sequence[str] | None = None,
        long_lines: LongLines = "split",
        warn: Callable[[str], None] | None = None,
        observer: SearchObserver | None = None,
    ) -> list[Translation]:
        """Translate some lines; the keywords are those of `Translator.translate`."""
        ...


_CANNOT = (
    "sample",
    "mbr",
    "diverse-groups",
    "diversity-strength",
    "coverage-penalty",
    "stop",
    "rules",
    "force-phrases",
    "avoid-phrases",
    "attention",
    "alignments",
    "align-by",
    "replace-unknown",
    "dictionary",
    "weights",
    "observer",
)


def check_engine(engine: str, options: SearchOptions, others: Mapping[str, object]) -> None:
    """
    Refuse options that an engine lacks, all of them in one error.

    `others`: options that are not in `options`, by their names on the command line.

    Raises `SettingError` if the engine lacks an option; torch supports all options.
    """
    chosen = {
        "sample": options.sample and not others.get("mbr"),  # mbr turns on sampling itself
        "diverse-groups": options.diverse_groups > 1,
        "diversity-strength": options.diversity_strength,
        "coverage-penalty": options.coverage_penalty,
        "stop": options.stop,
        "rules": options.rules,
        **others,
    }
    wrong = [f"--{name}" for name in _CANNOT if chosen.get(name)]
    if engine == "ctranslate2" and wrong:
        raise SettingError(
            f"--engine ctranslate2 does not support {', '.join(wrong)}; leave "
            f"{'it' if len(wrong) == 1 else 'them'} out, or use --engine torch with the run."
        )
