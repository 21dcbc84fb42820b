"""
Count the operations of a table's training runs again from its plan, without training.

Batches are a function of text, settings and seed, so a plan determines each step. The numbers of
target tokens in the record show whether the batches are the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from heedful.data.encoded.dataset import JoinedPairs
from heedful.experiments.corpus import TableCorpus
from heedful.experiments.measured import CurvePoint, MeasuredSystem
from heedful.experiments.plan import Plan, PlannedSystem, encode_all
from heedful.experiments.system import TableSystem
from heedful.experiments.task import TableTask
from heedful.model.contracts import training_flops
from heedful.runs.folder import RunFolder
from heedful.training.batches import TrainingPairs
from heedful.training.distributed import RankGroup
from heedful.training.options import TrainingOptions
from heedful.training.setup import TrainingSetup, choose_machine_settings, prepare_data


def count_again(
    measured: Sequence[MeasuredSystem],
    plan: Plan,
    systems: Sequence[TableSystem],
    corpus: TableCorpus,
    out: Path,
) -> list[MeasuredSystem]:
    """
    Count the operations of measured systems again.

    `systems`: the systems of the table, which name the runs that they continue and the members of
    ensembles. `out`: the folder for the encoded text. Ends the program if a training run had other
    batches.
    """
    # 1. encode the text of each training run with the settings in its plan
    every = [TableSystem(part.name, part.name, part.settings) for part in plan.systems]
    task = TableTask(plan.recipe, (), every, corpus, out, plan.equal)
    folders = {name: out / encoded.folder for name, encoded in encode_all(task).items()}
    planned = {system.name: system for system in plan.systems}
    known = {system.name: system for system in systems}
    curves: dict[str, tuple[CurvePoint, ...]] = {}
    counted = []
    for system in measured:
        of_table = known[system.name]
        if of_table.members:
            total = sum(curves[name][-1].flops for name in of_table.members)
            counted.append(replace(system, flops=total))
            continue
        needed = (*of_table.members, *filter(None, [of_table.after]))
        if not system.flops or any(name not in curves for name in needed):  # unknown
            counted.append(system)
            continue
        if of_table.after:
            # only the training knew its samples; it keeps its own operations
            earlier = curves[of_table.after]
            begun = system.curve[len(earlier) - 1].flops - earlier[-1].flops
            own = (replace(point, flops=point.flops - begun) for point in system.curve)
            curve = (*earlier, *islice(own, len(earlier), None))
        else:
            steps = [point.step for point in system.curve]
            flops, tokens = _count(plan, planned[system.name], folders[system.name], steps)
            if tokens != system.target_tokens:
                raise SystemExit(
                    f"{system.title} was trained on {system.target_tokens:,} target tokens, but by "
                    f"its plan there are {tokens:,}; operations cannot be counted again."
                )
            points = zip(system.curve, flops, strict=True)
            curve = tuple(replace(point, flops=now) for point, now in points)
        curves[system.name] = curve
        counted.append(replace(system, curve=curve, flops=curve[-1].flops))
    return counted


def _count(
    plan: Plan, planned: PlannedSystem, data: Path, steps: Sequence[int]
) -> tuple[list[float], int]:
    """Count the operations up to each of some steps, and the target tokens up to the last step."""
    with TemporaryDirectory() as scratch:
        place = RunFolder(Path(scratch))
        settings = [*planned.settings, f"train.threads={plan.threads}"]
        setup = TrainingSetup.resolve(plan.recipe, TrainingOptions(data=data, settings=settings))
        machine_settings = choose_machine_settings(place, setup, RankGroup())
        run, pairs = prepare_data(place, setup, RankGroup(), lambda _: None)
        model = run.build()
        if machine_settings.precision == "bf16":
            model.to(torch.bfloat16)
        source = TrainingPairs(JoinedPairs(pairs), run, machine_settings, run.collator(model))
        flops, tokens, until = 0.0, 0, {}
        for step, batch in enumerate(islice(_batches(source), steps[-1]), start=1):
            for rows in source.cut(batch, 1)[0]:
                collated = source.collate(rows)
                flops += training_flops(model, collated.source_lengths, collated.target_lengths)
                tokens += collated.target_tokens
            until[step] = flops
    return [until[step] for step in steps], tokens


def _batches(source: TrainingPairs) -> Iterator[object]:
    """Yield the batches of one epoch after another, indefinitely."""
    for epoch in count():
        yield from source.epoch(epoch)
