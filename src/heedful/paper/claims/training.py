"""Training of a claim's models, and the verdict from their results."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from heedful.errors import TextError
from heedful.experiments.corpus import TableCorpus
from heedful.experiments.page import LEARNED
from heedful.experiments.plan import Plan
from heedful.experiments.run import PLAN, train_all
from heedful.experiments.task import TableTask
from heedful.paper.claims.statement import Checked, PaperClaim
from heedful.paper.claims.trainings import COMMON, RECIPE, Trainings

_LEARNED = 20  # BLEU
_TOO_EASY = 98  # if every model reaches this BLEU, their few errors cannot distinguish them
_FEWEST_LINES = 20


def check_text(corpus: TableCorpus) -> TableCorpus:
    """Return a text; raises `TextError` if its test set is too short to decide a claim."""
    lines = len(corpus.lines("test", corpus.source))
    if lines < _FEWEST_LINES:
        raise TextError(
            f"the test text must have at least {_FEWEST_LINES} lines to decide a claim, but has "
            f"{lines}; give more lines."
        )
    return corpus


def claim_task(claim: PaperClaim, corpus: TableCorpus, out: Path, share: float) -> TableTask:
    """
    Describe the training runs of a claim, and write the text that they need.

    `share`: the claim's share of the whole budget.
    """
    corpus = corpus._replace(narrow=1)  # the models are already small
    if claim.text is not None:
        corpus = claim.text(corpus, out / "lines")
    common = (*COMMON, f"data.vocabulary_size={corpus.vocabulary}")
    return TableTask(RECIPE, common, claim.systems, corpus, out, "steps", share, claim.validations)


def train_and_check(
    claim: PaperClaim,
    task: TableTask,
    budget: float,
    *,
    plan: Path | None,
    threads: int,
    say: Callable[[str], None],
) -> Checked:
    """Train the models of a claim, and compare them."""
    measured = train_all(task, budget, plan=plan, threads=threads, say=say)
    systems = {system.name: system for system in measured}
    corpus, planned = task.corpus, Plan.read(task.out / PLAN)
    checked = claim.check(Trainings(systems, corpus, task.out, planned.threads))
    lines = len(corpus.lines("train", corpus.source))
    steps = sorted({system.steps for system in measured})
    took = f"Each model took {steps[0]:,} steps"
    if len(steps) > 1:
        took = f"Models took {steps[0]:,} to {steps[-1]:,} steps, depending on the batch size,"
    trained = f"{took} on {lines:,} pairs of lines ({corpus.source}-{corpus.target})."
    checked = replace(checked, sentence=f"{checked.sentence} {trained}")
    return leave_open(claim, checked, {system.name: system.bleu for system in measured})


def leave_open(claim: PaperClaim, checked: Checked, bleu: Mapping[str, float]) -> Checked:
    """
    Return the claim as undecided if its models cannot be distinguished.

    `bleu`: the BLEU of each model. Models cannot be distinguished if a model that must translate
    has learned too little. The same holds if another model unexpectedly has learned nothing, or if
    BLEU decides and all models make hardly any errors.
    """
    needed = claim.must_learn or (max(bleu, key=lambda name: bleu[name]),)
    titles = {system.name: system.title for system in claim.systems}
    weakest = min(needed, key=lambda name: bleu[name])
    weak = [name for name in bleu if bleu[name] < LEARNED and name not in claim.may_learn_nothing]
    longer = "Train longer before drawing conclusions:"
    if bleu[weakest] < _LEARNED:
        doubt = f"{longer} {titles[weakest]} has only {bleu[weakest]:.1f} BLEU."
    elif weak:
        which = ", ".join(f"{titles[name]} ({bleu[name]:.1f} BLEU)" for name in weak)
        doubt = f"{longer} {which} learned nothing useful."
    elif claim.decided_by_bleu and min(bleu.values()) >= _TOO_EASY:
        doubt = (
            f"Every model has {min(bleu.values()):.1f} BLEU or more; a text this easy decides "
            "nothing."
        )
    else:
        return checked
    return replace(checked, holds=None, headline=doubt, sentence=f"{checked.sentence} {doubt}")
