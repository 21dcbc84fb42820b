"""What a training is made of, checked before anything is written: for `train` and a dry run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.config.load import Settings, load_config, setting_list
from heedful.config.schema import RunConfig
from heedful.errors import SettingError
from heedful.workflow.finetune import (
    Origin,
    check_shape,
    find_origin,
    inherited_settings,
    subwords_of,
)
from heedful.workflow.given_text import find_material
from heedful.workflow.held_out import files_of, held_out_corpus, read_held_out
from heedful.workflow.material import Files, Material, Sizes


@dataclass(frozen=True)
class TrainingSetup:
    """Settings, text and the run that training goes on from."""

    config: RunConfig
    material: Material
    files: Sizes
    """Sizes of all text files, by which a resumed run knows them."""
    valid: tuple[list[str], list[str]] | None
    """Held-out sources and their translations."""
    origin: Origin | None


def find_setup(
    recipe: str,
    *,
    source: Files | None = None,
    target: Files | None = None,
    corpora: str | Path | None = None,
    data: str | Path | None = None,
    exclude: Files | None = None,
    valid_source: Files | None = None,
    valid_target: Files | None = None,
    settings: Settings = (),
    tokenizer: str | Path | None = None,
    finetune_from: str | Path | None = None,
    finetune_weights: str = "default",
    keep_state: Sequence[str] = (),
    reset: Sequence[str] = (),
) -> TrainingSetup:
    """Find and check what the arguments of `heedful.train` name."""
    settings, origin = setting_list(settings), None
    if finetune_from is not None:
        origin = find_origin(finetune_from, finetune_weights, keep_state, reset)
    elif keep_state or reset:
        raise SettingError(
            "--keep-state and --reset say what to take over from --finetune-from, but that is "
            "missing."
        )
    config = load_config(recipe, settings, inherited_settings(origin) if origin else None)
    if origin is not None:
        check_shape(origin, config.model)
    tokenizer = subwords_of(origin, tokenizer) if origin else tokenizer
    material = find_material(source, target, exclude, data, settings, corpora, tokenizer)
    config = material.configure(config)
    valid = held_out_corpus(valid_source, valid_target, config)
    files = material.files()
    if valid is not None:
        files |= files_of(valid)
    return TrainingSetup(config, material, files, read_held_out(valid), origin)
