"""What a search returns."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Hypothesis:
    """
    Hold one translation as tokens.

    Attributes
    ----------
    tokens : tuple of int
        Target ids without start and end symbol.
    log_probabilities : tuple of float
        Natural logarithm of the probability of each token, the end symbol's last if there is one.
    score : float
        Sum of `log_probabilities` divided by the length penalty.
    ended : bool
        Whether the end symbol was reached; False if the hypothesis was cut.

    Notes
    -----
    Higher scores are better; all are at most zero.
    """

    tokens: tuple[int, ...]
    log_probabilities: tuple[float, ...]
    score: float
    ended: bool

    @property
    def log_probability(self) -> float:
        """
        Add up the log-probabilities of the tokens.

        Returns
        -------
        float
            Log-probability of the whole sequence.

        Notes
        -----
        What `heedful score` prints.
        """
        return sum(self.log_probabilities)
