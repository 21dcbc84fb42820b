"""
Callbacks: user code that runs while a model trains.

::

    step ─ on_step ─ line of the log? ─ on_log ─ validation? ─ on_validation ─ checkpoint? ─
    on_checkpoint ─ next step … end of the run ─ on_end

With several processes, only the first process has callbacks. A request to stop reaches the other
processes together with the sums of the next step. So training ends one step later than in a single
process.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.errors import ArgumentError, HeedfulError, TrainingFailed

if TYPE_CHECKING:
    from heedful.training.result import TrainingResult


class Callback:
    """
    Base class of callbacks for `heedful.train`; every method may be overridden.

    Notes
    -----
    The methods are called between two steps, in the order of the list of callbacks. An exception in
    a method ends the run after a checkpoint is written. Each callback gets copies of its arguments,
    so changing them changes no log. The number of torch's threads is restored after each call,
    because the weights depend on it.
    """

    stop_reason: str = ""
    """Reason why this callback stops the run; empty if it does not."""

    def stop(self, reason: str = "callback") -> None:
        """
        End the run after this step, with a checkpoint.

        Parameters
        ----------
        reason : str, default 'callback'
            Returned as `TrainingResult.reason`.

        Returns
        -------
        None
            The run ends when the step is complete.

        Notes
        -----
        With several processes the run ends after the next step. `heedful.train(…, resume=True)`
        continues from the checkpoint. Raises `ArgumentError` for a reason that is empty or is not
        text.
        """
        if not isinstance(reason, str) or not reason:
            raise ArgumentError(
                "`reason` of Callback.stop must be text that is not empty, because the result of "
                f"the training records it, but got {reason!r}."
            )
        self.stop_reason = reason

    def on_step(self, figures: Mapping[str, float]) -> None:
        """
        Act after each step.

        Parameters
        ----------
        figures : mapping
            ``step``, ``loss`` (nats per target token), ``gradient_norm`` (before clipping) and
            ``learning_rate`` of the step.

        Returns
        -------
        None
            The result is not used.

        Notes
        -----
        Called between steps, so the time of this method is added to the training time.
        """

    def on_log(self, line: dict[str, Any]) -> None:
        """
        Act on each line of the training log.

        Parameters
        ----------
        line : dict
            The line that was written to ``log.jsonl``, with means since the previous line.

        Returns
        -------
        None
            The result is not used.

        Notes
        -----
        A line is written at every 50th step, after 10 seconds without a line, and when the planned
        steps or minutes end.
        """

    def on_validation(self, line: dict[str, Any]) -> None:
        """
        Act after each validation.

        Parameters
        ----------
        line : dict
            The line that was written to ``log.jsonl``, with ``step``, ``valid_loss``,
            ``valid_perplexity``, the scores, such as ``bleu``, and sample translations.

        Returns
        -------
        None
            The result is not used.

        Notes
        -----
        Needs held-out text and ``train.validate_steps``.
        """

    def on_checkpoint(self, folder: Path) -> None:
        """
        Act after each checkpoint.

        Parameters
        ----------
        folder : Path
            The folder of the checkpoint, complete on disk.

        Returns
        -------
        None
            The result is not used.

        Notes
        -----
        The run may delete the folder later, depending on ``train.keep_last``.
        """

    def on_end(self, result: "TrainingResult") -> None:
        """
        Act at the end of the run.

        Parameters
        ----------
        result : TrainingResult
            The result of `heedful.train`.

        Returns
        -------
        None
            The result is not used.

        Notes
        -----
        Also called after a stop by a signal, but not after an error.
        """


class Callbacks:
    """The callbacks of a run, called in order; the first failure or request to stop is recorded."""

    def __init__(self, callbacks: Sequence[Callback] = ()) -> None:
        self.members = tuple(callbacks)
        self._failure: BaseException | None = None
        for callback in self.members:
            callback.stop_reason = ""  # the callback may have stopped an earlier run

    @property
    def stop_reason(self) -> str:
        """The reason why the run must end; empty if it continues."""
        if self._failure is not None:
            return "a failed callback"
        reasons = (callback.stop_reason for callback in self.members)
        return next(filter(None, reasons), "")

    @property
    def follows_steps(self) -> bool:
        """Whether a callback is called after every step, so that the host waits for the GPU."""
        return any(type(member).on_step is not Callback.on_step for member in self.members)

    def step(self, figures: Mapping[str, float]) -> None:
        """Report a step to the callbacks."""
        self._call("on_step", lambda callback: callback.on_step(dict(figures)))

    def log(self, line: dict[str, Any]) -> None:
        """Report a line of the log."""
        self._call("on_log", lambda callback: callback.on_log(deepcopy(line)))

    def validation(self, line: dict[str, Any]) -> None:
        """Report a validation."""
        self._call("on_validation", lambda callback: callback.on_validation(deepcopy(line)))

    def checkpoint(self, folder: Path) -> None:
        """Report a checkpoint."""
        self._call("on_checkpoint", lambda callback: callback.on_checkpoint(folder))

    def end(self, result: "TrainingResult") -> None:
        """Report the end of the run."""
        self._call("on_end", lambda callback: callback.on_end(result))

    def raise_failure(self) -> None:
        """Raise the error of a callback that has failed."""
        if self._failure is not None:
            raise self._failure

    def _call(self, method: str, report: Callable[[Callback], None]) -> None:
        """Call the callbacks in order until one fails; afterwards no callback is called again."""
        for callback in self.members:
            if self._failure is not None:
                return
            with self._record(f"{type(callback).__name__}.{method}"):
                report(callback)

    @contextmanager
    def _record(self, name: str) -> Iterator[None]:
        """Record an exception, so that the run ends after a checkpoint and then raises it."""
        import torch  # noqa: PLC0415  # callbacks can be defined without torch

        threads = torch.get_num_threads()
        try:
            yield
        except Exception as error:
            self._failure = error
            if not isinstance(error, HeedfulError):
                reason = f"{type(error).__name__}{str(error) and f': {error}'}"
                self._failure = TrainingFailed(
                    f"the callback {name} failed with {reason}. The last checkpoint contains "
                    "all steps so far; the same call with resume=True continues from it."
                )
                self._failure.__cause__ = error
        except BaseException as error:  # such as SystemExit, which ends the program afterwards
            self._failure = error
        finally:
            torch.set_num_threads(threads)  # the sums of a step depend on the number of threads
