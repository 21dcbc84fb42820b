"""All claims, and a folder of what was measured."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from heedful.bench.process import torch_threads
from heedful.errors import RunFolderError, SettingError
from heedful.experiments.corpus import TableCorpus
from heedful.experiments.page import folded, markdown, write_table
from heedful.experiments.plan import Plan, describe
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

RESERVATION = (
    "Every verdict holds for these models, this text and this machine. Where no seeds are named, "
    "one model of each kind was trained, and its interval is over sentences. Intervals of times "
    "are over rounds. Neither covers another seed, size or text."
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
    Decide claims, all if none is named; what `out` has is not measured again.

    `corpus`: finds the text that models are trained on, where any are. `budget`: seconds for these,
    shared by their number. `plan`: the folder of another call, to make its trainings again; then
    their budgets and threads are taken. The page has all claims of `out`.

    Raises, before anything is measured, `SettingError` for an unknown name and `TextError` for a
    text that decides no claim. Raises `RunFolderError` if `out` has models of another text, budget
    or plan, if `plan` lacks a claim, or if another process writes into `out`.
    """
    if unknown := sorted({*names} - {*CLAIMS}):
        raise SettingError(
            f"NAME must be one of {', '.join(CLAIMS)}, but is {unknown[0]!r}; choose some."
        )
    make_folder(out)  # what cannot be written is said before the work
    # The trainings of a claim lock a folder of their own below it.
    with only_writer(out, "paper claims"):
        for name in CLAIMS:
            _kept(out, name, None)  # what cannot be read is said before the work, too
        chosen = {name: CLAIMS[name] for name in names or CLAIMS}
        text, trainings = _prepare(chosen, out, corpus, budget, plan, threads)
        found = {name: kept for name in chosen if (kept := _kept(out, name, text)) is not None}
        for name, claim in chosen.items():
            if name in found:
                continue
            say(claim.said)
            plain: dict[str, Any] = {}
            if claim.systems:
                assert text is not None
                task, seconds, given, used = trainings[name]
                found[name] = train_and_check(
                    claim, task, seconds, plan=given, threads=used, say=say
                )
                plain["text"] = describe(text)
            else:
                with torch_threads(threads):
                    found[name] = claim.check()
            draw(claim.said, found[name], out / f"{name}.png")
            write_json(out / f"{name}.json", found[name].to_dict() | plain)
        page = {
            name: checked
            for name in CLAIMS
            if (checked := found.get(name) or _kept(out, name, None)) is not None
        }
        write_table(out, "claims", to_markdown(page), to_dict(page))
        return {name: found[name] for name in chosen}


class ClaimTrainings(NamedTuple):
    """The trainings of a claim and what they may take."""

    task: TableTask
    budget: float
    """In seconds."""
    plan: Path | None
    """Plan of another call, to repeat its steps."""
    threads: int


def _prepare(
    chosen: dict[str, PaperClaim],
    out: Path,
    corpus: Callable[[], TableCorpus],
    budget: float,
    plan: Path | None,
    threads: int,
) -> tuple[TableCorpus | None, dict[str, ClaimTrainings]]:
    """Find the text, share the budget, and refuse plans of something else."""
    trained = {name: one for name, one in chosen.items() if one.systems}
    if not trained:
        return None, {}
    needed = [] if plan is None else [plan / name / PLAN for name in trained]
    for file in needed:
        if not file.exists():
            raise RunFolderError(
                "--plan must be a folder of claims with a plan of each that is trained, but "
                f"{file} is missing; name another folder, or other claims."
            )
    text = check_text(corpus())
    whole = sum(one.cost for one in trained.values())
    found = {}
    for name, claim in trained.items():
        share = claim.cost / whole
        seconds, given, used = budget * share, None, threads
        if plan is not None:
            given = plan / name / PLAN
            planned = Plan.read(given)
            seconds, used = planned.budget, planned.threads
        if _kept(out, name, text) is not None and not (out / name / PLAN).exists():
            continue  # decided, and its models were deleted
        task = claim_task(claim, text, out / name, share)
        check_plans(task, seconds, given, used)
        found[name] = ClaimTrainings(task, seconds, given, used)
    return text, found


def to_markdown(found: dict[str, Checked]) -> str:
    """Lay the page out."""
    return "\n\n".join(["# Claims", *claim_sections(found, "##", "{}.png"), RESERVATION]) + "\n"


def claim_sections(checked: Mapping[str, Checked], level: str, picture: str) -> list[str]:
    """
    Lay claims out: verdict, the numbers that tell most, picture, and the rest folded.

    `level`: the marks of their headings. `picture`: where that of a claim is, with ``{}`` for its
    name.
    """
    return [
        part
        for name, claim in checked.items()
        for part in (
            f"{level} {CLAIMS[name].said}",
            f"**{claim.verdict}** {claim.headline(*CLAIMS[name].shown)} ({CLAIMS[name].source})",
            f"![{CLAIMS[name].said}]({picture.format(name)})",
            folded("All numbers", [claim.sentence, *map(markdown, claim.tables)]),
        )
    ]


def to_dict(found: dict[str, Checked]) -> dict[str, Any]:
    """Convert to plain values."""
    return {
        name: {
            "said": CLAIMS[name].said,
            "source": CLAIMS[name].source,
            **checked.to_dict(),
            "reservation": RESERVATION,
        }
        for name, checked in found.items()
    }


def draw(said: str, checked: Checked, out: Path) -> None:
    """Draw the numbers of a claim."""
    rows = checked.tables[0]
    sheet = ReportPage(said, checked.sentence, rows[0], tuple(rows[1:]))
    draw_size_curves(checked.panels, out, sheet)


def _kept(out: Path, name: str, corpus: TableCorpus | None) -> Checked | None:
    """
    Read what was measured before, if anything was.

    `corpus`: what it must be of, if that matters.
    """
    kept = out / f"{name}.json"
    if not kept.exists():
        return None
    content = "hold a measured claim"
    checked, text = read_json(kept, content, lambda plain: (Checked.of(plain), plain.get("text")))
    if corpus is not None and text not in (None, describe(corpus)):
        raise RunFolderError(
            f"--out must be a new folder or one of the same text, but {kept} was measured on other "
            "text; name another folder, or delete the file."
        )
    return checked
