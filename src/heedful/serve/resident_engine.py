"""
An engine that is unloaded when nobody uses it and opened again for the next request.

Only the worker thread uses and unloads the engine, so no search can lose its weights. A request
during unloading waits until the engine is opened again.
"""

import gc
import logging
import time
from collections.abc import Callable

from heedful.errors import HeedfulError
from heedful.machine.memory import give_memory_back
from heedful.serve.limits import HttpError
from heedful.tokenization.tokenizer import Tokenizer
from heedful.translation.engine import TranslationEngine

_log = logging.getLogger("heedful.serve")


class ResidentEngine:
    """
    An engine and the function that opens it.

    `open_again`: function that opens the same engine from its current files.
    """

    def __init__(
        self, name: str, engine: TranslationEngine, open_again: Callable[[], TranslationEngine]
    ) -> None:
        self.name = name
        self.last_used = time.monotonic()
        self._tokenizer = engine.tokenizer
        self._engine: TranslationEngine | None = engine
        self._open_again = open_again

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer, which stays in memory; usable in any thread."""
        return self._tokenizer

    @property
    def is_loaded(self) -> bool:
        """Whether the engine is in memory."""
        return self._engine is not None

    def use(self) -> TranslationEngine:
        """Return the engine, opened if necessary; raise `HttpError` if it cannot be opened."""
        if self._engine is None:
            try:
                self._engine = self._open_again()
            except (HeedfulError, OSError) as error:
                _log.error("%s cannot be loaded again: %s", self.name, error)
                raise HttpError(
                    503, "the model cannot be loaded now; the server's log has the reason.", 10
                ) from error
            self._tokenizer = self._engine.tokenizer
            _log.info("%s was loaded again", self.name)
        self.last_used = time.monotonic()
        return self._engine

    def unload(self, idle_seconds: float) -> None:
        """Free the memory of the engine, unless it was used in the last `idle_seconds`."""
        if self._engine is None or time.monotonic() < self.last_used + idle_seconds:
            return
        self._engine = None
        gc.collect()  # modules form reference cycles
        give_memory_back()
        _log.info("%s was unloaded", self.name)
