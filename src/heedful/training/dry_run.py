"""A dry run of training: settings, text and folders are checked, but no step is computed."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from heedful.config.train import TWO_PASSES, TrainConfig
from heedful.data.encoded.dataset import EncodedPairs
from heedful.machine.device_memory import require_room
from heedful.machine.devices import resolve_device
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.model.weights import parameter_count
from heedful.preparation.training_data import Say
from heedful.runs.folder import RunFolder
from heedful.runs.lock import refuse_if_written
from heedful.runs.run import Run
from heedful.tokenization.tokenizer import Tokenizer
from heedful.training.device.optimizations import describe_steps, why_padded
from heedful.training.device.plan import Devices, PlannedTraining, plan_lines, planned_precision
from heedful.training.distributed import RankGroup
from heedful.training.finetune import check_pretrained
from heedful.training.setup import (
    TrainingSetup,
    check_folder,
    choose_machine_settings,
    prepare_data,
    resumed_settings,
)


def describe_plan(setup: TrainingSetup, say: Say, devices: Devices | None = None) -> str:
    """
    Prepare the text as training does, but in a temporary folder, and describe the run.

    `devices`: devices for which memory and hours are also computed.

    Raises the errors that training would raise before it builds the model. Leaves no files on the
    disk.
    """
    folder = setup.folder
    if folder is not None:
        refuse_if_written(folder.path)
        check_folder(folder, setup)
        check_pretrained(folder, setup.pretrained)
    with TemporaryDirectory(prefix="heedful-") as scratch:
        if folder is not None and folder.config.exists():
            machine_settings = resumed_settings(folder, setup, RankGroup())
            run, text, share = Run.open(folder.path), [], 1.0
        else:
            place = RunFolder(Path(scratch))
            machine_settings = choose_machine_settings(place, setup, RankGroup())
            run, pairs = prepare_data(place, setup, RankGroup(), say)
            text = [
                *setup.training_data.report(pairs, run.tokenizer),
                *setup.training_data.held_out_notes(pairs, setup.files),
            ]
            share = _target_share(pairs)
        with torch.device("meta"):
            model = run.build()
            parameters = parameter_count(model)
        require_room(parameters, resolve_device(setup.config.train.device))
        lines = _lines(setup, run, text, parameters, machine_settings.precision)
    settings = setup.config.train
    if devices is None:
        lines += _steps(settings, model, machine_settings.precision)
    else:
        lines += _planned_steps(settings, model, devices)
        lines += plan_lines(PlannedTraining.of(model, settings, share), devices)
    return "\n".join([*lines, "nothing was written"])


def _steps(settings: TrainConfig, model: EncoderDecoder, precision: str) -> Iterator[str]:
    """Yield a line that says how a GPU computes steps; yield nothing for a CPU."""
    device = resolve_device(settings.device)
    if device.type == "cuda":
        yield _steps_line(padding_reason(model, device, precision, settings))


def _planned_steps(settings: TrainConfig, model: EncoderDecoder, devices: Devices) -> Iterator[str]:
    """Yield a line that says how one planned GPU computes steps, and a line for several GPUs."""
    # this machine may have no GPU, so its device and precision do not matter
    device, precision = torch.device("cuda"), planned_precision(settings)
    single = padding_reason(model, device, precision, settings)
    if devices.count == 1:
        yield _steps_line(single)
        return
    yield _steps_line(single, "one device, ")
    several = padding_reason(model, device, precision, settings, devices.count)
    yield _steps_line(several, f"{devices.count} devices, ")


def _steps_line(padded: str, number: str = "") -> str:
    """Format the description of steps; `number`: the number of devices, if the plan has several."""
    return describe_steps(padded).replace("steps: ", f"steps       {number}")


def padding_reason(
    model: EncoderDecoder,
    device: torch.device,
    precision: str,
    settings: TrainConfig,
    ranks: int = 1,
) -> str:
    """Return the reason why training with these settings computes padding; empty if none."""
    if reason := why_padded(model, device, precision, settings.optimizer, ranks=ranks):
        return reason
    if settings.objective != "likelihood":
        return f"the objective is {settings.objective}"
    return "attention is guided" if settings.guided_attention else ""


def _target_share(pairs: Sequence[EncodedPairs]) -> float:
    """Divide the number of target tokens by the number of tokens of the longer side."""
    source = sum(int(part.source_lengths.sum()) + len(part) for part in pairs)
    target = sum(int(part.target_lengths.sum()) + len(part) for part in pairs)
    return target / max(source, target, 1)


def _by_objective(settings: TrainConfig) -> str:
    """Name an objective other than likelihood, and the cost of its second passes."""
    if settings.objective == "likelihood":
        return ""
    if settings.objective not in TWO_PASSES:
        return f", by {settings.objective}"
    first = settings.single_pass_steps + 1
    return (
        f", by {settings.objective} from step {first:,} on, with twice the operations per step; "
        f"in total {settings.mean_passes:.3g} times the operations of training by likelihood"
    )


def _kinds(tokenizer: Tokenizer) -> str:
    """Name the kinds of subwords of both sides."""
    kinds = dict.fromkeys((tokenizer.kind, tokenizer.target_kind))
    return " and ".join(kinds)


def _lines(
    setup: TrainingSetup, run: Run, text: list[str], parameters: int, precision: str
) -> list[str]:
    """Format the plan, one line per topic."""
    config = setup.config
    data, settings = config.data, config.train
    languages = [name or "not named" for name in (data.source_language, data.target_language)]
    source, target = run.vocabularies
    return [
        f"recipe      {config.recipe}",
        f"languages   {' to '.join(languages)}",
        *(f"text        {line}" for line in (setup.training_data.describe(config), *text)),
        f"validation  {setup.describe_valid()}",
        f"model       {parameters:,} parameters, vocabulary {source:,}"
        + ("" if data.shared_vocabulary else f" and {target:,}")
        + f" ({_kinds(run.tokenizer)})",
        f"training    {settings.steps:,} steps of {settings.batch_tokens:,} tokens per side"
        + (f", at most {settings.minutes:g} minutes" if settings.minutes else "")
        + _by_objective(settings),
        f"device      {resolve_device(settings.device)}, {precision}",
    ]
