"""
Length penalties and length limits, named by their formula.

Toolkits interpret a bare number in different ways, so here the formula is part of the name:

::

    gnmt:A    log P / ((5 + length) / 6)^A    Wu et al. 2016; the paper has A = 0.6 (section 6.1)
    power:A   log P / length^A                fairseq's lenpen, Marian, CTranslate2, Hugging Face
    none      log P

The length includes the end symbol.
"""

import re
from dataclasses import dataclass

from heedful.errors import SettingError

# The exponent is at most 10, so that a power of any length stays finite.
_PENALTY = re.compile(r"none|(gnmt|power):(10(?:\.0+)?|[0-9](?:\.[0-9]+)?)")


@dataclass(frozen=True)
class LengthPenalty:
    """
    A length penalty: the log-probability is divided by a function of the length.

    Without a penalty a search prefers short translations, because each token lowers the
    probability.
    """

    kind: str
    """The formula."""
    alpha: float = 0.0
    """The exponent of the formula; 0 leaves log-probabilities unchanged."""
    before: int = 0
    """Number of counted symbols before the first token: 1 in OpenNMT-py for the start symbol."""

    def __str__(self) -> str:
        return self.kind if self.kind == "none" else f"{self.kind}:{self.alpha}"

    @classmethod
    def parse(cls, text: str) -> "LengthPenalty":
        """Parse ``gnmt:0.6``, ``power:1.0`` or ``none``; anything else raises `SettingError`."""
        match = _PENALTY.fullmatch(text)
        if match is None:
            raise SettingError(
                "a length penalty must be gnmt:ALPHA, power:ALPHA or none, where ALPHA is a number "
                f"from 0 to 10, but is {text!r}; the paper's is gnmt:0.6."
            )
        kind, alpha = match.groups()
        return cls("none") if kind is None else cls(kind, float(alpha))

    def divisor(self, length: int) -> float:
        """
        Compute the divisor for a length that includes the end symbol.

        It is at least 1 and never decreases as the length grows. The stopping rules rely on this
        property.
        """
        length += self.before
        if self.kind == "gnmt":
            return float(((5.0 + length) / 6.0) ** self.alpha)
        return float(length**self.alpha) if self.kind == "power" else 1.0


@dataclass(frozen=True)
class LengthLimit:
    """
    The maximum number of generated tokens; end symbols of source and target are not counted.

    Section 6.1: “maximum output length during inference to input length + 50”.
    `StoppingPolicy.length_limit_policy` determines what happens to a hypothesis at the limit.
    """

    extra: int
    """Number of tokens allowed, or allowed beyond the source's length."""
    relative: bool
    """Whether the source's length is added."""

    @classmethod
    def parse(cls, text: str) -> "LengthLimit":
        """Parse ``input+50`` or ``200``; anything else raises `SettingError`."""
        relative = text.startswith("input+")
        number = text.removeprefix("input+")
        if re.fullmatch(r"[0-9]{1,6}", number) and (relative or int(number) > 0):
            return cls(int(number), relative)
        raise SettingError(
            "a length limit must be input+N, or N above 0, where N is a whole number below a "
            f"million, but is {text!r}; the paper's is input+50."
        )

    def tokens(self, source_length: int) -> int:
        """Compute the maximum number of target tokens; both lengths exclude special symbols."""
        return self.extra + (source_length if self.relative else 0)
