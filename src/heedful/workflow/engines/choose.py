"""Engines by their names, behind one contract; none is imported before it is asked for."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from heedful.data.tokenizer import Tokenizer
from heedful.errors import MissingExtra, SettingError
from heedful.workflow.translation import Translation

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
    What `heedful.workflow.translate` needs of `Translator` and of others like it.
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


def check_engine(engine: str, asked: Mapping[str, object]) -> None:
    """
    Refuse options that an engine has not, all of them at once.

    Parameters
    ----------
    engine : str
        One of `ENGINES`.
    asked : mapping of str to object
        Values of options by name; what is false was not asked for.

    Returns
    -------
    None
        Nothing.

    Notes
    -----
    Raises `SettingError`. torch has them all.
    """
    wrong = [f"--{name}" for name in _CANNOT if asked.get(name)]
    if engine == "ctranslate2" and wrong:
        raise SettingError(
            f"--engine ctranslate2 must be asked for what it can do, but {', '.join(wrong)} came; "
            "leave it out, or use --engine torch with the run."
        )


def open_engine(
    engine: str,
    paths: Sequence[Path],
    *,
    weights: str = "default",
    device: str = "auto",
    precision: str = "auto",
    threads: int = 0,
    align_by: str = "",
) -> TranslationEngine:
    """
    Open what translates.

    Parameters
    ----------
    engine : {'torch', 'ctranslate2'}
        Which engine.
    paths : sequence of Path
        Run folders for torch, one exported folder for CTranslate2.
    weights : str, default 'default'
        Which weights of a run.
    device : str, default 'auto'
        Where to compute.
    precision : str, default 'auto'
        What with.
    threads : int, default 0
        Of the processor; 0 for all.
    align_by : str, default ''
        How alignments will be asked for, to refuse at once what the model has not.

    Returns
    -------
    TranslationEngine
        Ready to use.

    Notes
    -----
    Modules are named as text here, so that the second engine runs where torch is not installed.
    """
    how: dict[str, Any] = {"device": device, "precision": precision, "threads": threads}
    if engine == "torch":
        translator: Any = _torchs_translator()
        opened = translator.load(paths, weights=weights, **how)
        opened.aligner.extraction(align_by)
        found: TranslationEngine = opened
        return found
    if len(paths) != 1:
        raise SettingError(
            f"--engine ctranslate2 translates with one exported folder, but {len(paths)} came; "
            "an ensemble needs --engine torch."
        )
    exported = import_module("heedful.workflow.engines.ctranslate2").ExportedTranslator
    found = exported.load(paths[0], **how)
    return found


def _torchs_translator() -> Any:
    """Import what needs torch, or say what can be done without."""
    try:
        return import_module("heedful.workflow.translator").Translator
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingExtra(
            "a run needs torch, which is not installed here; install it, or export the run where "
            "it is (heedful export --format ctranslate2) and translate with --engine ctranslate2."
        ) from error
