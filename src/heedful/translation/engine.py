"""The interface of translation engines."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from heedful.errors import SettingError
from heedful.tokenization.tokenizer import Tokenizer
from heedful.translation.result import Translation


@runtime_checkable
class TranslationEngine(Protocol):
    """
    The interface of an engine that translates lines of text.

    What `heedful.translation.translate` needs; `Translator` is one.
    """

    tokenizer: Tokenizer

    def translate(self, *texts: Any, **search: Any) -> list[Translation]:
        """Translate some lines."""
        ...


ENGINES = ("torch", "ctranslate2")


_CANNOT = (
    "sample",
    "mbr",
    "diverse-groups",
    "diversity-strength",
    "stop",
    "force-phrases",
    "avoid-phrases",
    "alignments",
    "align-by",
    "replace-unknown",
    "dictionary",
    "weights",
    "observer",
)


def check_engine(engine: str, options: Mapping[str, object]) -> None:
    """
    Refuse options that an engine lacks, all of them at once.

    Raises `SettingError`. torch has them all.
    """
    wrong = [f"--{name}" for name in _CANNOT if options.get(name)]
    if engine == "ctranslate2" and wrong:
        raise SettingError(
            f"--engine ctranslate2 must be asked for what it can do, but {', '.join(wrong)} came; "
            "leave it out, or use --engine torch with the run."
        )
