"""
The inputs of training: resolved, checked and prepared before the first step.

Every rank resolves and checks the arguments. Only rank zero chooses and writes machine settings,
subwords and ids; other ranks and a resumed run read them.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from os.path import abspath
from pathlib import Path
from typing import Any

import torch

from heedful.arguments import Files
from heedful.config.load import load_task_config, setting_list
from heedful.config.schema import RunConfig
from heedful.data.batching import BATCHES_VERSION
from heedful.data.encoded.dataset import EncodedPairs
from heedful.data.overlap.leaks import HeldOutPairs
from heedful.errors import DeviceError, RunFolderError, SettingError, TextError
from heedful.kernels.api import kernels_kind, resolve_precision, softmax_kind
from heedful.machine.devices import (
    describe_machine,
    instruction_set,
    resolve_device,
    resolve_threads,
)
from heedful.plugins import load_plugins
from heedful.preparation.find_training_data import find_training_data
from heedful.preparation.pair_text import PAIRS, find_pair_text
from heedful.preparation.tokenizer import check_given_tokenizer
from heedful.preparation.training_data import (
    Preparation,
    Say,
    Sizes,
    TrainingData,
    UnpreparedText,
    without_keys,
)
from heedful.runs.folder import RunFolder
from heedful.runs.hub_names import run_folder
from heedful.runs.lock import LOCK
from heedful.runs.machine_settings import MachineSettings
from heedful.runs.run import (
    Run,
    flat_settings,
    newer_settings,
    read_corpus,
    read_machine_settings,
    read_settings,
    write_config,
)
from heedful.settings.registries import SCHEDULES
from heedful.tasks.registry import task_of, tasks
from heedful.tasks.task import TRANSLATION, Task
from heedful.text.pairs import store_pairs
from heedful.training.distributed import RankGroup
from heedful.training.finetune import (
    PretrainedRun,
    check_objective,
    check_same_optimizer,
    check_shape,
    find_pretrained,
    inherited_settings,
    subwords_of,
)
from heedful.training.options import TrainingOptions
from heedful.training.tensorboard import require_tensorboard
from heedful.training.validation import find_held_out

# Settings of durations and intervals, which do not affect the weights after a given step.
_MAY_CHANGE = frozenset(
    f"train.{name}"
    for name in (
        "steps",
        "minutes",
        "checkpoint_steps",
        "checkpoint_minutes",
        "keep_last",
        "keep_best",
        "validate_steps",
        "validation_samples",
        "patience",
    )
)
# Schedules that depend on these settings: cosine on the last step, plateau on validations.
_OF_THE_SCHEDULE = {"cosine": {"train.steps"}, "plateau": {"train.validate_steps"}}
_OF_THE_MACHINE = frozenset(("train.device", "train.precision", "train.threads"))
# Validation text is also compared by content. Training text is compared by the digests of encoded
# pairs.
_VALIDATION = ("valid_source", "valid_target")
# Maximum tokens per side on a CPU: a step of the base model then needs at most about 3 GB
# (docs/results/speed.md). A batch of about 4,096 tokens is computed at once. For a step of `small`,
# this took 0.9 times as long as micro-batches of 2,048 tokens.
_CPU_MICRO_BATCH_TOKENS = 4608


@dataclass(frozen=True)
class TrainingSetup:
    """The settings, text and folders of training, resolved before any file is written."""

    config: RunConfig
    """The settings of the recipe, with all changes by the user."""
    training_data: TrainingData
    """Raw or prepared text."""
    files: Sizes
    """Sizes of all text files, to compare when the run is resumed."""
    valid: tuple[list[str], list[str]] | None = None
    """Held-out sources and their translations."""
    held_out: HeldOutPairs | None = None
    """
    Held-out pairs with line numbers; the training text is searched for them.

    None for tasks with their own kind of text, or if there are no pairs.
    """
    pretrained: PretrainedRun | None = None
    """The run that fine-tuning starts from."""
    folder: RunFolder | None = None
    """The run folder to create; a dry run may have none."""
    resume: bool = False
    """Whether to continue the run in the folder."""
    allow_inexact: bool = False
    """Whether to continue even if this machine cannot reproduce the run bit for bit."""
    events: Path | None = None
    """The folder for TensorBoard's events, named like the run."""
    stores_valid: bool = False
    """Whether held-out pairs were passed in memory and must be stored in the run."""
    valid_note: str = ""
    """Note on omitted held-out text: pairs with an empty side, and rows without text."""

    def describe_valid(self) -> str:
        """Describe the held-out pairs by their number and the note."""
        if self.valid is None:
            return "none"
        return f"{len(self.valid[0]):,} pairs{self.valid_note}"

    @classmethod
    def resolve(
        cls,
        recipe: str,
        options: TrainingOptions,
        task_texts: Mapping[str, Files | None] | None = None,
    ) -> "TrainingSetup":
        """
        Resolve and check the arguments of `heedful.train`; writes nothing.

        `task_texts`: the text of a task, by the names of its options (`Task.text_options`).
        """
        # 1. plugins and options, which need no text
        load_plugins(options.plugins)
        if options.tensorboard is not None:
            require_tensorboard()
        if options.resume and options.out is None:
            raise SettingError("--resume needs --out, the folder of the run to continue.")
        settings, pretrained = setting_list(options.settings), None
        task, task_text, task_valid = _choose_task(task_texts or {})

        # 2. the pretrained run; settings override its shape and subwords
        tokenizer = None if options.tokenizer is None else run_folder(options.tokenizer)
        if options.finetune_from is not None:
            pretrained = find_pretrained(
                options.finetune_from, options.finetune_weights, options.keep_state, options.reset
            )
        elif options.keep_state or options.reset or options.finetune_weights != "default":
            raise SettingError(
                "--finetune-weights, --keep-state and --reset need --finetune-from, but it is "
                "missing; add it, or leave them out."
            )
        if pretrained is not None:
            origin = flat_settings(Run.open(pretrained.run).config)
            task.check_origin(pretrained.run, origin, pretrained.reset)
        inherited = inherited_settings(pretrained, task) if pretrained else {}
        folder = None if options.out is None else RunFolder(Path(options.out))
        resumed = folder if options.resume else None
        if resumed is not None and resumed.config.exists():
            inherited |= newer_settings(resumed, options.allow_inexact_resume)
        config = load_task_config(task, recipe, settings, inherited)
        check_objective(pretrained, config.train.objective)
        if pretrained is not None:
            task.check_alike(pretrained.run, origin, flat_settings(config), pretrained.reset)
            check_shape(pretrained, config.model)
            check_same_optimizer(pretrained, config.train)
            tokenizer = subwords_of(pretrained, tokenizer)

        # 3. text, which may determine the languages
        named = (options.source, options.target, options.corpora, options.data, task_text)
        pair_text = find_pair_text(options.pairs, resumed, any(named), options.exclude, tokenizer)
        training_data: TrainingData = pair_text or find_training_data(
            options.source,
            options.target,
            options.exclude,
            options.data,
            settings,
            options.corpora,
            tokenizer,
            task,
            task_text,
        )
        if isinstance(training_data, UnpreparedText) and pretrained is not None:
            training_data = training_data.keeping_target("tokenizer" not in pretrained.reset)
        config = training_data.configure(config)
        files = training_data.fingerprint()
        held_out, valid_note = None, ""
        if task_valid:
            valid, sizes = import_module(task.text).held_out(task_valid, config)
        else:
            held_out, sizes, valid_note = find_held_out(options, config, resumed)
            valid = held_out and ([*held_out.sources], [*held_out.targets])
        files |= sizes
        if (acting := task_of(flat_settings(config))) is not task:
            raise SettingError(acting.other_text)

        # 4. folders
        events = None
        if options.tensorboard is not None and options.out is not None:
            events = Path(options.tensorboard, Path(abspath(options.out)).name)
        return cls(
            config,
            training_data,
            files,
            valid,
            held_out,
            pretrained,
            folder,
            options.resume,
            options.allow_inexact_resume,
            events,
            options.valid_pairs is not None,
            valid_note,
        )


def _choose_task(texts: Mapping[str, Files | None]) -> tuple[Task, Files | None, Files | None]:
    """Return the task whose text was given, with its texts for training and validation."""
    for task in tasks():
        if task.text_options is None:
            continue
        name, valid_name = (option.name for option in fields(task.text_options))
        text, valid = texts.get(name), texts.get(valid_name)
        if text:
            return task, text, valid
        if valid:
            raise TextError(
                f"`{valid_name}` is for validation when training with `{name}`, but `{name}` is "
                "missing; give both."
            )
    return TRANSLATION, None, None


def check_folder(folder: RunFolder, setup: TrainingSetup) -> None:
    """
    Check that training may be started or resumed in a folder.

    Raises `RunFolderError` if a new run's folder is not empty, or if the folder to resume is
    missing or contains another run. Writes no files.
    """
    if not setup.resume:
        must = f"--out must be a new or empty folder, but {folder.path} is not"
        if folder.path.exists() and not folder.path.is_dir():
            raise RunFolderError(f"{must} a folder; name another.")
        if folder.path.exists() and is_filled(folder.path):
            go_on = "add --resume to continue the run in it, or " * folder.config.exists()
            raise RunFolderError(f"{must}; {go_on}name another folder.")
    elif not folder.path.exists():
        raise RunFolderError(
            f"--resume must find the folder of the run that it continues, but {folder.path} does "
            "not exist; correct the name, or leave --resume out to begin a new run."
        )
    elif not folder.path.is_dir():
        raise RunFolderError(
            f"--resume must find the folder of the run that it continues, but {folder.path} is not "
            "a folder; correct the name."
        )
    elif folder.config.exists():
        _check_same(folder, setup)
    elif strangers := _unknown_files(folder):
        raise RunFolderError(
            f"--resume must find a run or an empty folder, but {folder.path} has other files "
            f"and no config.json: {', '.join(strangers[:3])}; name another folder."
        )


def is_filled(folder: Path) -> bool:
    """Return whether a folder contains more than the lock file of a killed process."""
    return any(entry.name != LOCK for entry in folder.iterdir())


def _unknown_files(folder: RunFolder) -> list[str]:
    """List the files that a killed run cannot have written."""
    own = re.compile(
        r"(tokenizer|data|pairs|epoch|checkpoints|average|config|log|best|origin|plugins)\b.*|\..*"
    )
    return sorted(e.name for e in folder.path.iterdir() if not own.fullmatch(e.name))


def _check_same(folder: RunFolder, setup: TrainingSetup) -> None:
    """Refuse to resume with changed settings or text that would change the results."""
    files, may_change = setup.files, _may_change(setup.config)
    if setup.allow_inexact:
        may_change |= _OF_THE_MACHINE
    began_with = read_settings(folder, changed_plugins=setup.allow_inexact)
    old, new = flat_settings(began_with), flat_settings(setup.config)
    if changes := _changed_settings(old, new, may_change):
        of_the_machine = not _changed_settings(old, new, may_change | _OF_THE_MACHINE)
        inexactly = ", or add --allow-inexact-resume to go on with small differences"
        raise RunFolderError(
            f"--resume must continue the run in {folder.path} with its original settings, "
            f"but {'; '.join(changes)}. Use the same settings, or continue from its weights in a "
            f"new run with other settings: --finetune-from {folder.path} --keep-state schedule and "
            f"another --out{inexactly * of_the_machine}."
        )
    if isinstance(setup.training_data, UnpreparedText):
        check_given_tokenizer(folder, setup.training_data.tokenizer, setup.config, "--resume")
    began = read_corpus(folder)
    before, now = _without_names(began), _without_names(files)
    if sides := [side for side in before | now if before.get(side) != now.get(side)]:
        raise RunFolderError(
            f"--resume must continue the run in {folder.path} with its original text, but these "
            f"texts were added, left out or changed: {', '.join(sides)}. Give the same text, or "
            "start a new run."
        )
    if changed := _of_other_content(began, files):
        raise RunFolderError(
            f"--resume must continue the run in {folder.path} with its original validation "
            f"text, but {changed} has changed since. Give the same text, or start a new run."
        )


def check_continues(
    run: Run, pairs: Sequence[EncodedPairs], state: Mapping[str, Any], place: Path
) -> None:
    """Refuse to continue a checkpoint with settings or text other than those of its training."""
    settings = state.get("settings")
    if isinstance(settings, dict):
        may_change = _may_change(run.config) | _OF_THE_MACHINE
        # The version that wrote the checkpoint may not have had every setting.
        now = {key: value for key, value in flat_settings(run.config).items() if key in settings}
        if changes := _changed_settings(settings, now, may_change):
            raise RunFolderError(
                f"--resume must continue {place} with the settings it was trained with, but "
                f"{'; '.join(changes)}. Restore {run.folder.config} and give the same settings, or "
                "start a new run with another --out."
            )
    if state.get("pairs", digests := pairs_digests(pairs)) != digests:
        raise RunFolderError(
            f"--resume must continue {place} with the text it was trained with, but the text is "
            "now encoded to different ids. Give the same text, or start a new run with another "
            "--out."
        )


def pairs_digests(pairs: Sequence[EncodedPairs]) -> list[str]:
    """List the digests of the encoded pairs, which show whether the pairs have changed."""
    return [part.digest for part in pairs]


def _may_change(config: RunConfig) -> frozenset[str]:
    """List the settings that a resumed run may change."""
    name = config.train.schedule
    of_the_schedule = set(_OF_THE_SCHEDULE.get(name, ()))
    if name in SCHEDULES.added():  # it may depend on the last step and on validations
        of_the_schedule = {"train.steps", "train.validate_steps"}
    if 0 < config.train.second_pass_start < 1:  # a value below 1 is a share of the steps
        of_the_schedule.add("train.steps")
    return _MAY_CHANGE - of_the_schedule


def _changed_settings(
    old: Mapping[str, Any], new: Mapping[str, Any], may_change: Collection[str]
) -> list[str]:
    """Describe the changed settings, except the settings that may change."""
    return [
        f"{key} was {old.get(key)!r} and is now {new.get(key)!r}"
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key) and key not in may_change
    ]


def _without_names(files: Sizes) -> Sizes:
    """Drop names, empty sides, and digests of validation text (older runs have no digests)."""
    return {
        side: without_keys(records, "file", *(("digest",) if side in _VALIDATION else ()))
        for side, records in files.items()
        if records
    }


def _of_other_content(began: Mapping[str, Any], files: Mapping[str, Any]) -> str:
    """Return the first validation file whose digest differs; older runs have no digests."""
    for side in _VALIDATION:
        for before, now in zip(began.get(side, ()), files.get(side, ()), strict=False):
            if "digest" in before and before["digest"] != now.get("digest"):
                return str(now["file"])
    return ""


def choose_machine_settings(
    folder: RunFolder, setup: TrainingSetup, ranks: RankGroup
) -> MachineSettings:
    """Choose device, threads, precision and micro-batches; a resumed run keeps its choices."""
    if ranks.is_first:
        machine_settings = (
            resumed_settings(folder, setup, ranks)
            if folder.config.exists()
            else _detect_settings(setup.config, ranks)
        )
        write_config(folder, setup.config, machine_settings, setup.files, describe_machine())
    ranks.barrier()  # other ranks read the file that rank zero has written
    return read_machine_settings(folder)


def _detect_settings(config: RunConfig, ranks: RankGroup) -> MachineSettings:
    """Choose device, threads, precision and micro-batch size."""
    settings = config.train
    device = resolve_device(settings.device)
    threads = resolve_threads(settings.threads)
    precision = resolve_precision(settings.precision, device)
    micro = settings.micro_batch_tokens
    if micro is None and device.type == "cuda":
        # a rank computes its share of a batch at once; smaller micro-batches were not compared
        micro = -(-settings.batch_tokens // ranks.world)
    elif micro is None:
        micro = _CPU_MICRO_BATCH_TOKENS
    return MachineSettings(
        device=settings.device if settings.device.startswith("cuda:") else device.type,
        precision=precision,
        threads=threads,
        micro_batch_tokens=micro,
        ranks=ranks.world,
        torch=str(torch.__version__),
        instructions=instruction_set(device),
        batches=BATCHES_VERSION,
        loss=softmax_kind(device),
        kernels=kernels_kind(device),
    )


def resumed_settings(folder: RunFolder, setup: TrainingSetup, ranks: RankGroup) -> MachineSettings:
    """Return a resumed run's machine settings; new ones if they must change and this is allowed."""
    began = read_machine_settings(folder)
    try:
        device = resolve_device(began.device)
        here, loss = instruction_set(device), softmax_kind(device)
        kernels = kernels_kind(device)
    except DeviceError:
        here, loss, kernels = "not here", began.loss, began.kernels
    now = {
        "ranks": ranks.world,
        "torch": torch.__version__,
        "instructions": here,
        "batches": BATCHES_VERSION,
        "loss": loss,
        "kernels": kernels,
    }
    differences = [
        f"{name} was {getattr(began, name)} and is now {value}"
        for name, value in now.items()
        if getattr(began, name) and getattr(began, name) != value
    ]
    began_with = read_settings(folder, changed_plugins=setup.allow_inexact)
    before, requested = flat_settings(began_with), flat_settings(setup.config)
    if not differences and all(before[name] == requested[name] for name in _OF_THE_MACHINE):
        return began
    if not setup.allow_inexact:
        raise RunFolderError(
            f"--resume must continue the run in {folder.path} bit for bit, but "
            f"{'; '.join(differences)}. The run began on {began.device}. Restore the original "
            "values, or add --allow-inexact-resume to go on with small differences."
        )
    detected = _detect_settings(setup.config, ranks)
    if detected.device.partition(":")[0] != began.device.partition(":")[0]:
        return detected  # the old micro-batch size is for another kind of device
    return detected.model_copy(update={"micro_batch_tokens": began.micro_batch_tokens})


def prepare_data(
    folder: RunFolder, setup: TrainingSetup, ranks: RankGroup, say: Say
) -> tuple[Run, tuple[EncodedPairs, ...]]:
    """
    Prepare subwords and encoded pairs, or reopen them.

    Each file is written atomically, so a killed run can continue here. `train.threads` is also the
    number of worker processes that prepare the text. Raises `SettingError` for forbidden ids that
    the target vocabulary lacks.
    """
    training_data = setup.training_data
    if ranks.is_first:
        if setup.valid is not None and setup.stores_valid:
            store_pairs(folder.path / PAIRS, "valid", zip(*setup.valid, strict=True))
        threads = setup.config.train.threads
        training_data.prepare(Preparation(folder, setup.config, threads, say, setup.held_out))
    ranks.barrier()  # other ranks open the files that rank zero has written
    run = Run.open(folder.path)
    run.check_forbidden_ids()  # possible only after the subwords are known
    return run, tuple(EncodedPairs.open(ids, run.tokenizer) for ids in training_data.ids(folder))
