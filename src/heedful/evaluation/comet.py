"""
COMET scores, computed by COMET's own library.

This module only calls unbabel-comet (extra ``comet``), which fetches, loads and runs the models.
The models are PyTorch Lightning checkpoints, which are pickles: loading one runs its author's code.
A model must therefore be trusted like a program.
"""

from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

from heedful.errors import MissingExtra, SettingError, TextError
from heedful.evaluation.line_metrics import References
from heedful.evaluation.sufficient_statistics import MetricScore

NEEDS = (
    "COMET needs its package (pip install 'heedful[comet]'), the source text (--source) and a "
    "model. The model is a checkpoint file, or the name of a model, which the package downloads "
    "once (2.3 GB for Unbabel/wmt22-comet-da). Without a GPU, a test set can take hours"
)

_BATCH_LINES = 16


def decimals_of(metric: str) -> int:
    """Return the decimals of a metric's printed scores: COMET's are mostly between 0 and 1."""
    return 4 if metric == "comet" else 2


def require_comet(references: References) -> ModuleType:
    """
    Import the COMET package after checking the references.

    The check is separate from `comet_score`, so that a missing package is reported before minutes
    of other work.

    Raises `TextError` if there is more than one reference for a line. Raises `MissingExtra` if
    COMET is not installed; the message lists all that COMET needs.
    """
    if len(references) != 1:
        raise TextError(
            f"COMET compares a translation with one reference, but there are {len(references)} "
            f"reference sets; give one of them at a time."
        )
    try:
        return import_module("comet")
    except ModuleNotFoundError as error:
        raise MissingExtra(f"{NEEDS}. The package is not installed.") from error


def comet_score(
    model: str,
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: References,
) -> MetricScore:
    """
    Score translations with a COMET model.

    `model`: a checkpoint file, or the name of a model, such as “Unbabel/wmt22-comet-da”, which
    COMET downloads on first use. The model is unpickled, so it must be trusted.

    Uses the calls in COMET's documentation: ``download_model``, ``load_from_checkpoint``,
    ``predict``. Uses a GPU if there is one. The library's errors about a model have no common
    class, so every exception from fetching or loading counts as an error about the model.

    Raises `MissingExtra` if COMET is not installed, and `TextError` if a line has more than one
    reference. Raises `SettingError` if COMET cannot fetch or load the model.
    """
    comet = require_comet(references)
    try:
        checkpoint = model if Path(model).is_file() else comet.download_model(model)
        scorer = comet.load_from_checkpoint(checkpoint)
    except Exception as error:
        raise SettingError(
            f"--comet must name a checkpoint file or a model that COMET knows, but {model} could "
            f"not be fetched or loaded ({type(error).__name__}: {error})."
        ) from error
    lines = [
        {"src": source, "mt": hypothesis, "ref": reference}
        for source, hypothesis, reference in zip(sources, hypotheses, references[0], strict=True)
    ]
    gpus = int(import_module("torch").cuda.is_available())
    output = scorer.predict(lines, batch_size=_BATCH_LINES, gpus=gpus)
    signature = f"nrefs:1|model:{model}|version:{version('unbabel-comet')}"
    return MetricScore(float(output.system_score), signature)
