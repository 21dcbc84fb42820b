"""Train and measure all systems of a table in a folder, or continue after an interruption."""

from collections.abc import Callable
from pathlib import Path

from heedful.errors import RunFolderError
from heedful.experiments.budget import why_left_out
from heedful.experiments.measured import MeasuredSystem, train_and_measure
from heedful.experiments.plan import Plan, describe, encode_all, make_plan
from heedful.experiments.task import TableTask
from heedful.files import make_folder
from heedful.runs.lock import only_writer

PLAN = "plan.json"


def train_all(
    task: TableTask,
    budget: float,
    *,
    plan: Path | None = None,
    threads: int = 0,
    say: Callable[[str], None],
) -> list[MeasuredSystem]:
    """
    Divide the budget among the systems, then train and measure one system after the other.

    `plan`: the plan of another run of the same table and text, to repeat that run. Its steps,
    budget and threads are used instead of `budget` and `threads`.

    Raises `RunFolderError` if the folder belongs to a different text, systems, budget or number of
    threads, or if another process writes to it. A `plan` of another table or text is also an error.
    """
    task = task.narrowed()
    make_folder(task.out)
    with only_writer(task.out, "paper"):
        return _train_planned(_choose_plan(task, budget, plan, threads, say), task, say)


def check_plans(task: TableTask, budget: float, plan: Path | None, threads: int) -> Plan | None:
    """
    Return the plan in the table's folder; None if there is none.

    Raises `RunFolderError` if this plan differs from the arguments, or if the plan in the file
    `plan` belongs to another table or text.
    """
    earlier = None if plan is None else Plan.read(plan)
    if earlier is not None:
        budget, threads = earlier.budget, earlier.threads
        if differs := _differences(earlier, task):
            raise RunFolderError(
                f"--plan must be a plan of this table and text, but {plan} differs in "
                f"{', '.join(differs)}; leave --plan out, or name another file."
            )
    own = task.out / PLAN
    if own.exists():
        planned = Plan.read(own)
        differs = _differences(planned, task)
        shared = ", which the named claims share" if task.share < 1 else ""
        differs += [f"--budget{shared}"] * (planned.budget != budget)
        differs += ["--threads"] * (planned.threads != threads)
        folders = {system.name: system.data for system in planned.systems}
        differs += ["--plan"] * (earlier is not None and earlier.in_folders(folders) != planned)
        if differs:
            raise RunFolderError(
                f"--out must be a new folder or one that the same command began, but {task.out} "
                f"differs in {', '.join(differs)}; name another folder, "
                "or delete this one."
            )
        return planned
    return None


def _choose_plan(
    task: TableTask, budget: float, plan: Path | None, threads: int, say: Callable[[str], None]
) -> Plan:
    """Return the plan in the folder, else the plan in the file `plan`, else a new plan."""
    if (own := check_plans(task, budget, plan, threads)) is not None:
        return own
    if plan is None:
        planned = make_plan(task, budget, threads, say)
    else:
        earlier = Plan.read(plan)
        # this task may have fewer systems and texts than the earlier plan
        folders = {name: encoded.folder for name, encoded in encode_all(task).items()}
        planned = earlier.in_folders(folders)
    planned.write(task.out / PLAN)
    return planned


def _train_planned(plan: Plan, task: TableTask, say: Callable[[str], None]) -> list[MeasuredSystem]:
    """Train and measure the systems that have steps in a plan."""
    by_name = {system.name: system for system in plan.systems}
    left_out = why_left_out(task.systems, plan.left_out, plan.budget)
    for reason in left_out.values():
        say(reason)
    systems = [system for system in task.systems if system.name not in left_out]
    measured: list[MeasuredSystem] = []
    for number, system in enumerate(systems, start=1):
        members = [by_name[name] for name in system.members or (system.name,)]
        steps = f", {members[0].steps:,} steps in about {members[0].seconds / 60:.1f} minutes"
        say(f"{number} of {len(systems)}: {system.title}{'' if system.members else steps}")
        measured.append(train_and_measure(system, members, plan, task.corpus, task.out))
        say(f"   BLEU {measured[-1].bleu:.1f}")
    return measured


def _differences(plan: Plan, task: TableTask) -> list[str]:
    """Name the properties that differ between a plan and this task."""
    wanted = {system.name: (*task.common, *system.settings) for system in task.trained}
    planned = {system.name: system.settings for system in plan.systems}
    same_models = plan.recipe == task.recipe and all(
        planned[name][: len(settings)] == settings
        for name, settings in wanted.items()
        if name in planned
    )
    return [
        what
        for what, same in (
            ("the text", plan.corpus == describe(task.corpus)),
            ("the systems", {*planned, *plan.left_out} == {*wanted}),
            ("--vocabulary or the models", same_models),
            ("the table", plan.equal == task.equal),
        )
        if not same
    ]
