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
from dataclasses import dataclass
from os.path import abspath
from pathlib import Path
from types import FrameType
from typing import Any

from heedful.arguments import checked
from heedful.config.load import Settings
from heedful.config.schema import RunConfig
from heedful.data.batch import Collator
from heedful.data.encoded.dataset import EncodedPairs
from heedful.data.mixing import JoinedPairs, Mixture, mixing_shares
from heedful.errors import RunFolderError, RunStopped
from heedful.machine.devices import resolve_device, resolve_threads
from heedful.model.build import initialise, parameter_count
from heedful.model.transformer import Transformer
from heedful.preparation.training_data import Files, TrainingData
from heedful.runs.checkpoint import Checkpoint, check_weights, retain, save_checkpoint
from heedful.runs.folder import RunFolder, write_json
from heedful.runs.run import MachineSettings, Run
from heedful.search.length import LengthLimit, LengthPenalty
from heedful.training.batches import Sampler, TrainingPairs
from heedful.training.distributed import RankGroup, rank_group
from heedful.training.finetune import PretrainedRun, first_weights, write_pretrained
from heedful.training.log import RunLog
from heedful.training.optimizer import MixedPrecisionAdam
from heedful.training.run_folder import Claim, RunFiles, create_run_folder, require_usable
from heedful.training.setup import check_continues, choose, find_setup, pairs_digests, prepare_data
from heedful.training.state import StopSignal, TrainState
from heedful.training.tensorboard import EventLog, require_tensorboard
from heedful.training.trainer import Trainer
from heedful.training.trainer_config import TrainerConfig
from heedful.training.validation import validator


@dataclass(frozen=True)
class TrainingResult:
    """How a training ended and what it produced."""

    reason: str
    """Why it ended: steps, minutes or patience."""
    run: Path
    """The run folder, for `Translator.load`."""
    step: int
    """Steps of the run, those of earlier sittings included."""
    best: tuple[dict[str, Any], ...]
    """The best validations, best first: step, valid_loss, bleu; empty without held-out text."""
    log: Path
    """The file with a line of JSON for every report and validation."""

    def __repr__(self) -> str:
        return f"TrainingResult({str(self.run)!r}, ended by {self.reason} at step {self.step:,})"


@checked
def train(
    recipe: str,
    *,
    out: str | Path,
    source: Files | None = None,
    target: Files | None = None,
    corpora: str | Path | None = None,
    data: str | Path | None = None,
    exclude: Files | None = None,
    valid_source: Files | None = None,
    valid_target: Files | None = None,
    settings: Settings = (),
    tokenizer: str | Path | None = None,
    resume: bool = False,
    allow_inexact_resume: bool = False,
    tensorboard: str | Path | None = None,
    quiet: bool = False,
    finetune_from: str | Path | None = None,
    finetune_weights: str = "default",
    keep_state: Sequence[str] = (),
    reset: Sequence[str] = (),
) -> TrainingResult:
    """
    Train a model.

    Parameters
    ----------
    recipe : str
        A built-in name or a TOML file.
    out : path
        The run folder to create or, with `resume`, to continue.
    source, target : path, glob, or sequence of them, optional
        Line-aligned text, or parts of files such as ``pairs.tsv:2`` and ``memory.tmx:en``; plain,
        `.gz` or `.xz`.
    corpora : path, optional
        A TOML file that describes several corpora, instead of `source` and `target`.
    data : path, optional
        A folder made by `heedful data prepare`, instead of all these.
    exclude : path, glob, or sequence of them, optional
        Texts that training must not see, such as test sets: pairs with a line of them are dropped.
    valid_source, valid_target : path, glob, or sequence of them, optional
        Validation pairs.
    settings : dict or sequence of str, optional
        ``{"train.steps": 200}``, ``{"train": {"steps": 200}}`` or ``["train.steps=200"]``.
    tokenizer : path, optional
        A folder with ``tokenizer.json``, codes of subword-nmt, a list of words or a sentencepiece
        ``.model``, instead of subwords learned from the text. A resumed run keeps its own.
    resume : bool, default False
        Continue from the last checkpoint, or begin if there is none yet.
    allow_inexact_resume : bool, default False
        Let `resume` continue even if this machine cannot reproduce the run bit for bit.
    tensorboard : path, optional
        TensorBoard's `--logdir`; events are written to a folder in it, named like the run.
    quiet : bool, default False
        Show no progress.
    finetune_from : path, optional
        A pretrained run whose weights, shape and subwords are taken over.
    finetune_weights : str, default 'default'
        Which of its weights: ``average``, ``best``, ``last`` or ``step-N``.
    keep_state : sequence of {'optimiser', 'schedule'}, optional
        State that is kept besides the weights.
    reset : sequence of {'tokenizer', 'embeddings', 'encoder', 'decoder'}, optional
        Parts that are reset.

    Returns
    -------
    TrainingResult
        Why it ended, the run folder, its steps, its best validations.

    Notes
    -----
    Raises `RunStopped` after a checkpoint if a signal ends it, other kinds of `HeedfulError` for
    everything a user can cause. Under `torchrun` each process calls this.
    """
    if tensorboard is not None:
        require_tensorboard()
    setup = find_setup(
        recipe,
        source=source,
        target=target,
        corpora=corpora,
        data=data,
        exclude=exclude,
        valid_source=valid_source,
        valid_target=valid_target,
        settings=settings,
        tokenizer=tokenizer,
        finetune_from=finetune_from,
        finetune_weights=finetune_weights,
        keep_state=keep_state,
        reset=reset,
    )
    config, files, training_data = setup.config, setup.files, setup.training_data
    folder = RunFolder(Path(out))
    with rank_group(resolve_device(config.train.device)) as ranks, ExitStack() as claimed:
        claim = Claim()
        claimed.enter_context(_not_ended_by_sigusr1())
        if ranks.is_first:
            claim = claimed.enter_context(
                create_run_folder(folder, config, files, resume, allow_inexact_resume)
            )
            write_pretrained(folder, setup.pretrained)
        ranks.broadcast(0.0)
        machine_settings = choose(folder, config, files, ranks, allow_inexact_resume)
        run, pairs = prepare_data(folder, config, training_data, ranks, _silent if quiet else _say)
        events = None
        if tensorboard is not None:
            events = Path(tensorboard, Path(abspath(out)).name)
            claim.will_make(events)
        session = _Session(
            run,
            pairs,
            machine_settings,
            ranks,
            setup.valid,
            training_data,
            setup.pretrained,
            quiet,
            claim,
            events,
        )
        return session.train()


@dataclass
class _Session:
    """One sitting of a run: sets up the parts, trains, reports the end."""

    run: Run
    pairs: tuple[EncodedPairs, ...]
    machine_settings: MachineSettings
    ranks: RankGroup
    valid: tuple[list[str], list[str]] | None
    training_data: TrainingData
    pretrained: PretrainedRun | None
    quiet: bool
    claim: Claim
    events: Path | None = None

    def train(self) -> TrainingResult:
        """Train from the last checkpoint or from the beginning."""
        settings, device = self.run.config.train, resolve_device(self.machine_settings.device)
        resolve_threads(self.machine_settings.threads)
        model = self.run.build()
        initialise(model, settings.seed)
        train_state, begin = self._beginning(model)
        self.claim.train_state = train_state
        model.to(device)
        weights = MixedPrecisionAdam(
            model,
            self.machine_settings.precision,
            settings.beta1,
            settings.beta2,
            settings.epsilon,
            settings.weight_decay,
            settings.ema_decay,
        )
        if begin is not None:
            adam_steps = train_state.counters.step + (
                self.pretrained.adam_steps if self.pretrained else 0
            )
            weights.load(begin.model, begin.training, adam_steps)
        collator = self.run.collator(model)
        pairs = self._training_pairs(collator)
        validate = None
        if self.valid is not None:
            search = self.run.config.search
            validate = validator(
                model,
                self.run.tokenizer,
                collator,
                *self.valid,
                max_length=self.run.config.data.max_length,
                limit=LengthLimit.parse(search.max_length),
                penalty=LengthPenalty.parse(search.length_penalty),
                language=self.run.config.data.target_language,
                best_by=settings.best_by,
                samples=settings.validation_samples,
            )
        log_path = self.run.folder.log if self.ranks.is_first else None
        step = train_state.counters.step
        with (
            self._observer(step) as observer,
            RunLog(log_path, step, settings.steps, self.quiet, observer) as log,
        ):
            trainer = Trainer(
                model,
                weights,
                pairs,
                pairs.collate,
                _trainer_config(self.run.config, self.pretrained),
                train_state,
                self.ranks,
                log,
                _CheckpointWriter(
                    self.run, weights, train_state, pairs_digests(self.pairs), log.say
                ),
                validate,
                settings.keep_best,
                pairs.describe,
            )
            self._introduce(log, parameter_count(model), train_state)
            trainer.check_memory()
            self.claim.trains = True
            with _signals(trainer.stop):
                reason = trainer.run()
            step = train_state.counters.step
            if self.ranks.is_first:
                require_usable(self.run.folder)
            log.say(f"ended by {reason} at step {step:,}; the run is in {self.run.folder.path}")
        if reason not in ("steps", "minutes", "patience"):
            raise RunStopped(
                f"training was ended by {reason} at step {step:,}; a checkpoint was written. Run "
                "the same command with --resume to continue."
            )
        folder = self.run.folder
        return TrainingResult(reason, folder.path, step, tuple(train_state.best), folder.log)

    def _beginning(self, model: Transformer) -> tuple[TrainState, Checkpoint | None]:
        """Find and check the last checkpoint, else pretrained weights, else None."""
        checkpoint = self.run.last_checkpoint()
        if checkpoint is not None:
            place = self.run.folder.checkpoint(self.run.folder.steps()[-1])
            check_continues(self.run, self.pairs, checkpoint.state, place)
            check_weights(model, checkpoint.model, self.run.folder.path)
            return _train_state(checkpoint, place), checkpoint
        if self.pretrained is not None:
            return TrainState(), first_weights(self.pretrained, self.run, model)
        return TrainState(), None

    @contextmanager
    def _observer(self, step: int) -> Iterator[Callable[[dict[str, Any]], None] | None]:
        """Create the TensorBoard writer if requested."""
        if self.events is None or not self.ranks.is_first:
            yield None
            return
        with EventLog.follow(self.events, self.run.folder.log, step) as events:
            yield events.write

    def _training_pairs(self, collator: Collator) -> TrainingPairs:
        """Create the training pairs, with fixed or sampled subwords."""
        data, seed = self.run.config.data, self.run.config.train.seed
        joined = JoinedPairs(self.pairs)
        mixture = None
        if len(self.pairs) > 1:
            weights = self.training_data.weights()
            shares = mixing_shares(joined.sizes, weights, data.mixing_temperature)
            mixture = Mixture(joined.sizes, tuple(shares), seed)
        sampler = None
        if data.subword_sampling:
            sampler = Sampler(self.run, self.pairs, self.ranks, self.machine_settings.threads)
        return TrainingPairs(joined, self.run, self.machine_settings, collator, mixture, sampler)

    def _introduce(self, log: RunLog, parameters: int, train_state: TrainState) -> None:
        """Report what is about to be trained on what and how."""
        config, machine = self.run.config, self.machine_settings
        source, target = self.run.vocabularies
        for line in self.training_data.report(self.pairs, self.run.tokenizer):
            log.say(line)
        log.say(
            f"{config.recipe}: {parameters:,} parameters, vocabulary {source:,}"
            + ("" if config.data.shared_vocabulary else f" and {target:,}")
            + f", {machine.precision} on {machine.device} with {machine.threads} "
            + ("thread" if machine.threads == 1 else "threads")
            + (f", {self.ranks.world} ranks" if self.ranks.world > 1 else "")
        )
        if self.pretrained is not None:
            log.say(f"from {self.pretrained.describe()}")
        if train_state.counters.step:
            log.say(f"continuing from step {train_state.counters.step:,}")


class _CheckpointWriter:
    """Writer of checkpoints that keeps the best and deletes old ones."""

    def __init__(
        self,
        run: Run,
        weights: MixedPrecisionAdam,
        train_state: TrainState,
        pairs: list[str],
        say: Callable[[str], object],
    ) -> None:
        self.run, self.weights, self.train_state, self.pairs = run, weights, train_state, pairs
        self.say, self.files = say, RunFiles(run.folder)

    def save(self, reason: str) -> None:
        """Write the present state; replace or keep a checkpoint of the same step."""
        folder, settings = self.run.folder, self.run.config.train
        step = self.train_state.counters.step
        for name in self.files.restore():
            self.say(f"warning: {name} was removed while training; it was written again")
        state = {
            "reason": reason,
            "step": step,
            "recipe": self.run.config.recipe,
            **self.run.signature,
            "pairs": self.pairs,
            "counters": self.train_state.counters.to_dict(),
            "best": self.train_state.best,
            "without_better": self.train_state.without_better,
            "since_log": self.train_state.since_log,
        }
        save_checkpoint(
            folder.checkpoint(step), self.weights.weights(), self.weights.moments(), state
        )
        best = [int(entry["step"]) for entry in self.train_state.best]
        if best:
            write_json(folder.best, {"best": self.train_state.best})
        retain(folder, settings.keep_last, best if settings.keep_best else [])


def _train_state(checkpoint: Checkpoint, place: Path) -> TrainState:
    """Read the training state from a checkpoint."""
    try:
        return TrainState.from_dict(checkpoint.state)
    except ValueError as error:
        raise RunFolderError(
            f"{place} must hold the state of a training, but {error}: it was changed. Delete "
            "that folder to continue from the checkpoint before it."
        ) from error


def _trainer_config(config: RunConfig, pretrained: PretrainedRun | None) -> TrainerConfig:
    """Collect the trainer's settings as plain values."""
    settings = config.train
    return TrainerConfig(
        steps=settings.steps,
        d_model=config.model.d_model,
        warmup=settings.warmup,
        learning_rate_factor=settings.learning_rate_factor,
        seed=settings.seed,
        schedule_steps=pretrained.schedule_steps if pretrained else 0,
        minutes=settings.minutes,
        label_smoothing=settings.label_smoothing,
        smoothing_target=settings.smoothing_target,
        clip_norm=settings.clip_norm,
        checkpoint_steps=settings.checkpoint_steps,
        checkpoint_minutes=settings.checkpoint_minutes,
        validate_steps=settings.validate_steps,
        patience=settings.patience,
        best_by=settings.best_by,
    )


def _say(text: str) -> None:
    """Print what is being done."""
    print(text, file=sys.stderr, flush=True)


def _silent(text: str) -> None:
    """Print nothing."""


@contextmanager
def _not_ended_by_sigusr1() -> Iterator[None]:
    """Ignore SIGUSR1 while there is nothing to save."""
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
    """
    Install signal handlers: stop after the present step, or write a checkpoint.

    Ctrl-C, SIGTERM and SIGHUP stop the run, a second Ctrl-C at once. SIGUSR1 writes a checkpoint. A
    hang-up that is ignored, as under nohup, stays ignored.
    """
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
