"""Train and measure all systems of a table in a folder, or go on with what it holds."""

from collections.abc import Callable, Sequence
from pathlib import Path

from heedful.errors import RunFolderError
from heedful.files import make_folder
from heedful.paper.systems.corpus import TableCorpus
from heedful.paper.systems.measured import MeasuredSystem, train_and_measure
from heedful.paper.systems.plan import Equal, Plan, describe, make_plan
from heedful.paper.systems.system import TableSystem, narrow

_PLAN = "plan.json"


def train_all(
    recipe: str,
    common: Sequence[str],
    systems: Sequence[TableSystem],
    corpus: TableCorpus,
    out: Path,
    budget: float,
    equal: Equal,
    *,
    plan: Path | None = None,
    threads: int = 0,
    say: Callable[[str], None],
) -> list[MeasuredSystem]:
    """
    Share the budget, then train and measure one system after the other.

    Raises `RunFolderError` where `out` was begun with other text, systems or another budget.
    """
    systems = [one._replace(settings=narrow(one.settings, corpus.narrow)) for one in systems]
    kept = out / _PLAN
    if kept.exists():
        planned = Plan.read(kept)
        _check(planned, systems, corpus, budget, equal, out)
    else:
        make_folder(out)
        planned = make_plan(recipe, common, systems, corpus, out, budget, equal, threads, say, plan)
        planned.write(kept)
    by_name = {one.name: one for one in planned.systems}
    for system in systems:
        if system.name in planned.left_out:
            say(f"{system.title} is left out: the budget has no step for it")
    systems = [system for system in systems if system.name not in planned.left_out]
    found = []
    for number, system in enumerate(systems, start=1):
        members = [by_name[name] for name in system.members or (system.name,)]
        steps = f", {members[0].steps:,} steps in about {members[0].seconds / 60:.1f} minutes"
        say(f"{number} of {len(systems)}: {system.title}{'' if system.members else steps}")
        found.append(train_and_measure(system, members, planned, corpus, out))
        say(f"   BLEU {found[-1].bleu:.1f}")
    return found


def _check(
    plan: Plan,
    systems: Sequence[TableSystem],
    corpus: TableCorpus,
    budget: float,
    equal: Equal,
    out: Path,
) -> None:
    """Refuse to go on with something else."""
    trained = [system.name for system in systems if not system.members]
    differs = [
        what
        for what, same in (
            ("the text", plan.corpus == describe(corpus)),
            ("--budget", plan.budget == budget),
            ("the systems", {one.name for one in plan.systems} | {*plan.left_out} == {*trained}),
            ("the table", plan.equal == equal),
        )
        if not same
    ]
    if differs:
        raise RunFolderError(
            f"--out must be a new folder or one that the same command began, but {out} was begun "
            f"with something else ({', '.join(differs)}); name another folder, or delete it."
        )
