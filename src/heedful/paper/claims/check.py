"""The check of all claims, and the folder in which their results are saved."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from heedful.errors import RunFolderError, SettingError
from heedful.experiments.corpus import TableCorpus
from heedful.experiments.page import fold, markdown, write_table
from heedful.experiments.plan import Plan, describe
from heedful.experiments.process import torch_threads
from heedful.experiments.record import read_json, write_json
from heedful.experiments.run import PLAN, check_plans
from heedful.experiments.task import TableTask
from heedful.files import make_folder
from heedful.paper.claims.statement import Checked, PaperClaim
from heedful.paper.claims.table import CLAIMS
from heedful.paper.claims.training import check_text, claim_task, train_and_check
from heedful.runs.lock import only_writer
from heedful.visualise.report_page import ReportPage
from heedful.visualise.size_curves import draw_size_curves

INTRODUCTION = (
    "Each verdict is followed by the number that decides it, and by the source of the claim. If "
    "the number has a 95% interval, the interval is in parentheses."
)
RESERVATION = (
    "Every verdict holds only for these models, this text and this machine. Where no seeds are "
    "named, one model of each kind was trained, and the interval is computed over sentences. "
    "Intervals of times are computed over rounds of measurement. Only intervals over seeds also "
    "hold for other seeds, and no interval holds for another model size or text."
)


def check_claims(
    names: Sequence[str],
    out: Path,
    corpus: Callable[[], TableCorpus],
    budget: float,
    *,
    plan: Path | None = None,
    threads: int = 0,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Checked]:
    """
    Decide claims, or continue from `out`: claims with results in `out` are not measured again.

    `names`: the claims to decide; all if empty. `corpus`: returns the text for the models; called
    only if models are trained. `budget`: seconds for all training runs, divided among the models.
    `plan`: the folder of an earlier call; its training runs are repeated with their budgets and
    threads. The written page shows all claims in `out`.

    Raises, before anything is measured, `SettingError` for an unknown name and `TextError` for a
    text that cannot decide a claim. Raises `RunFolderError` if `out` has models of another text,
    budget or plan, if `plan` lacks a claim, or if another process writes into `out`.
    """
    if unknown := sorted({*names} - {*CLAIMS}):
        raise SettingError(
            f"NAME must be one of {', '.join(CLAIMS)}, but is {unknown[0]!r}; choose from these."
        )
    make_folder(out)  # fails before the work if the folder cannot be written
    # The training runs of each claim lock their own folder below `out`.
    with only_writer(out, "paper claims"):
        for name in CLAIMS:
            _earlier_result(out, name, None)  # fails before the work if a file is unreadable
        chosen = {name: CLAIMS[name] for name in names or CLAIMS}
        text, trainings = _prepare(chosen, out, corpus, budget, plan, threads)
        results = {
            name: known
            for name in chosen
            if (known := _earlier_result(out, name, text)) is not None
        }
        for name, claim in chosen.items():
            if name in results:
                continue
            say(claim.statement)
            plain: dict[str, Any] = {}
            if claim.systems:
                assert text is not None
                task, seconds, plan_file, used = trainings[name]
                results[name] = train_and_check(
                    claim, task, seconds, plan=plan_file, threads=used, say=say
                )
                plain["text"] = describe(text)
            else:
                with torch_threads(threads):
                    results[name] = claim.check()
            draw(claim.statement, results[name], out / f"{name}.png")
            write_json(out / f"{name}.json", results[name].to_dict() | plain)
        page = {
            name: checked
            for name in CLAIMS
            if (checked := results.get(name) or _earlier_result(out, name, None)) is not None
        }
        write_table(out, "claims", to_markdown(page), to_dict(page))
        return {name: results[name] for name in chosen}


class ClaimTrainings(NamedTuple):
    """The training runs of a claim, with their budget, plan and threads."""

    task: TableTask
    budget: float
    """Time budget in seconds."""
    plan: Path | None
    """The plan of an earlier call, whose steps are repeated."""
    threads: int


def _prepare(
    chosen: dict[str, PaperClaim],
    out: Path,
    corpus: Callable[[], TableCorpus],
    budget: float,
    plan: Path | None,
    threads: int,
) -> tuple[TableCorpus | None, dict[str, ClaimTrainings]]:
    """Get the text, divide the budget, and refuse plans that belong to other training runs."""
    trained = {name: claim for name, claim in chosen.items() if claim.systems}
    if not trained:
        return None, {}
    needed = [] if plan is None else [plan / name / PLAN for name in trained]
    for file in needed:
        if not file.exists():
            raise RunFolderError(
                "--plan must be a folder of claims with a plan for each claim that needs training, "
                f"but {file} is missing; name another folder or other claims."
            )
    text = check_text(corpus())
    total = sum(claim.cost for claim in trained.values())
    trainings = {}
    for name, claim in trained.items():
        share = claim.cost / total
        seconds, plan_file, used = budget * share, None, threads
        if plan is not None:
            plan_file = plan / name / PLAN
            planned = Plan.read(plan_file)
            seconds, used = planned.budget, planned.threads
        if _earlier_result(out, name, text) is not None and not (out / name / PLAN).exists():
            continue  # the claim is already decided, and its models were deleted
        task = claim_task(claim, text, out / name, share)
        check_plans(task, seconds, plan_file, used)
        trainings[name] = ClaimTrainings(task, seconds, plan_file, used)
    return text, trainings


def to_markdown(results: dict[str, Checked]) -> str:
    """Lay out the page of all claims."""
    sections = claim_sections(results, "##", "{}.png")
    return "\n\n".join(["# Claims", INTRODUCTION, *sections, RESERVATION]) + "\n"


def claim_sections(checked: Mapping[str, Checked], level: str, picture: str) -> list[str]:
    """
    Lay out claims: verdict, deciding number, picture, and a collapsed section of all numbers.

    `level`: the Markdown prefix of the headings. `picture`: the path of a claim's picture, with
    ``{}`` for the claim's name.
    """
    return [
        part
        for name, claim in checked.items()
        for part in (
            f"{level} {CLAIMS[name].statement}",
            f"**{claim.verdict}** {claim.headline} ({CLAIMS[name].source})",
            f"![{CLAIMS[name].statement}]({picture.format(name)})",
            fold("All numbers", [claim.sentence, *_tables(claim)]),
        )
    ]


def _tables(claim: Checked) -> list[str]:
    """Lay out the tables of a claim below their titles."""
    return [f"{title}:\n\n{markdown(rows)}" for title, rows in claim.tables]


def to_dict(results: dict[str, Checked]) -> dict[str, Any]:
    """Convert to JSON values."""
    return {
        name: {
            "said": CLAIMS[name].statement,
            "source": CLAIMS[name].source,
            **checked.to_dict(),
            "reservation": RESERVATION,
        }
        for name, checked in results.items()
    }


def draw(statement: str, checked: Checked, out: Path) -> None:
    """Draw the numbers of a claim."""
    _, rows = checked.tables[0]
    draw_size_curves(checked.panels, out, ReportPage(statement, checked.sentence, rows))


def _earlier_result(out: Path, name: str, corpus: TableCorpus | None) -> Checked | None:
    """
    Read the result of a claim from its file; None if there is none.

    `corpus`: the text on which the claim must have been measured; any text if None.
    """
    file = out / f"{name}.json"
    if not file.exists():
        return None
    content = "hold a measured claim"
    checked, text = read_json(file, content, lambda plain: (Checked.of(plain), plain.get("text")))
    if corpus is not None and text not in (None, describe(corpus)):
        raise RunFolderError(
            f"--out must be a new folder, or have claims measured on the same text, but {file} was "
            "measured on other text; name another folder, or delete the file."
        )
    return checked
