"""
A run folder as an object: settings, tokenizer, model.

Training creates the folder; all other commands open it.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import torch

from heedful._version import __version__
from heedful.config.schema import RunConfig
from heedful.data.batching import Collator
from heedful.errors import PluginError, RunFolderError, SettingError
from heedful.families.build import build_model, padded_vocabulary
from heedful.files import write_whole, writing
from heedful.kernels.api import can_prepack
from heedful.machine.memory import give_memory_back, keep_freed_memory
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.model.graphed import record_searches
from heedful.model.inference import can_round_to_bf16, optimize_for_inference
from heedful.plugins import Plugin, missing_plugins, plugins_of
from heedful.runs.checkpoint import (
    STATE,
    Checkpoint,
    load_checkpoint,
    load_weights,
    stored_shapes,
)
from heedful.runs.folder import RunFolder, read_json, write_json
from heedful.runs.hub_names import run_folder
from heedful.runs.language_pair import LanguagePair
from heedful.runs.machine_settings import MachineSettings, RecordedParts
from heedful.runs.size_check import check_sizes
from heedful.runs.task import RunTask
from heedful.search.rules import AllowedTokens, DecodingRule, FirstToken
from heedful.settings.conditions import flat
from heedful.settings.registries import RULES
from heedful.tasks.registry import task_of
from heedful.tokenization.tokenizer import END, PAD, START, Tokenizer

_FORMAT = 1
# The last commit that reads runs from before format 1, whose settings and tensors had other names.
_LAST_READER = "6828181"


@dataclass(frozen=True)
class Run:
    """A run folder, without its weights."""

    folder: RunFolder
    config: RunConfig
    """Settings of the run."""
    tokenizer: Tokenizer
    """Tokenizer of the run."""

    def __repr__(self) -> str:
        return f"Run({str(self.folder.path)!r}, {self.config.recipe})"

    @classmethod
    def open(cls, path: str | PathLike[str]) -> "Run":
        """
        Read a run folder, or the run folder of a model on Hugging Face's hub.

        `path`: the folder, or ORG/NAME, or ORG/NAME@REVISION. Raises `RunFolderError` if a file is
        missing or damaged, `PluginError` if the run's plugins are not loaded, and the errors of
        `run_folder`.
        """
        folder = RunFolder(run_folder(path))
        folder.require()
        return cls(folder, read_settings(folder), Tokenizer.load(folder.path))

    @property
    def vocabularies(self) -> tuple[int, int]:
        """Count the rows of the source and target embeddings."""
        multiple = self.config.data.vocabulary_multiple
        sizes = (self.tokenizer.source_size, self.tokenizer.target_size)
        return padded_vocabulary(sizes[0], multiple), padded_vocabulary(sizes[1], multiple)

    @property
    def direction(self) -> LanguagePair:
        """The chosen languages of a multilingual model, or the languages named in the settings."""
        if self.tokenizer.languages:
            return LanguagePair(self.tokenizer.source_language, self.tokenizer.target_language)
        return LanguagePair(self.config.data.source_language, self.config.data.target_language)

    @property
    def signature(self) -> dict[str, Any]:
        """Tokenizer fingerprint and settings, stored with the weights and compared on reading."""
        settings = flat(recorded_settings(self.config))
        return {"tokenizer": self.tokenizer.fingerprint, "settings": settings}

    @property
    def allowed(self) -> AllowedTokens:
        """The ids that searches with this run may generate."""
        return AllowedTokens(self.tokenizer.target_size, (PAD, START, *self.check_forbidden_ids()))

    @cached_property
    def task(self) -> RunTask:
        """The task of the run: translation, or a task of `heedful.tasks`."""
        chosen = resolve_name(task_of(flat_settings(self.config)).run)
        return chosen(self.folder.path, self.config, self.tokenizer)

    def read_sources(self, lines: Sequence[str]) -> list[str]:
        """Convert source lines to the text that the model reads."""
        return self.task.read_sources(lines)

    def read_targets(self, lines: Sequence[str]) -> list[str]:
        """Convert existing translations to the text that the model reads."""
        return self.task.read_targets(lines)

    @property
    def reads_text(self) -> bool:
        """Whether lines are read as text; if not, they are read unchanged."""
        return self.config.data.reading == "text" and not self.task.is_verbatim

    def with_reading(self, reading: str | None) -> "Run":
        """
        Return the run with another `data.reading`; the same run if `reading` is None.

        Raises `SettingError` for reading as text if the task reads lines unchanged.
        """
        if reading is None or reading == self.config.data.reading:
            return self
        if reading == "text" and self.task.is_verbatim:
            raise SettingError(
                f"`reading` must not be 'text' for {self.folder.path}, because the run's task "
                "reads lines unchanged; leave `reading` out."
            )
        return replace(self, config=self.config.with_settings({"data.reading": reading}))

    def between(
        self, source_language: str, target_language: str, options: tuple[str, str]
    ) -> "Run":
        """
        Return the run with another language pair of its multilingual model, for inference.

        `options`: names of the options of the two languages, for messages. Raises `SettingError`
        for languages that the model does not have.
        """
        tokenizer = self.tokenizer.between(source_language, target_language, options)
        return replace(self, tokenizer=tokenizer)

    def rules(
        self, lines: Sequence[str], limits: Sequence[int], device: torch.device, names: str | None
    ) -> list[DecodingRule]:
        """
        Collect the rules of the run, its task and the named plugins for these source lines.

        `names`: names of plugins' rules. Raises `TextError` for lines and limits that the task
        refuses.
        """
        rules: list[DecodingRule] = [self.allowed]
        rules += [FirstToken(token) for token in self.tokenizer.before_target]
        rules += self.task.rules(lines, limits, device)
        for name in (names or "").split():
            rule = RULES[name](self.tokenizer, lines, limits, device)
            rules.append(_same_shape(name, rule))
        return rules

    def check_forbidden_ids(self) -> list[int]:
        """Parse `search.forbidden_ids`; refuse ids outside the target vocabulary."""
        forbidden = [int(number) for number in self.config.search.forbidden_ids.split()]
        if max(forbidden, default=0) >= self.tokenizer.target_size:
            raise SettingError(
                f"`search.forbidden_ids` must be ids of the target vocabulary, below "
                f"{self.tokenizer.target_size}, but got {max(forbidden)}; leave that id out."
            )
        return forbidden

    def build(self) -> EncoderDecoder:
        """Build the model on the CPU in fp32, with uninitialized weights."""
        place = None
        with suppress(RunFolderError):  # there may be no weights yet
            place = self.checkpoint_folder()
        if place is not None:
            self._check_sizes(place)
        return self._build()

    def _check_sizes(self, folder: Path) -> None:
        """Compare the settings with the shapes of the weights, without reading the weights."""
        if shapes := stored_shapes(folder):
            rows, origin = self.vocabularies, self.folder.config
            check_sizes(self.config.model, rows, shapes, self._build, origin)

    def _build(self) -> EncoderDecoder:
        """Build the model, without checking its size."""
        source, target = self.vocabularies
        # Learned positions have one row for each token of the longest sequence in training, which
        # has `data.max_length` tokens and one special symbol.
        model = build_model(
            self.config.model,
            source,
            target,
            max_length=self.config.data.max_length + 1,
            padding=PAD,
            start_token=self.tokenizer.start,
            end_token=END,
        )
        self.task.complete(model)
        return model

    def collator(self, model: EncoderDecoder) -> Collator:
        """Create the collator that turns ids into batches."""
        return Collator(
            model.padding, model.start_token, model.end_token, self.config.model.source_end
        )

    def checkpoint_folder(self, weights: str = "default") -> Path:
        """Find the folder of the named weights; if there is none, raise `RunFolderError`."""
        folder, steps = self.folder, self.folder.steps()
        best = best_steps(folder)
        places = {f"step-{step}": folder.checkpoint(step) for step in steps}
        if steps:
            places["last"] = folder.checkpoint(steps[-1])
        if best and best[0] in steps:
            places["best"] = folder.checkpoint(best[0])
        if folder.average.is_dir():
            places["average"] = folder.average
        wanted: Sequence[str] = (weights,)
        if weights == "default":
            wanted = ("average", "best", "last")[has_old_average(folder) :]
        for name in wanted:
            if name in places:
                return places[name]
        if not places:
            minutes = self.config.train.minutes
            too_short = ""
            if minutes is not None:
                too_short = (
                    f" If `train.minutes` ({minutes:g}) ended the training before its first step, "
                    "repeat the command with --resume and more minutes."
                )
            raise RunFolderError(
                f"{folder.path} must have a checkpoint, but has none yet; train first, or copy the "
                f"whole run folder.{too_short}"
            )
        raise RunFolderError(
            f"--weights must name weights in {folder.path}, but {weights} is not among "
            f"them: {', '.join(sorted(places))}."
        )

    def load_model(self, weights: str, device: torch.device, precision: str) -> EncoderDecoder:
        """Load the model for inference."""
        place = self.checkpoint_folder(weights)
        stored = self.load_checkpoint(place).model  # before the model, whose sizes it checks
        model = self._build()
        load_weights(model, stored, place)
        # compiled functions round only the operands of matrix multiplications to bf16; without
        # them, the whole model is rounded
        compiled = precision == "bf16" and device.type == "cpu" and can_round_to_bf16(model)
        dtype = torch.bfloat16 if precision == "bf16" and not compiled else torch.float32
        model = model.to(device=device, dtype=dtype).eval()
        keep_freed_memory()
        if compiled or precision == "int8":
            model = optimize_for_inference(model, precision)
        elif can_prepack(device, dtype):
            model = optimize_for_inference(model, "packed")
        else:
            model = record_searches(model, device)
        give_memory_back()
        return model

    def load_checkpoint(self, folder: Path, with_training: bool = False) -> Checkpoint:
        """Read a checkpoint and check that it matches this run's tokenizer and settings."""
        self._check_sizes(folder)
        return load_checkpoint(folder, with_training, self.signature)

    def last_checkpoint(self) -> Checkpoint | None:
        """
        Read the newest checkpoint, including its training state.

        Returns the checkpoint; None if there is none yet.

        A damaged checkpoint is an error, because a silent return to an older one would lose steps.
        """
        steps = self.folder.steps()
        if not steps:
            return None
        return self.load_checkpoint(self.folder.checkpoint(steps[-1]), with_training=True)


def _same_shape(name: str, rule: Any) -> DecodingRule:
    """Check that a plugin's rule returns scores of the same shape as its input."""
    if not callable(rule):
        raise PluginError(f"the search rule {name!r} must build a function, but builds {rule!r}.")

    def apply(scores: torch.Tensor, written: torch.Tensor, sentences: torch.Tensor) -> torch.Tensor:
        changed = rule(scores, written, sentences)
        if not isinstance(changed, torch.Tensor) or changed.shape != scores.shape:
            shape = getattr(changed, "shape", None)
            kind = type(changed).__name__ if shape is None else f"one of shape {tuple(shape)}"
            raise PluginError(
                f"the search rule {name!r} must return a tensor of shape {tuple(scores.shape)}, "
                f"but returned {kind}."
            )
        return changed

    return apply


def flat_settings(config: RunConfig) -> dict[str, Any]:
    """Flatten the settings to dotted keys."""
    return flat(config.to_dict())


def recorded_settings(config: RunConfig) -> dict[str, Any]:
    """
    Convert settings for a run folder.

    Rules of plugins, reading as text, `no_repeat_ngram` and `embedding_norm` are omitted if they
    are off. So folders without these features are the same as in older versions.
    """
    settings = config.to_dict()
    if config.data.reading == "exact":
        del settings["data"]["reading"]
    if not config.search.rules:
        del settings["search"]["rules"]
    if not config.search.no_repeat_ngram:
        del settings["search"]["no_repeat_ngram"]
    if not config.model.embedding_norm:
        del settings["model"]["embedding_norm"]
    return settings


def has_old_average(folder: RunFolder) -> bool:
    """Return whether training went on after the checkpoints were averaged."""
    if not folder.average.is_dir() or not (steps := folder.steps()):
        return False
    averaged = read_json(folder.average / STATE).get("steps")
    return isinstance(averaged, list) and steps[-1] > max(averaged, default=0)


def best_validations(folder: RunFolder) -> list[dict[str, Any]]:
    """List the best validations, best first."""
    if not folder.best.is_file():
        return []
    entries = read_json(folder.best).get("best")
    if not isinstance(entries, list):
        return []
    return [entry for entry in entries if isinstance(entry, dict)]


def best_steps(folder: RunFolder) -> list[int]:
    """List the steps with the best validations, best first."""
    steps = [entry.get("step") for entry in best_validations(folder)]
    return [step for step in steps if type(step) is int]


def read_settings(folder: RunFolder, changed_plugins: bool = False) -> RunConfig:
    """
    Read the settings of a run from `config.json`.

    `changed_plugins`: whether the plugins may have changed since the run was written.
    """
    content = _read_config(folder)
    records = [(record.name, record.sha256) for record in RecordedParts.of(content).plugins]
    missing_plugins(records, folder.path, changed_plugins)
    try:
        return RunConfig.from_dict(content.get("settings"))
    except SettingError as error:
        raise RunFolderError(
            f"{folder.config} must hold the settings of a run of format {_FORMAT}, but does not: "
            f"{str(error).rstrip('.')}. If the run is older than that format, heedful's commit "
            f"{_LAST_READER} is the last that reads it."
        ) from error


def newer_settings(folder: RunFolder, changed_plugins: bool = False) -> dict[str, Any]:
    """Return the settings that an older run does not record, with the values that apply to it."""
    written = flat(_read_config(folder).get("settings") or {})
    values = flat(read_settings(folder, changed_plugins).to_dict())
    return {name: value for name, value in values.items() if name not in written}


def read_machine_settings(folder: RunFolder) -> MachineSettings:
    """Read the machine settings of a run from `config.json`."""
    choices = RecordedParts.of(_read_config(folder)).choices
    if choices is None:
        raise RunFolderError(
            f"{folder.config} must hold the settings that the run chose for its machine, but "
            "does not; the file is damaged."
        )
    return choices


def read_corpus(folder: RunFolder) -> dict[str, Any]:
    """Read the records of each side's text files from `config.json`."""
    return dict(_read_config(folder).get("corpus", {}))


def write_config(
    folder: RunFolder,
    config: RunConfig,
    machine_settings: MachineSettings,
    corpus: Mapping[str, Any],
    machine: Mapping[str, Any],
) -> None:
    """Write `config.json`: before the first step, and again when a run is resumed."""
    content = {
        "format": _FORMAT,
        "heedful": __version__,
        "settings": recorded_settings(config),
        "choices": machine_settings.model_dump(),
        "corpus": dict(corpus),
        "machine": dict(machine),
    }
    # The key exists only if there are plugins, because earlier versions refuse a file with this
    # key.
    if used := plugins_of(config.model, flat_settings(config)):
        content["plugins"] = [{"name": plugin.name, "sha256": plugin.sha256} for plugin in used]
        _copy_plugins(folder, used)
    write_json(folder.config, content)


def read_plugins(folder: RunFolder) -> list[dict[str, str]]:
    """Read the name and SHA-256 of each plugin of a run from `config.json`."""
    records = RecordedParts.of(_read_config(folder)).plugins
    return [{"name": record.name, "sha256": record.sha256} for record in records]


def _copy_plugins(folder: RunFolder, plugins: Sequence[Plugin]) -> None:
    """Copy the executed plugins to the run folder, for people to read."""
    if folder.plugins.is_symlink():
        raise RunFolderError(
            f"{folder.plugins} must be a folder of the run, but is a link to another folder, where "
            "copies of plugins would be written; remove the link."
        )
    with writing(folder.plugins):
        folder.plugins.mkdir(parents=True, exist_ok=True)
        for plugin in plugins:
            write_whole(folder.plugins / plugin.name, plugin.content, alone=True)


def _read_config(folder: RunFolder) -> dict[str, Any]:
    """Read `config.json`; check its version, and its entries other than the settings."""
    content = read_json(folder.config)
    if content.get("format") != _FORMAT:
        raise RunFolderError(
            f"{folder.config} must have format {_FORMAT}, but has {content.get('format')!r}; it "
            "was written by another version of heedful or is damaged. CHANGELOG.md says which "
            "versions read which runs."
        )
    try:
        RecordedParts.of(content)
    except SettingError as error:
        raise RunFolderError(
            f"{folder.config} must be unchanged, but it was changed, damaged or written by a "
            f"later version: {error} Restore it, copy the whole run folder again, or upgrade "
            "heedful."
        ) from error
    return content
