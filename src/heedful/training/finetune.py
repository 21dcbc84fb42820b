"""
Training on from another run: what is taken over, and what starts anew.

The weights, the shape and the subwords of the other run are taken over. Adam's moments and the
learning rate's schedule start anew unless they are kept; parts of the model start anew if asked.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heedful.config.renames import ORIGIN
from heedful.config.schema import ModelConfig
from heedful.errors import RunFolderError, SettingError
from heedful.model.build import build_model
from heedful.model.transformer import Transformer
from heedful.runs.checkpoint import Checkpoint, check_weights, read_state
from heedful.runs.folder import RunFolder, read_json, write_json
from heedful.runs.run import Run
from heedful.tokenization.imported_model import is_imported
from heedful.tokenization.tokenizer import Tokenizer

KEEP = ("optimiser", "schedule")
RESET = ("tokenizer", "embeddings", "encoder", "decoder")
_FILE = "origin.json"
# The tables that have one row for each subword, and the side they belong to.
_TABLES = {
    "embed_source.weight": "source",
    "embed_target.weight": "target",
    "output_embedding": "target",
    "output_bias": "target",
}
_POSITIONS = ("source_positions.weight", "target_positions.weight")


@dataclass(frozen=True)
class PretrainedRun:
    """
    Say which weights a run began with.

    Attributes
    ----------
    run : str
        The other run's folder.
    weights : str
        Which of its weights, as in `Run.checkpoint_folder`.
    sha256 : str
        Of those weights.
    step : int
        Steps that they were trained.
    keep_state : tuple of str
        What goes on besides the weights: optimiser, schedule.
    reset : tuple of str
        What is not taken over: tokenizer, embeddings, encoder, decoder.

    Notes
    -----
    Written to `origin.json` of the new run, which a resumed one is checked against.
    """

    run: str
    weights: str
    sha256: str
    step: int
    keep_state: tuple[str, ...] = ()
    reset: tuple[str, ...] = ()

    @property
    def adam_steps(self) -> int:
        """Steps that Adam had taken before this run."""
        return self.step if "optimiser" in self.keep_state else 0

    @property
    def schedule_steps(self) -> int:
        """Steps that the learning rate had gone through before this run."""
        return self.step if "schedule" in self.keep_state else 0

    def describe(self) -> str:
        """
        Name the weights for a person.

        Returns
        -------
        str
            Which run, which of its weights, what was kept and what was not.

        Notes
        -----
        Part of messages.
        """
        details = "".join(
            f", {option} {' '.join(words)}"
            for option, words in (("--keep-state", self.keep_state), ("--reset", self.reset))
            if words
        )
        return f"{self.weights} of {self.run} at step {self.step:,}{details}"


def find_pretrained(
    path: str | Path, weights: str, keep_state: Sequence[str], reset: Sequence[str]
) -> PretrainedRun:
    """
    Look at the run that training goes on from.

    Parameters
    ----------
    path : str or Path
        Its folder.
    weights : str
        ``default``, ``average``, ``best``, ``last`` or ``step-N``.
    keep_state : sequence of str
        Of `KEEP`.
    reset : sequence of str
        Of `RESET`.

    Returns
    -------
    PretrainedRun
        Checked as far as can be told without reading the weights.

    Notes
    -----
    Raises `SettingError` for words that are not known or do not go together. Adam's moments belong
    to weights one by one, so they are kept with all of them or not at all.
    """
    for option, words, known in (("--keep-state", keep_state, KEEP), ("--reset", reset, RESET)):
        for word in words:
            if word not in known:
                raise SettingError(f"{option} must be one of {', '.join(known)}, but is {word!r}.")
    if "optimiser" in keep_state and reset:
        raise SettingError(
            "--keep-state optimiser needs every weight that Adam has moments of, but --reset "
            f"{' --reset '.join(reset)} gives some of them up; choose one of the two."
        )
    parent = Run.open(path)
    place = parent.checkpoint_folder(weights)
    state = read_state(place, parent.signature)
    checksum = state["sha256"].get("model.safetensors", "")
    steps = state.get("steps", [state.get("step", 0)])
    if not (isinstance(steps, list) and steps and all(type(step) is int for step in steps)):
        raise RunFolderError(
            f"{place / 'state.json'} must say after how many steps the weights were written, but "
            "does not; it was changed. Name others with --finetune-weights."
        )
    step = max(steps)  # an average is as old as its newest part
    if "optimiser" in keep_state and not (place / "training.safetensors").is_file():
        raise SettingError(
            f"--keep-state optimiser needs a checkpoint with Adam's moments, but {place} has none: "
            "an average has only weights; add --finetune-weights last."
        )
    return PretrainedRun(
        str(path), weights, str(checksum), int(step), tuple(keep_state), tuple(reset)
    )


def inherited_settings(pretrained: PretrainedRun) -> dict[str, Any]:
    """
    List the settings that the weights and the subwords bring along.

    Parameters
    ----------
    pretrained : PretrainedRun
        Which run they come from.

    Returns
    -------
    dict of str to Any
        Dotted names and values: the whole table `model`, and of `data` what the subwords are.

    Notes
    -----
    They win over the recipe, and `--set` wins over them: dropout may well change. An imported run
    brings its rule of search too, which may name ids.
    """
    parent = Run.open(pretrained.run)
    config = parent.config.to_dict()
    settings = {f"model.{name}": value for name, value in config["model"].items()}
    if "tokenizer" not in pretrained.reset:
        names = ("subwords", "vocabulary_size", "vocabulary_multiple", "shared_vocabulary")
        settings |= {f"data.{name}": config["data"][name] for name in names}
        if is_imported(parent.tokenizer.kind):
            settings |= {f"search.{name}": value for name, value in config["search"].items()}
    return settings


def check_shape(pretrained: PretrainedRun, model: ModelConfig) -> None:
    """Refuse settings that give weights another shape than those that are taken over have."""
    there, here = Run.open(pretrained.run).config.model, model
    if _shapes(there, pretrained) == _shapes(here, pretrained):
        return
    other = [
        f"model.{name} is {value} there, {getattr(here, name)} here"
        for name, value in there
        if value != getattr(here, name)
    ]
    raise SettingError(
        f"--finetune-from {pretrained.run} must have a model of the same shape, but "
        f"{'; '.join(other)}. Leave these settings out, or begin those parts with --reset."
    )


def _shapes(model: ModelConfig, pretrained: PretrainedRun) -> dict[str, torch.Size]:
    """List the shapes of the weights that are taken over, for one and the same vocabulary."""
    with torch.device("meta"):
        parameters = build_model(model, 8, 8, max_length=8).named_parameters()
    anew = {*pretrained.reset, *(_TABLES if "embeddings" in pretrained.reset else ())}
    return {
        name: parameter.shape
        for name, parameter in parameters
        if name not in anew and name.split(".")[0] not in anew
    }


def check_pretrained(folder: RunFolder, pretrained: PretrainedRun | None) -> None:
    """Refuse to resume a run that has begun from other weights than it began with."""
    began = read_pretrained(folder)
    if folder.config.exists() and pretrained != began:
        raise RunFolderError(
            f"--resume must continue the run in {folder.path} from the weights it began with, but "
            f"it began with {began.describe() if began else 'none'} and is now given "
            f"{pretrained.describe() if pretrained else 'none'}. Use the same --finetune-from, or "
            "start a "
            "new run with another --out."
        )


def write_pretrained(folder: RunFolder, pretrained: PretrainedRun | None) -> None:
    """
    Note in a new run where its weights come from, or check that a resumed one says the same.

    Parameters
    ----------
    folder : RunFolder
        The new run.
    pretrained : PretrainedRun or None
        None for a run that starts from nothing.

    Returns
    -------
    None
        Nothing.

    Notes
    -----
    Raises `RunFolderError` if a run that has begun is resumed from other weights.
    """
    check_pretrained(folder, pretrained)
    if pretrained is not None and read_pretrained(folder) is None:
        write_json(folder.path / _FILE, asdict(pretrained))


def read_pretrained(folder: RunFolder) -> PretrainedRun | None:
    """
    Read where the weights of a run come from.

    Parameters
    ----------
    folder : RunFolder
        Which run.

    Returns
    -------
    Origin or None
        None if it started from nothing.

    Notes
    -----
    To use the run nothing else is needed; to resume it the other one must be there, unchanged.
    """
    path = folder.path / _FILE
    if not path.exists():
        return None
    content = read_json(path)
    try:
        content = {ORIGIN.get(name, name): value for name, value in content.items()}
        kept, reset = (tuple(map(str, content.pop(name))) for name in ("keep_state", "reset"))
        return PretrainedRun(**content, keep_state=kept, reset=reset)
    except (KeyError, TypeError) as error:
        raise RunFolderError(
            f"{path} must say which weights the run began with, but does not ({error}); it is "
            "damaged or of another version."
        ) from error


def subwords_of(pretrained: PretrainedRun, tokenizer: str | Path | None) -> Path | None:
    """
    Choose the subwords of a run that trains on.

    Parameters
    ----------
    pretrained : PretrainedRun
        Where the weights come from.
    tokenizer : str or Path or None
        A tokenizer that was asked for.

    Returns
    -------
    Path or None
        The other run's, or with ``--reset tokenizer`` the one asked for; None to learn new ones.

    Notes
    -----
    With other subwords the rows of the tables would stand for other things. Raises `SettingError`
    if both are wanted.
    """
    if "tokenizer" in pretrained.reset:
        return None if tokenizer is None else Path(tokenizer)
    if tokenizer is not None:
        raise SettingError(
            "--tokenizer must go with --reset tokenizer where --finetune-from brings subwords of "
            "its own; add that, or leave --tokenizer out."
        )
    return Path(pretrained.run)


def first_weights(pretrained: PretrainedRun, run: Run, model: Transformer) -> Checkpoint:
    """
    Put together what the first step starts from.

    Parameters
    ----------
    pretrained : PretrainedRun
        Where the weights come from.
    run : Run
        The new run; its subwords may be other ones.
    model : Transformer
        Of the new run, initialised: what starts anew keeps its values.

    Returns
    -------
    Checkpoint
        Weights, and Adam's moments if they are kept.

    Notes
    -----
    With other subwords, a row of a table is taken over where both vocabularies have the subword,
    and drawn anew elsewhere (Zoph et al. 2016 draw all of them anew). Raises `RunFolderError` if
    the weights have changed since the run was begun, or do not fit its settings.
    """
    parent = Run.open(pretrained.run)
    place = parent.checkpoint_folder(pretrained.weights)
    found = parent.load_checkpoint(place, with_training="optimiser" in pretrained.keep_state)
    if found.state["sha256"].get("model.safetensors") != pretrained.sha256:
        raise RunFolderError(
            f"--finetune-from must lead to the weights that this run was begun with, but those in "
            f"{place} have changed since. Start a new run with another --out."
        )
    with torch.device("meta"):
        check_weights(parent.build(), found.model, place)
    weights = {name: tensor.detach().clone() for name, tensor in model.named_parameters()}
    for name, old in found.model.items():
        if name.split(".")[0] in pretrained.reset:
            continue
        if name in _TABLES and name in weights:
            if "embeddings" not in pretrained.reset:
                rows = _shared_rows(run.tokenizer, parent.tokenizer, _TABLES[name])
                weights[name] = _with_rows(weights[name], old, rows)
        elif name in _POSITIONS and name in weights:
            count = min(len(old), len(weights[name]))
            weights[name] = _with_rows(weights[name], old, [(n, n) for n in range(count)])
        else:
            weights[name] = old
    check_weights(model, weights, place)
    return Checkpoint(weights, found.training, found.state)


def _shared_rows(new: Tokenizer, old: Tokenizer, side: str) -> list[tuple[int, int]]:
    """List pairs of a new and an old row that stand for the same subword."""
    if new.fingerprint == old.fingerprint:
        size = new.source_size if side == "source" else new.target_size
        return [(row, row) for row in range(size)]
    known = {piece: row for row, piece in enumerate(_all_pieces(old, side))}
    pieces = enumerate(_all_pieces(new, side))
    return [(row, known[piece]) for row, piece in pieces if piece in known]


def _all_pieces(tokenizer: Tokenizer, side: str) -> list[str]:
    """Spell the whole vocabulary of a side."""
    if side == "source":
        return tokenizer.pieces_source(range(tokenizer.source_size))
    return tokenizer.pieces_target(range(tokenizer.target_size))


def _with_rows(table: Tensor, old: Tensor, rows: Sequence[tuple[int, int]]) -> Tensor:
    """Replace some rows of a table by rows of another one; widths that differ are left to fail."""
    if table.shape[1:] != old.shape[1:]:
        return old
    filled = table.clone()
    to, since = (torch.tensor(part, dtype=torch.long) for part in zip(*rows, strict=True))
    filled[to] = old[since]
    return filled
