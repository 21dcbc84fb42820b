"""
Train on each pair in both directions first, and then in the requested direction.

::

    source -> target ┐
    target -> source ┴─ a share of the steps, in OUT-both ── weights, subwords ─┐
    source -> target ─────────── the other steps, in OUT, with a new schedule ──┘

Both languages share one vocabulary. No tag marks the direction, because the language of a source
shows it (Ding et al. 2021; Gao et al. 2022, “Bi-SimCut”). The second run fine-tunes the model of
the first. Both are ordinary runs.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from os.path import abspath
from pathlib import Path
from typing import NamedTuple

from heedful.config.load import load_config, setting_list
from heedful.config.schema import RunConfig
from heedful.config.train import TrainConfig, share_of
from heedful.errors import RunFolderError, SettingError, TextError
from heedful.plugins import load_plugins
from heedful.preparation.training_data import as_list
from heedful.runs.folder import RunFolder
from heedful.runs.run import read_settings
from heedful.text.corpus import expand, read_lines
from heedful.tokenization.special_symbols import split_tag
from heedful.training.finetune import check_parts
from heedful.training.options import TrainingOptions
from heedful.training.setup import is_filled

_FLAG = "--both-directions-first"
_LENGTH = re.compile(r"\s*train\.(steps|minutes)\s*=")


class TwoTrainings(NamedTuple):
    """The options of both runs."""

    first: TrainingOptions | None
    """On both directions; None if the second run has begun, so that the first must not change."""
    second: TrainingOptions


def two_trainings(recipe: str, options: TrainingOptions) -> TwoTrainings:
    """
    Divide training into a first run on both directions and a second run in one direction.

    Raises `SettingError` for settings that exclude each other or that one of the runs refuses.
    Raises `RunFolderError` if `out` is not empty and is not resumed, and `TextError` if the source
    has language tags.
    """
    load_plugins(options.plugins)
    settings = setting_list(options.settings)
    config = load_config(recipe, settings)
    share = options.both_directions_first or 0.0
    _check(config, options, share)
    check_parts(options.keep_state, options.reset)
    if isinstance(options.valid_pairs, Iterator):  # both runs read them
        options = replace(options, valid_pairs=list(options.valid_pairs))
    source, target = (as_list(side or ()) for side in (options.source, options.target))
    _refuse_tags(source)
    out = both = None
    if options.out is not None:
        out = Path(options.out)
        named = out if out.name not in ("", "..") else Path(abspath(out))
        both = named.with_name(f"{named.name}-both")
    has_begun = out is not None and out.is_dir() and is_filled(out)
    if has_begun and not options.resume:
        raise RunFolderError(
            f"--out must be a new or empty folder, but {out} is not; add --resume to continue the "
            "run in it, or name another folder."
        )
    lengths = _lengths(config.train, share)
    if has_begun and both is not None:
        lengths = lengths.after(both)
    _check_weights(options, lengths.steps[0])
    settings = [setting for setting in settings if not _LENGTH.match(setting)]
    first_settings, second_settings = ([*settings, *more] for more in lengths.settings())
    for chosen in (first_settings, second_settings):  # before hours of the first training
        try:
            load_config(recipe, chosen)
        except SettingError as error:
            raise SettingError(
                f"{error} {_FLAG} divides the {config.train.steps:,} steps into a run of "
                f"{lengths.steps[0]:,} steps and one of {lengths.steps[1]:,}."
            ) from None
    first = replace(
        options,
        both_directions_first=None,
        source=[*source, *target],
        target=[*target, *source],
        out=both,
        finetune_weights="default",
        keep_state=(),
        reset=(),
        settings=first_settings,
    )
    second = replace(
        options,
        both_directions_first=None,
        finetune_from=both,
        tokenizer=None,  # the first run already has a tokenizer
        resume=options.resume and has_begun,  # False if the first training was interrupted
        settings=second_settings,
    )
    return TwoTrainings(None if has_begun else first, second)


class _Lengths(NamedTuple):
    """The steps and minutes of both runs."""

    steps: tuple[int, int]
    minutes: tuple[float, float] | None

    def after(self, both: Path) -> "_Lengths":
        """Keep the lengths of the first run, which has ended; the second run takes the rest."""
        folder = RunFolder(both)
        folder.require()
        earlier = read_settings(folder).train
        steps = sum(self.steps) - earlier.steps
        if steps < 1:
            raise SettingError(
                f"`train.steps` must be above the {earlier.steps:,} steps of the first run in "
                f"{both}, but is {sum(self.steps):,}; raise it."
            )
        minutes = self.minutes
        if minutes is not None and earlier.minutes is not None:
            minutes = earlier.minutes, max(sum(minutes) - earlier.minutes, 0.0)
        return _Lengths((earlier.steps, steps), minutes)

    def settings(self) -> tuple[list[str], list[str]]:
        """Return the settings of both runs."""
        first, second = ([f"train.steps={steps}"] for steps in self.steps)
        if self.minutes is not None:
            first.append(f"train.minutes={self.minutes[0]}")
            second.append(f"train.minutes={self.minutes[1]}")
        return first, second


def _lengths(train: TrainConfig, share: float) -> _Lengths:
    """Divide the planned steps and minutes."""
    steps = max(1, share_of(train.steps, share))
    minutes = None
    if train.minutes is not None:
        minutes = train.minutes * share, train.minutes * (1.0 - share)
    return _Lengths((steps, train.steps - steps), minutes)


def _refuse_tags(source: Sequence[str | Path]) -> None:
    """Refuse a source with language tags, which would become target text when reversed."""
    for text in expand(source):
        tag, _ = split_tag(next(read_lines(text), ""))
        if tag:
            raise TextError(
                f"{_FLAG} must have a source without language tags, because the first run also "
                f"reads the pairs in reverse, but {text} begins with {tag}. Leave out the tags, or "
                f"{_FLAG}."
            )


def _check_weights(options: TrainingOptions, steps: int) -> None:
    """Refuse weights that the first run, of so many steps, will not have."""
    weights, step = options.finetune_weights, re.fullmatch(r"step-(\d+)", options.finetune_weights)
    has_best = options.valid_source is not None or options.valid_pairs is not None
    known = {"default", "last", *(["best"] if has_best else [])}
    if weights not in known and not (step and int(step[1]) <= steps):
        raise SettingError(
            f"with {_FLAG}, --finetune-weights must be last, step-N up to step-{steps}, or best if "
            f"there is text for validation, but is {weights!r}."
        )


def _check(config: RunConfig, options: TrainingOptions, share: float) -> None:
    """Refuse settings that do not allow a first run on both directions."""
    if not (0.0 < share < 1.0 and config.train.steps > 1):
        raise SettingError(
            f"{_FLAG} must be a fraction above 0 and below 1, such as 0.5, of at least 2 steps, "
            f"but got {share:g} of {config.train.steps} steps."
        )
    if not (options.source and options.target):
        raise SettingError(
            f"{_FLAG} must have --source and --target, because the first run trains on them in "
            "both directions; give both, or train a run on both directions and continue it with "
            "--finetune-from."
        )
    if options.finetune_from is not None:
        raise SettingError(
            f"{_FLAG} begins with new weights, but got --finetune-from; leave one of them out."
        )
    if not config.data.shared_vocabulary:
        raise SettingError(
            f"{_FLAG} needs one vocabulary for both languages, but `data.shared_vocabulary` is "
            f"false; set it to true, or leave {_FLAG} out."
        )
    if config.train.objective in ("reward", "risk"):
        raise SettingError(
            f"{_FLAG} begins with new weights, but `train.objective` = {config.train.objective} "
            "needs the weights of a trained run; leave one of the two out."
        )
