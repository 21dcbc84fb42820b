"""What a training returns."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class TrainingResult:
    """How a training ended and what it produced."""

    reason: str
    """Why it ended: steps, minutes or patience, or what a callback said."""
    run: Path
    """The run folder, for `Translator.load`."""
    step: int
    """Steps of the run, those of earlier sittings included."""
    best: tuple[dict[str, Any], ...]
    """The best validations, best first: step, valid_loss, bleu; empty without held-out text."""
    log: Path
    """The file with a line of JSON for every report and validation."""

    def __fspath__(self) -> str:
        """Return the run folder, so that a result is a path wherever a run is named."""
        return str(self.run)

    def __repr__(self) -> str:
        return f"TrainingResult({str(self.run)!r}, ended by {self.reason} at step {self.step:,})"
