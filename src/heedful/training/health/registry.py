"""
The list of health checks, and the code that runs them at a validation.

::

    held-out pairs ── measure ── figures ── a line of the log
                                    └────── warning, once, when figures are past the threshold
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from heedful.data.batching import Collator
from heedful.data.length_batches import by_length
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.training.health.attention_use import AttentionUse, Figures, HeldOutSample

CHECKS = (AttentionUse(),)
"""All checks, in the order of their warnings."""

KEY = "health"
"""Key of all figures of checks in a validation line of the log."""

# Number of held-out pairs to check, spread over the text, and maximum number of tokens in a batch.
_PAIRS = 128
_BATCH_TOKENS = 4096
# Checks warn only after the peak of the learning rate, this many updates, and this share of the
# training. Earlier, even healthy models often have nearly uniform attention.
_FIRST_UPDATES = 300
_EARLY = 0.2


def take_sample(
    model: EncoderDecoder,
    collator: Collator,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
) -> HeldOutSample:
    """Take a sample of the held-out pairs, given as ids without special symbols."""
    count = min(_PAIRS, len(sources))
    rows = [index * len(sources) // count for index in range(count)]
    lengths = [len(sources[row]) + len(targets[row]) for row in rows]
    batches = (
        collator.batch([sources[rows[i]] for i in chosen], [targets[rows[i]] for i in chosen])
        for chosen in by_length(lengths, _BATCH_TOKENS)
        if len(chosen) > 1  # a single sentence has no other source
    )
    return HeldOutSample(model, tuple(batches))


def measure_all(sample: HeldOutSample) -> dict[str, Figures]:
    """Compute the figures of all checks; omit checks that return None."""
    measured = {check.name: check.measure(sample) for check in CHECKS}
    return {name: figures for name, figures in measured.items() if figures is not None}


class HealthWarnings:
    """The warnings of a training run: one for each check that fails, but none early in the run."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._warned = say, set[str]()

    def warn(self, line: Mapping[str, Any], share: float, past_warmup: bool) -> None:
        """Warn if a validation line fails checks. `share`: completed share of training."""
        if share < _EARLY or line["step"] < _FIRST_UPDATES or not past_warmup:
            return
        measured = line.get(KEY, {})
        for check in CHECKS:
            figures = measured.get(check.name)
            warning = figures and check.warning(figures)
            if warning and check.name not in self._warned:
                self._say(f"warning: {warning}")
                self._warned.add(check.name)


def describe_all(line: Mapping[str, Any]) -> dict[str, str]:
    """Describe the figures of a validation line; malformed figures are left out."""
    logged, described = line.get(KEY), {}
    for check in CHECKS:
        figures = logged.get(check.name) if isinstance(logged, dict) else None
        if isinstance(figures, dict) and all(type(value) is float for value in figures.values()):
            with suppress(KeyError):
                described[check.name] = check.summary(figures)
    return described
