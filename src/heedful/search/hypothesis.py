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
    """One translation as tokens."""

    tokens: tuple[int, ...]
    """Target ids without start and end symbol."""
    log_probabilities: tuple[float, ...]
    """Natural logarithm of the probability of each token, the end symbol's last if there is one."""
    score: float
    """Sum of `log_probabilities` divided by the length penalty."""
    ended: bool
    """Whether the end symbol was reached; False if the hypothesis was cut."""

    @property
    def log_probability(self) -> float:
        """Sum the log-probabilities of the tokens, as `heedful score` prints it."""
        return sum(self.log_probabilities)
