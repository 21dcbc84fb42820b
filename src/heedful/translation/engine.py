"""The contract of what translates."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from heedful.errors import SettingError
from heedful.tokenization.tokenizer import Tokenizer
from heedful.translation.result import Translation


@runtime_checkable
class TranslationEngine(Protocol):
    """
    Translates lines of text.

    Attributes
    ----------
    tokenizer : Tokenizer
        Cuts its text.

    Notes
    -----
    What `heedful.translation.translate` needs of `Translator` and of others like it.
    """

    tokenizer: Tokenizer

    def translate(self, *texts: Any, **search: Any) -> list[Translation]:
        """
        Translate some lines.

        Parameters
        ----------
        *texts : sequence of str
            One argument, the lines.
        **search : object
            The keywords of `Translator.translate`.

        Returns
        -------
        list of Translation
            One a line, in order.

        Notes
        -----
        An empty line stays empty.
        """
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
    "watch",
)


def check_engine(engine: str, options: Mapping[str, object]) -> None:
    """
    Refuse options that an engine has not, all of them at once.

    Parameters
    ----------
    engine : str
        One of `ENGINES`.
    options : mapping of str to object
        Values of options by name; what is false was not asked for.

    Returns
    -------
    None
        Nothing.

    Notes
    -----
    Raises `SettingError`. torch has them all.
    """
    wrong = [f"--{name}" for name in _CANNOT if options.get(name)]
    if engine == "ctranslate2" and wrong:
        raise SettingError(
            f"--engine ctranslate2 must be asked for what it can do, but {', '.join(wrong)} came; "
            "leave it out, or use --engine torch with the run."
        )
