"""Translation engines by name; they share one interface and are imported on demand."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from heedful.errors import MissingExtra, SettingError
from heedful.translation.engine import TranslationEngine

Reading = Literal["exact", "text"]
"""How lines are read, as in the setting ``data.reading``."""


def open_engine(
    engine: str,
    paths: Sequence[Path],
    *,
    weights: str = "default",
    device: str = "auto",
    precision: str = "auto",
    threads: int = 0,
    align_by: str | None = None,
    reading: Reading | None = None,
) -> TranslationEngine:
    """
    Open a translation engine.

    `align_by`: settings for word alignments, which are checked now; None for no alignment.
    `reading`: exact or text; None means the run's setting.

    Engines are imported on demand, because CTranslate2 runs without torch.
    """
    if engine == "torch":
        try:
            from heedful.translation.translator import Translator
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise MissingExtra(
                "a run needs torch, which is not installed; install it, or export the run on "
                "another machine (heedful export --format ctranslate2) and translate with "
                "--engine ctranslate2."
            ) from error
        translator = Translator.load(
            paths,
            weights=weights,
            device=device,
            precision=precision,
            threads=threads,
            reading=reading,
        )
        if align_by is not None:  # an invalid value is refused before the first line is read
            translator.aligner.extraction(align_by)
        return translator
    if len(paths) != 1:
        raise SettingError(
            f"--engine ctranslate2 translates with one exported folder, but got {len(paths)}; "
            "an ensemble needs --engine torch."
        )
    from heedful.exchange.ctranslate2.translator import ExportedTranslator

    return ExportedTranslator.load(
        paths[0], device=device, precision=precision, threads=threads, reading=reading
    )
