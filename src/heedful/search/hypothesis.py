"""Open hypotheses, which a search extends, and the hypotheses that it returns."""

from dataclasses import dataclass
from typing import NamedTuple


class OpenHypothesis(NamedTuple):
    """An open hypothesis; a log-probability of minus infinity marks it dead."""

    tokens: list[int]
    log_probabilities: list[float]
    log_probability: float
    coverage: float = 0.0
    """The coverage penalty of the steps that generated the tokens."""


@dataclass(frozen=True)
class Hypothesis:
    """A translation as token ids."""

    tokens: tuple[int, ...]
    """Target ids without the start and end symbols."""
    log_probabilities: tuple[float, ...]
    """Natural log-probability of each token, and of the end symbol if there is one."""
    score: float
    """Sum of `log_probabilities` divided by the length penalty, plus any coverage penalty."""
    ended: bool
    """Whether the end symbol was reached; False if the hypothesis was cut."""

    @property
    def log_probability(self) -> float:
        """The sum of the log-probabilities, which `heedful score` prints."""
        return sum(self.log_probabilities)
