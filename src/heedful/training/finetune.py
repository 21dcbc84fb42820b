"""
Fine-tuning: the state that a run inherits from a pretrained run, and the state that is reset.

A run inherits the weights, shape and subwords of the pretrained run. Unless they are kept, the
optimizer's moments start at zero, and the learning rate schedule starts at its first step. Parts of
the model are reset on request.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heedful.config.model import ModelConfig
from heedful.config.train import TrainConfig
from heedful.errors import RunFolderError, SettingError
from heedful.families.build import build_model
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.model.weights import named_weights
from heedful.runs.checkpoint import Checkpoint, check_weights, read_state
from heedful.runs.folder import RunFolder, read_json, write_json
from heedful.runs.hub_names import pinned_name, run_folder
from heedful.runs.origin import FILE as ORIGIN_FILE
from heedful.runs.run import Run, flat_settings
from heedful.settings.conditions import flat, format_value
from heedful.tasks.task import Task
from heedful.tokenization.imported_model import is_imported
from heedful.tokenization.tokenizer import Tokenizer
from heedful.training.schedule import counts_decays

KEEP = ("optimizer", "schedule")
RESET = ("tokenizer", "embeddings", "encoder", "decoder")
TABLES = {
    "embed_source.weight": "source",
    "embed_target.weight": "target",
    "output.weight": "target",
    "output.bias": "target",
}
"""The weights that have one row for each subword, and the side to which each weight belongs."""
_POSITIONS = ("source_positions.weight", "target_positions.weight")


@dataclass(frozen=True)
class PretrainedRun:
    """
    The pretrained run from which fine-tuning started.

    The record is written to `origin.json` of the new run, and resuming checks it.
    """

    run: str = field(compare=False)
    """Folder of the pretrained run, which may be spelled in several ways."""
    weights: str = field(compare=False)
    """Name of the weights, as in `Run.checkpoint_folder`; their checksum identifies them."""
    sha256: str
    """Checksum of the weights."""
    step: int
    """Number of steps for which the weights were trained."""
    keep_state: tuple[str, ...] = ()
    """State that was kept in addition to the weights: optimizer, schedule."""
    reset: tuple[str, ...] = ()
    """Parts that were reset: tokenizer, embeddings, encoder, decoder."""
    decays: int = 0
    """Number of decays that validations caused before this run, if the schedule is kept."""

    @property
    def optimizer_steps(self) -> int:
        """Number of steps of the kept optimizer before this run."""
        return self.step if "optimizer" in self.keep_state else 0

    @property
    def schedule_steps(self) -> int:
        """Number of steps of the kept schedule before this run."""
        return self.step if "schedule" in self.keep_state else 0

    def describe(self) -> str:
        """Describe the weights for messages."""
        details = "".join(
            f", {option} {' '.join(words)}"
            for option, words in (("--keep-state", self.keep_state), ("--reset", self.reset))
            if words
        )
        return f"{self.weights} of {self.run} at step {self.step:,}{details}"


def check_parts(keep_state: Sequence[str], reset: Sequence[str]) -> None:
    """
    Refuse unknown and incompatible names of kept and reset parts.

    Moments belong to individual weights, so they can be kept only if no weights are reset.
    """
    for option, words, known in (("--keep-state", keep_state, KEEP), ("--reset", reset, RESET)):
        for word in words:
            if word not in known:
                raise SettingError(f"{option} must be one of {', '.join(known)}, but is {word!r}.")
    if "optimizer" in keep_state and reset:
        raise SettingError(
            "--keep-state optimizer continues with the moments of all weights, but --reset "
            f"{' --reset '.join(reset)} replaces some of them; choose one of the two."
        )


def find_pretrained(
    path: str | PathLike[str], weights: str, keep_state: Sequence[str], reset: Sequence[str]
) -> PretrainedRun:
    """
    Find the weights of a pretrained run, and read their checksum and number of steps.

    Raises `SettingError` for unknown or incompatible keywords.
    """
    check_parts(keep_state, reset)
    parent = Run.open(path)
    place = parent.checkpoint_folder(weights)
    state = read_state(place, parent.signature)
    checksum = state["sha256"].get("model.safetensors", "")
    steps = state.get("steps", [state.get("step", 0)])
    if not (isinstance(steps, list) and steps and all(type(step) is int for step in steps)):
        raise RunFolderError(
            f"{place / 'state.json'} must name the step of its weights, but does not, because it "
            "was changed. Choose other weights with --finetune-weights."
        )
    step = max(steps)  # an average counts as its newest checkpoint
    if "optimizer" in keep_state and not (place / "training.safetensors").is_file():
        raise SettingError(
            f"--keep-state optimizer needs a checkpoint with the optimizer's moments, but "
            f"{place} has none. Averages and imported runs have only weights: add "
            "--finetune-weights last if the run was trained here, or leave --keep-state optimizer "
            "out."
        )
    decays = 0
    if "schedule" in keep_state and counts_decays(parent.config.train.schedule):
        decays = _decays(state, place)
    if weights == "default":
        weights = "average" if place == parent.folder.average else f"step-{step}"
    return PretrainedRun(
        pinned_name(path),
        weights,
        str(checksum),
        int(step),
        tuple(keep_state),
        tuple(reset),
        decays,
    )


def _decays(state: dict[str, Any], place: Path) -> int:
    """Read how many times validations have lowered the learning rate."""
    decays = state.get("decays")
    if type(decays) is not int:
        raise SettingError(
            "--keep-state schedule needs a checkpoint that records how often the plateau schedule "
            f"has lowered the learning rate, but {place} does not: an average has only weights; "
            "add --finetune-weights last."
        )
    return decays


def check_same_optimizer(pretrained: PretrainedRun, settings: TrainConfig) -> None:
    """Refuse moments of another optimizer."""
    if "optimizer" not in pretrained.keep_state:
        return
    there = Run.open(pretrained.run).config.train
    inherited, needed = ((t.optimizer, bool(t.momentum)) for t in (there, settings))
    if inherited != needed:
        of = "{} with momentum" if inherited[1] else "{}"
        raise SettingError(
            f"--keep-state optimizer must continue with the optimizer of {pretrained.run}, "
            f"{of.format(inherited[0])}, but `train.optimizer` is {needed[0]} and "
            f"`train.momentum` is {settings.momentum}; use the same settings, or leave "
            "--keep-state optimizer out."
        )


def check_objective(pretrained: PretrainedRun | None, objective: str) -> None:
    """Refuse objectives that use the model's own translations if the model cannot translate yet."""
    if objective not in ("reward", "risk"):
        return
    if pretrained is None:
        raise SettingError(
            f"train.objective = {objective} improves the translations of a trained model and "
            "needs --finetune-from with a run trained by likelihood, but got none; train one "
            "first, or leave train.objective out."
        )
    if pretrained.reset:
        raise SettingError(
            f"train.objective = {objective} must start from a complete trained run, but got "
            f"--reset {' --reset '.join(pretrained.reset)}, after which translations are noise; "
            "first train by likelihood with the reset, then start from that run."
        )


def inherited_settings(pretrained: PretrainedRun, task: Task) -> dict[str, Any]:
    """Return the settings that belong to the inherited weights, subwords and task."""
    # Inherited settings override the recipe, and `--set` overrides them: dropout, for example, may
    # change. The search settings of an imported run are also inherited, because they may contain
    # ids.
    parent = Run.open(pretrained.run)
    config = parent.config.to_dict()
    settings = {f"model.{name}": value for name, value in config["model"].items()}
    if "tokenizer" not in pretrained.reset:
        names = ("subwords", "vocabulary_size", "vocabulary_multiple", "shared_vocabulary")
        settings |= {f"data.{name}": config["data"][name] for name in names}
        if is_imported(parent.tokenizer.kind):
            settings |= {f"search.{name}": value for name, value in config["search"].items()}
    if task.settings is not None and task.acts(flat_settings(parent.config)):
        table = task.settings.table
        settings |= {f"{table}.{name}": value for name, value in config[table].items()}
    return settings


def check_shape(pretrained: PretrainedRun, model: ModelConfig) -> None:
    """Refuse settings that change the shape of inherited weights."""
    there, here = Run.open(pretrained.run).config.model, model
    if _shapes(there, pretrained) == _shapes(here, pretrained):
        return
    old, new = (flat({"model": model.model_dump(mode="json")}) for model in (there, here))
    differences = [
        f"{name} is {format_value(value)} in that run and {format_value(new.get(name))} in this one"
        for name, value in old.items()
        if value != new.get(name)
    ]
    raise SettingError(
        f"--finetune-from {pretrained.run} must have a model of the same shape, but "
        f"{'; '.join(differences)}. Leave these settings out, or train these parts from scratch "
        "with --reset."
    )


def _shapes(model: ModelConfig, pretrained: PretrainedRun) -> dict[str, torch.Size]:
    """Return the shapes of the inherited weights, as if all vocabularies had the same size."""
    with torch.device("meta"):
        parameters = named_weights(build_model(model, 8, 8, max_length=8)).items()
    anew = {*pretrained.reset, *(TABLES if "embeddings" in pretrained.reset else ())}
    return {
        name: parameter.shape
        for name, parameter in parameters
        if name not in anew and name.split(".")[0] not in anew
    }


def check_pretrained(folder: RunFolder, pretrained: PretrainedRun | None) -> None:
    """Refuse to resume a run with pretrained weights other than those that it began with."""
    began = read_pretrained(folder)
    if folder.config.exists() and pretrained != began:
        raise RunFolderError(
            f"--resume must continue the run in {folder.path} from the weights it began with, but "
            f"it began with {began.describe() if began else 'none'} and the command names "
            f"{pretrained.describe() if pretrained else 'none'}. Use the same --finetune-from, or "
            "start a new run with another --out."
        )


def write_pretrained(folder: RunFolder, pretrained: PretrainedRun | None) -> None:
    """
    Record the pretrained weights in a new run, or check them in a resumed run.

    `pretrained`: None for a run without pretrained weights.

    Raises `RunFolderError` if a run is resumed with other pretrained weights.
    """
    check_pretrained(folder, pretrained)
    if pretrained is not None and read_pretrained(folder) is None:
        write_json(folder.path / ORIGIN_FILE, asdict(pretrained))


def read_pretrained(folder: RunFolder) -> PretrainedRun | None:
    """
    Read the record of the pretrained weights that a run started from.

    Returns None for a run without pretrained weights.

    Translation does not need the pretrained run; resuming requires that it is unchanged.
    """
    path = folder.path / ORIGIN_FILE
    if not path.exists():
        return None
    content = read_json(path)
    try:
        keep_state, reset = (tuple(map(str, content.pop(name))) for name in ("keep_state", "reset"))
        return PretrainedRun(**content, keep_state=keep_state, reset=reset)
    except (KeyError, TypeError) as error:
        raise RunFolderError(
            f"{path} must say which weights the run began with, but does not ({error}); it is "
            "damaged or was written by another version of heedful."
        ) from error


def subwords_of(pretrained: PretrainedRun, tokenizer: str | Path | None) -> Path | None:
    """
    Choose the tokenizer of a fine-tuning run.

    Returns the folder of the pretrained run, or with ``--reset tokenizer`` the requested tokenizer;
    None to learn new subwords.

    With different subwords, the inherited embedding rows would belong to the wrong tokens. Raises
    `SettingError` if a tokenizer is requested without ``--reset tokenizer``.
    """
    if "tokenizer" in pretrained.reset:
        return None if tokenizer is None else Path(tokenizer)
    if tokenizer is not None:
        raise SettingError(
            "--tokenizer needs --reset tokenizer with --finetune-from, whose run has its own "
            "subwords; add --reset tokenizer, or leave --tokenizer out."
        )
    return run_folder(pretrained.run)


def first_weights(pretrained: PretrainedRun, run: Run, model: EncoderDecoder) -> Checkpoint:
    """
    Assemble the initial weights of a fine-tuning run.

    With other subwords, an embedding row is inherited if both vocabularies have the subword. The
    remaining rows are drawn at random (Zoph et al. 2016 draw all rows at random). Raises
    `RunFolderError` if the pretrained weights have changed since this run began, or do not fit the
    pretrained run's settings.
    """
    parent = Run.open(pretrained.run)
    place = parent.checkpoint_folder(pretrained.weights)
    checkpoint = parent.load_checkpoint(place, with_training="optimizer" in pretrained.keep_state)
    if checkpoint.state["sha256"].get("model.safetensors") != pretrained.sha256:
        raise RunFolderError(
            "--finetune-from must give the weights that this run began with, but the weights in "
            f"{place} have changed since. Start a new run with another --out."
        )
    with torch.device("meta"):
        check_weights(parent.build(), checkpoint.model, place)
    weights = {name: tensor.detach().clone() for name, tensor in named_weights(model).items()}
    for name, old in checkpoint.model.items():
        if name.split(".")[0] in pretrained.reset:
            continue
        if name in TABLES and name in weights:
            if "embeddings" not in pretrained.reset:
                rows = _shared_rows(run.tokenizer, parent.tokenizer, TABLES[name])
                weights[name] = _with_rows(weights[name], old, rows)
        elif name in _POSITIONS and name in weights:
            count = min(len(old), len(weights[name]))
            weights[name] = _with_rows(weights[name], old, [(n, n) for n in range(count)])
        else:
            weights[name] = old
    check_weights(model, weights, place)
    return Checkpoint(weights, checkpoint.training, checkpoint.state)


def _shared_rows(new: Tokenizer, old: Tokenizer, side: str) -> list[tuple[int, int]]:
    """List the new and the old row index of each subword that both vocabularies have."""
    if new.fingerprint == old.fingerprint:
        size = new.source_size if side == "source" else new.target_size
        return [(row, row) for row in range(size)]
    known = {piece: row for row, piece in enumerate(_all_pieces(old, side))}
    pieces = enumerate(_all_pieces(new, side))
    return [(row, known[piece]) for row, piece in pieces if piece in known]


def _all_pieces(tokenizer: Tokenizer, side: str) -> list[str]:
    """List all tokens of a side's vocabulary."""
    if side == "source":
        return tokenizer.pieces_source(range(tokenizer.source_size))
    return tokenizer.pieces_target(range(tokenizer.target_size))


def _with_rows(table: Tensor, old: Tensor, rows: Sequence[tuple[int, int]]) -> Tensor:
    """Replace some rows of a table with rows of `old`; `check_shape` has compared the widths."""
    filled = table.clone()
    to, since = (torch.tensor(part, dtype=torch.long) for part in zip(*rows, strict=True))
    filled[to] = old[since]
    return filled
