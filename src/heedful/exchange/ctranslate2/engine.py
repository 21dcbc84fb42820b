"""
Search and scoring with a CTranslate2 model; inputs and outputs are CTranslate2's tokens.

This module does not import torch, so it runs on a small server. CTranslate2's search has one length
limit for all lines and one length penalty, ``power``. If a hypothesis exceeds the limit of its own
line, the line is searched again with this limit. Other penalties reorder the finished hypotheses of
the beam.
"""

import ctypes
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from weakref import WeakSet

from heedful.errors import DeviceError, ExchangeError, UserError
from heedful.exchange.extras import import_extra
from heedful.machine.processor import check_threads
from heedful.search.settings import SearchOptions

Tokens = Sequence[str]

COMPUTE = {"auto": "default", "fp32": "float32", "bf16": "bfloat16", "int8": "int8"}
"""CTranslate2's names for our precisions; ``auto`` is the precision of the stored weights."""

# With a length penalty, a search ends when the beam is full; without a penalty, when the best
# hypothesis ends. So a negligible penalty selects the first rule.
_NEARLY_NOUGHT = 1e-6


@dataclass(frozen=True)
class EngineHypothesis:
    """A hypothesis of CTranslate2; if the length limit cut it, it has no end symbol."""

    tokens: tuple[str, ...]
    """Tokens without the end symbol."""
    log_probability: float
    """Log-probability, including the end symbol."""
    score: float
    """The log-probability divided by the length penalty."""
    ended: bool
    """Whether the end symbol was reached."""


class Engine:
    """
    Search and forced decoding with CTranslate2. Raises `MissingExtra` if it is not installed.

    CTranslate2 computes in threads that a fork does not have. So a fork of a process that opened a
    model can neither use this model nor open another; an attempt raises `UserError`.
    """

    _process: ClassVar[int] = 0
    """Id of the process that opened the first model."""

    def __init__(
        self,
        folder: Path,
        *,
        end: str = "</s>",
        forbidden: Sequence[str] = (),
        device: str = "cpu",
        precision: str = "auto",
        threads: int = 0,
    ) -> None:
        check_threads(threads)
        Engine._process = Engine._process or os.getpid()
        _check_process()
        self.library: Any = import_extra("ctranslate2", "the engine CTranslate2")
        # otherwise CTranslate2 warns if this machine uses a different number format
        self.library.set_log_level(logging.ERROR)
        self.end, self.forbidden = end, frozenset(forbidden)
        kind, _, number = device.partition(":")
        try:
            self._translator = self.library.Translator(
                str(folder),
                device=kind,
                device_index=int(number or 0),
                compute_type=COMPUTE[precision],
                intra_threads=threads or len(os.sched_getaffinity(0)),
            )
        except ValueError as error:
            raise DeviceError(
                f"CTranslate2 cannot compute with these options: {error}. "
                "Choose another --device or "
                "--precision."
            ) from error
        except RuntimeError as error:
            raise ExchangeError(
                f"{folder} must be a model that CTranslate2 {self.library.__version__} can open, "
                f"but opening it failed: {error}."
            ) from error
        _open_engines.add(self)

    @property
    def name(self) -> str:
        """Name of the engine for users."""
        return f"ctranslate2 {self.library.__version__}"

    def search(
        self,
        sources: Sequence[Tokens],
        limits: Sequence[int],
        settings: SearchOptions,
        prefixes: Sequence[Tokens] | None = None,
        batch_tokens: int = 2048,
    ) -> list[list[EngineHypothesis]]:
        """
        Translate lines; return at most `beam` hypotheses of each line, best first.

        `sources`: tokens of each line, at least one token. `limits`: maximum number of target
        tokens of each line, without the end symbol.

        With a length penalty, CTranslate2's search ends when `beam` hypotheses are complete
        (`as-ctranslate2` in `heedful.search.compat`). CTranslate2 gives a prefix a probability of
        one, and scores one token too many in a cut hypothesis. Lines with a prefix or a cut
        hypothesis are therefore scored again. Cut hypotheses are ranked after complete hypotheses.
        If a hypothesis contains a forbidden token, its line is searched again with all forbidden
        tokens suppressed. Suppression redistributes their probability, so these lines are also
        scored again.
        """
        _check_process()
        penalty, alpha = settings.penalty, settings.penalty.alpha
        powers = {"power": alpha, "gnmt": _NEARLY_NOUGHT * alpha}
        options: dict[str, Any] = {
            "beam_size": settings.size,
            "num_hypotheses": settings.size,
            "length_penalty": powers.get(penalty.kind, 0.0),
            "no_repeat_ngram_size": settings.no_repeat_ngram or 0,
            "max_input_length": 0,
            "max_batch_size": batch_tokens,
            "batch_type": "tokens",
            "return_scores": True,
            "return_end_token": True,
        }
        begins = list(prefixes) if prefixes is not None else [()] * len(sources)
        results: list[list[EngineHypothesis]] = [[] for _ in sources]

        def run(rows: Sequence[int], limit: int, suppressed: Sequence[Tokens]) -> None:
            """Search lines with a common limit."""
            begun = [list(begins[row]) for row in rows]
            outcomes = self._translator.translate_batch(
                [list(sources[row]) for row in rows],
                target_prefix=begun if any(begun) else None,
                min_decoding_length=min(settings.min_length or 0, limit),
                max_decoding_length=limit + 1,
                suppress_sequences=list(map(list, suppressed)) or None,
                **options,
            )
            for row, outcome in zip(rows, outcomes, strict=True):
                ended = [tokens[-1:] == [self.end] for tokens in outcome.hypotheses]
                texts = [
                    tuple(tokens[:-1] if end else tokens[:limit])
                    for tokens, end in zip(outcome.hypotheses, ended, strict=True)
                ]
                power = options["length_penalty"]
                lengths = [len(tokens) + end for tokens, end in zip(texts, ended, strict=True)]
                totals = [s * n**power for s, n in zip(outcome.scores, lengths, strict=True)]
                if begins[row] or suppressed or not all(ended):
                    scored = zip(self.score([sources[row]] * len(texts), texts), ended, strict=True)
                    totals = [sum(s if end else s[:-1]) for s, end in scored]
                hypotheses = [
                    EngineHypothesis(tokens, total, total / penalty.divisor(max(1, length)), end)
                    for tokens, total, length, end in zip(
                        texts, totals, lengths, ended, strict=True
                    )
                ]
                best_first = sorted(hypotheses, key=lambda text: (not text.ended, -text.score))
                once = {text.tokens: text for text in reversed(best_first)}
                results[row] = list(reversed(once.values()))

        if sources:
            run(range(len(sources)), max(limits), ())
        again = [row for row, limit in enumerate(limits) if not self._holds(results[row], limit)]
        for limit in sorted({limits[row] for row in again}):
            rows = [row for row in again if limits[row] == limit]
            run(rows, limit, [[token] for token in sorted(self.forbidden)])
        return results

    def score(self, sources: Sequence[Tokens], targets: Sequence[Tokens]) -> list[list[float]]:
        """Compute the log-probability of each token; the softmax includes forbidden symbols."""
        _check_process()
        results = self._translator.score_batch(
            list(map(list, sources)), list(map(list, targets)), max_input_length=0
        )
        return [list(result.log_probs) for result in results]

    def _holds(self, hypotheses: Sequence[EngineHypothesis], limit: int) -> bool:
        """Return whether all hypotheses are within the limit and free of forbidden tokens."""
        return all(
            len(hypothesis.tokens) <= limit and self.forbidden.isdisjoint(hypothesis.tokens)
            for hypothesis in hypotheses
        )


_open_engines: WeakSet[Engine] = WeakSet()


def _check_process() -> None:
    """Refuse to compute in a fork, which would wait forever for threads that it lacks."""
    if Engine._process != os.getpid():
        raise UserError(
            "models of CTranslate2 must be used by the process that opened the first model, but "
            "this process is a fork without its parent's threads. Open models after the fork, or "
            "start processes with the method “spawn”."
        )


def _after_fork() -> None:
    """Never delete open models in a fork: deletion would wait for threads that the fork lacks."""
    for engine in _open_engines:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine._translator))


os.register_at_fork(after_in_child=_after_fork)
