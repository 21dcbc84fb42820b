"""
Training, from two text files to a run folder.

::

    settings ─ run folder ─ tokenizer ─ encoded pairs ─ model ─ Trainer ─ checkpoints
"""

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from heedful.arguments import check_keywords, checked, with_fields_of
from heedful.config.train import TWO_PASSES, TrainConfig
from heedful.data.batching import Collator
from heedful.data.encoded.dataset import EncodedPairs, JoinedPairs
from heedful.data.mixing import Mixture, mixing_shares
from heedful.errors import DeviceError, RunFolderError, RunStopped, SettingError, escape_controls
from heedful.families.registry import families
from heedful.machine.device_memory import require_room
from heedful.machine.devices import resolve_device, resolve_threads, same_bytes
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.model.initialize import initialize
from heedful.model.weights import parameter_count
from heedful.runs.checkpoint import Checkpoint, check_weights, retain, save_checkpoint
from heedful.runs.folder import write_json
from heedful.runs.machine_settings import MachineSettings
from heedful.runs.run import Run, best_validations, has_old_average
from heedful.tasks.registry import text_options
from heedful.training.batches import Sampler, TrainingPairs
from heedful.training.both_directions import two_trainings
from heedful.training.callbacks import Callback, Callbacks
from heedful.training.device.optimizations import describe_steps, why_padded
from heedful.training.device.trainer import DeviceTrainer
from heedful.training.distributed import RankGroup, rank_group
from heedful.training.finetune import first_weights, write_pretrained
from heedful.training.live_line import LiveLine, live_line
from heedful.training.log import RunLog
from heedful.training.objective.build import build_objective
from heedful.training.optimizer import MixedPrecisionOptimizer
from heedful.training.options import TrainingOptions
from heedful.training.result import TrainingResult
from heedful.training.run_folder import Claim, RunFiles, create_run_folder, require_usable
from heedful.training.schedule import Schedule
from heedful.training.setup import (
    TrainingSetup,
    check_continues,
    choose_machine_settings,
    pairs_digests,
    prepare_data,
)
from heedful.training.state import StopSignal, TrainState
from heedful.training.tensorboard import EventLog
from heedful.training.trainer import CALLBACK, Trainer
from heedful.training.validation import validator


@with_fields_of(TrainingOptions, *text_options())
@checked
def train(
    recipe: str,
    *,
    out: str | Path,
    quiet: bool = False,
    callbacks: Sequence[Callback] = (),
    **options: Any,
) -> TrainingResult:
    """
    Train a model.

    Parameters
    ----------
    recipe : str
        A built-in name or a TOML file.
    out : path
        The run folder to create or, with `resume`, to continue.
    quiet : bool, default False
        Show no progress.
    callbacks : sequence of Callback, optional
        Called after steps, lines of the log, validations and checkpoints, and at the end.
    **options : object
        Options of the command `heedful train` by their names, and the text of a task, as follows.

    Returns
    -------
    TrainingResult
        Why training ended, the run folder, its steps and its best validations.

    Notes
    -----
    Raises `RunStopped` after a checkpoint if a signal ends training, and other kinds of
    `HeedfulError` for user errors. Under `torchrun` each process calls this function.
    """
    check_keywords("train", options, TrainingOptions, *text_options())
    names = [option.name for kind in text_options() for option in fields(kind)]
    task_texts = {name: options.pop(name, None) for name in names}
    chosen = TrainingOptions(out=out, **options)
    if chosen.both_directions_first is not None:
        first, chosen = two_trainings(recipe, chosen)
        if first is not None:
            run_training(TrainingSetup.resolve(recipe, first), quiet)
    setup = TrainingSetup.resolve(recipe, chosen, task_texts)
    return run_training(setup, quiet, callbacks)


_OLD_AVERAGE = (
    "; its average lacks the new checkpoints and is no longer the default, so run `heedful "
    "average` again"
)


def run_training(
    setup: TrainingSetup, quiet: bool = False, callbacks: Sequence[Callback] = ()
) -> TrainingResult:
    """Train with a setup: build the parts in order, then run the loop."""
    line = None if quiet else live_line()
    with _open_session(setup, quiet, line) as session, ExitStack() as until_the_end:
        # 1. the model with initial weights, and the state and weights from which training starts
        run, config = session.run, session.run.config
        device = resolve_device(session.machine_settings.device)
        resolve_threads(session.machine_settings.threads)
        until_the_end.enter_context(same_bytes(device, config.train.deterministic))
        model = session.first_model(device)
        train_state, start_weights = session.first_state(model)
        session.claim.train_state = train_state

        # 2. the optimizer, which has the weights in full precision, so weights are loaded into it
        optimizer = session.optimizer(model, device)
        if start_weights is not None:
            # with --keep-state optimizer, the steps of the pretrained run are counted, too
            earlier = setup.pretrained.optimizer_steps if setup.pretrained else 0
            optimizer_step = train_state.counters.step + earlier
            optimizer.load(start_weights.model, start_weights.training, optimizer_step)

        # 3. objective, batches and validation
        objective = build_objective(run, session.machine_settings)
        require_sums_in_order(device, config.train)
        collator = run.collator(model)
        precision = session.machine_settings.precision
        rule = config.train.optimizer
        padded = why_padded(model, device, precision, rule, objective, session.ranks.world)
        pairs = session.training_pairs(collator, without_padding=not padded)
        validate = None
        if setup.valid is not None:
            validate = validator(model, run, collator, *setup.valid)

        # 4. log, checkpoints, and the loop itself
        step = train_state.counters.step
        log_path = run.folder.log if session.ranks.is_first else None
        with (
            session.callbacks(callbacks, step) as called,
            RunLog(log_path, step, config.train.steps, quiet, line) as log,
        ):
            digests = pairs_digests(session.pairs)
            loop = Trainer if padded else DeviceTrainer
            trainer = loop(
                model,
                optimizer,
                pairs,
                pairs.collate,
                config.train,
                session.schedule(),
                train_state,
                session.ranks,
                log,
                _CheckpointWriter(run, optimizer, train_state, digests, log.say),
                validate,
                pairs.describe,
                objective,
                called,
            )
            session.introduce(log, parameter_count(model), train_state)
            if device.type == "cuda":
                log.say(describe_steps(padded))
            if run.config.train.objective != "likelihood":
                log.say(f"objective: {objective.describe()}")
            trainer.check_memory()
            session.claim.trains = True
            with _signals(trainer.stop):
                reason = trainer.run()

            # 5. the end
            step = train_state.counters.step
            session.wait_for_checkpoint()
            average = _OLD_AVERAGE * has_old_average(run.folder)
            log.say(f"ended by {reason} at step {step:,}; the run is in {run.folder.path}{average}")
            result = TrainingResult(
                reason,
                run.folder.path,
                step,
                # the state of other ranks has no validations
                tuple(train_state.best if session.ranks.is_first else best_validations(run.folder)),
                run.folder.log,
            )
            log.result(result)
            called.end(result)
            called.raise_failure()
        if reason not in ("steps", "minutes", "patience", CALLBACK, called.stop_reason):
            raise RunStopped(
                f"training was ended by {reason} at step {step:,}; a checkpoint was written. Run "
                "the same command with --resume to continue."
            )
        return result


@contextmanager
def _open_session(setup: TrainingSetup, quiet: bool, line: LiveLine | None) -> Iterator["_Session"]:
    """Join the ranks, lock the run folder, and prepare its settings and data."""
    folder = setup.folder
    if folder is None:
        raise SettingError("training needs --out, the run folder to create.")
    with rank_group(resolve_device(setup.config.train.device)) as ranks, ExitStack() as claimed:
        claim = Claim()
        claimed.enter_context(_not_ended_by_sigusr1())
        if ranks.is_first:
            claim = claimed.enter_context(create_run_folder(folder, setup))
            write_pretrained(folder, setup.pretrained)
        ranks.barrier()  # wait until rank zero has locked or refused the folder
        machine_settings = choose_machine_settings(folder, setup, ranks)
        say = _silent if quiet else line.say if line is not None else _say
        run, pairs = prepare_data(folder, setup, ranks, say)
        if setup.events is not None:
            claim.will_make(setup.events)
        yield _Session(setup, run, pairs, machine_settings, ranks, claim)


@dataclass(frozen=True)
class _Session:
    """A session of a run: the parts that exist before the model is built."""

    setup: TrainingSetup
    run: Run
    pairs: tuple[EncodedPairs, ...]
    machine_settings: MachineSettings
    ranks: RankGroup
    claim: Claim

    def first_model(self, device: torch.device) -> EncoderDecoder:
        """Build the model with initial weights; raises an error if the device lacks memory."""
        with torch.device("meta"):
            require_room(parameter_count(self.run.build()), device)
        seed = self.run.config.train.seed
        with torch.random.fork_rng(devices=[]):  # plugin modules may draw random numbers
            torch.manual_seed(seed)
            model = self.run.build()
        initialize(model, seed)
        return model

    def first_state(self, model: EncoderDecoder) -> tuple[TrainState, Checkpoint | None]:
        """Return the first state, and a `Checkpoint` of the weights or None for new weights."""
        # a checkpoint exists only with --resume: otherwise `check_folder` refuses filled folders
        checkpoint = self.run.last_checkpoint()
        if checkpoint is not None:
            place = self.run.folder.checkpoint(self.run.folder.steps()[-1])
            check_continues(self.run, self.pairs, checkpoint.state, place)
            check_weights(model, checkpoint.model, self.run.folder.path)
            return _train_state(checkpoint, place), checkpoint
        if self.setup.pretrained is not None:
            weights = first_weights(self.setup.pretrained, self.run, model)
            return TrainState(decays=self.setup.pretrained.decays), weights
        return TrainState(), None

    def optimizer(self, model: EncoderDecoder, device: torch.device) -> MixedPrecisionOptimizer:
        """Move the model to the device, and create its optimizer (section 5.3)."""
        precision = self.machine_settings.precision
        try:
            return MixedPrecisionOptimizer(model.to(device), precision, self.run.config.train)
        except torch.OutOfMemoryError as error:
            raise DeviceError(
                f"the model and its optimizer must fit into the memory of {device}, but "
                f"{parameter_count(model):,} weights do not; make the model smaller, or free "
                "memory that other programs use there."
            ) from error

    def schedule(self) -> Schedule:
        """Make the schedule, which may continue the schedule of the pretrained run."""
        pretrained = self.setup.pretrained
        return Schedule.of(self.run.config, pretrained.schedule_steps if pretrained else 0)

    @contextmanager
    def callbacks(self, callbacks: Sequence[Callback], step: int) -> Iterator[Callbacks]:
        """Collect the callbacks of the first rank, with TensorBoard's writer if requested."""
        if not self.ranks.is_first:
            yield Callbacks()
        elif self.setup.events is None:
            yield Callbacks(callbacks)
        else:
            with EventLog.follow(self.setup.events, self.run.folder.log, step) as events:
                yield Callbacks([events, *callbacks])

    def training_pairs(self, collator: Collator, without_padding: bool) -> TrainingPairs:
        """Create the training pairs, with fixed or sampled subwords."""
        data, seed = self.run.config.data, self.run.config.train.seed
        joined = JoinedPairs(self.pairs)
        mixture = None
        if len(self.pairs) > 1:
            weights = self.setup.training_data.weights()
            shares = mixing_shares(joined.sizes, weights, data.mixing_temperature)
            mixture = Mixture(joined.sizes, tuple(shares), seed)
        sampler = None
        if data.subword_sampling or data.augment:
            sampler = Sampler(self.run, self.pairs, self.ranks, self.machine_settings.threads)
        return TrainingPairs(
            *(joined, self.run, self.machine_settings, collator, mixture, sampler, without_padding)
        )

    def wait_for_checkpoint(self) -> None:
        """Wait until rank zero has written the last checkpoint, which another run may read."""
        self.ranks.barrier()
        if self.ranks.is_first:
            require_usable(self.run.folder)

    def introduce(self, log: RunLog, parameters: int, train_state: TrainState) -> None:
        """Report model, data and machine before the first step."""
        config, machine = self.run.config, self.machine_settings
        source, target = self.run.vocabularies
        text = self.setup.training_data
        notes = text.held_out_notes(self.pairs, self.setup.files)
        for line in (*text.report(self.pairs, self.run.tokenizer), *notes):
            log.say(line)
        if self.setup.valid_note:
            log.say(f"validation: {self.setup.describe_valid()}")
        log.say(
            f"{config.recipe}: {parameters:,} parameters, vocabulary {source:,}"
            + ("" if config.data.shared_vocabulary else f" and {target:,}")
            + f", {machine.precision} on {machine.device} with {machine.threads} "
            + ("thread" if machine.threads == 1 else "threads")
            + (f", {self.ranks.world} ranks" if self.ranks.world > 1 else "")
        )
        for family in families():
            for note in family.training_notes(config.model, self.ranks.world):
                log.say(note)
        if self.setup.pretrained is not None:
            log.say(f"from {self.setup.pretrained.describe()}")
        if train_state.counters.step:
            log.say(f"continuing from step {train_state.counters.step:,}")


def require_sums_in_order(device: torch.device, settings: TrainConfig) -> None:
    """Refuse deterministic training on a GPU if the objective adds numbers in no fixed order."""
    is_asked = settings.deterministic and device.type == "cuda"
    if is_asked and settings.objective not in ("likelihood", *TWO_PASSES):
        raise SettingError(
            "`train.deterministic` must be false on a GPU with `train.objective` "
            f"{settings.objective}, because a GPU computes this objective's sums in no fixed "
            "order; leave one of the two settings out."
        )


class _CheckpointWriter:
    """Writer of checkpoints that keeps the best and deletes old ones."""

    def __init__(
        self,
        run: Run,
        optimizer: MixedPrecisionOptimizer,
        train_state: TrainState,
        pair_digests: list[str],
        say: Callable[[str], object],
    ) -> None:
        self.run, self.optimizer, self.train_state = run, optimizer, train_state
        self.pair_digests, self.say, self.files = pair_digests, say, RunFiles(run.folder)

    def save(self, reason: str) -> Path:
        """Write a checkpoint of the current state, and delete checkpoints that are not kept."""
        folder, settings = self.run.folder, self.run.config.train
        step = self.train_state.counters.step
        for name in self.files.restore():
            self.say(f"warning: {name} was removed during training; it was written again")
        state = {
            "reason": reason,
            "step": step,
            "recipe": self.run.config.recipe,
            **self.run.signature,
            "pairs": self.pair_digests,
            "counters": self.train_state.counters.to_dict(),
            "best": self.train_state.best,
            "best_regular": self.train_state.best_regular,
            "without_better": self.train_state.without_better,
            "decays": self.train_state.decays,
            "bad_validations": self.train_state.bad_validations,
            "moments": list(self.optimizer.moment_kinds),
            "since_log": list(self.train_state.since_log),
        }
        save_checkpoint(
            folder.checkpoint(step), self.optimizer.weights(), self.optimizer.moments(), state
        )
        best = [int(entry["step"]) for entry in self.train_state.best]
        if best:
            write_json(folder.best, {"best": self.train_state.best})
        retain(folder, settings.keep_last, best if settings.keep_best else [])
        return folder.checkpoint(step)


def _train_state(checkpoint: Checkpoint, place: Path) -> TrainState:
    """Read the training state from a checkpoint."""
    try:
        return TrainState.from_dict(checkpoint.state)
    except ValueError as error:
        raise RunFolderError(
            f"{place} must hold the state of a training run, but {error}; the state was changed. "
            "Delete that folder to continue from the checkpoint before it."
        ) from error


def _say(text: str) -> None:
    """Print progress."""
    print(escape_controls(text), file=sys.stderr, flush=True)


def _silent(text: str) -> None:
    """Print nothing."""


@contextmanager
def _not_ended_by_sigusr1() -> Iterator[None]:
    """Ignore SIGUSR1 until a checkpoint can be written."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, before)


@contextmanager
def _signals(stop: StopSignal) -> Iterator[None]:
    """Install signal handlers: stop after the current step, or write a checkpoint."""
    # Ctrl-C, SIGTERM and SIGHUP stop the run; a second Ctrl-C stops it at once. SIGUSR1 requests a
    # checkpoint. If SIGHUP is ignored, as under nohup, it stays ignored.
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ask(number: int, _: FrameType | None) -> None:
        if stop.reason == "SIGINT" and number == signal.SIGINT:
            raise KeyboardInterrupt
        if number == signal.SIGUSR1:
            stop.checkpoint = True
        else:
            stop.reason = signal.Signals(number).name

    numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, ask) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
