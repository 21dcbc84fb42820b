"""All claims, and a folder of what was measured."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from heedful.errors import RunFolderError, SettingError
from heedful.files import make_folder, replacing_file
from heedful.paper.claims.exact import check_convolution, check_shift
from heedful.paper.claims.layers import (
    check_additive_cost,
    check_batch_norm,
    check_gradients,
    check_parallel,
)
from heedful.paper.claims.long_distance import check_long
from heedful.paper.claims.models import (
    ATTENTION,
    BATCH_SIZES,
    COST,
    ENCODERS,
    HEADS,
    LONG,
    MASK,
    SCORES,
)
from heedful.paper.claims.repeated_name import write_repeated_names
from heedful.paper.claims.statement import Checked, Statement, TrainedStatement
from heedful.paper.claims.trained import (
    check_attention,
    check_batch_sizes,
    check_cost,
    check_encoders,
    check_heads,
    check_mask,
    check_scores,
)
from heedful.paper.claims.trainings import COMMON, RECIPE, Trainings
from heedful.paper.systems.corpus import TableCorpus
from heedful.paper.systems.plan import Plan, describe
from heedful.paper.systems.task import TableTask
from heedful.paper.systems.training import PLAN, train_all
from heedful.paper.tables import markdown, write_table
from heedful.visualise.report_page import ReportPage
from heedful.visualise.size_curves import draw_size_curves

_LEARNED = 20  # BLEU
RESERVATION = (
    "Every verdict is of these models, this text and this machine, with one training of each "
    "model: intervals are over sentences, and say nothing of another seed, size or text."
)
_TOO_EASY = 98  # where every model has this much, what is left cannot tell them apart
_NOTES = "often said of the paper"
_Claim = Statement | TrainedStatement

CLAIMS: dict[str, _Claim] = {
    claim.name: claim
    for claim in (
        Statement(
            "convolution",
            "A convolution applies a different linear map at each relative position.",
            _NOTES,
            check_convolution,
        ),
        Statement(
            "shift",
            "The sinusoid of pos + k is a linear function of that of pos.",
            "section 3.5",
            check_shift,
        ),
        Statement(
            "batch-norm",
            "Batch norm depends on the other sentences of a batch, layer norm does not.",
            _NOTES,
            check_batch_norm,
        ),
        Statement(
            "gradients",
            "Layer norm and residual connections keep gradients alive in deep stacks.",
            _NOTES,
            check_gradients,
        ),
        Statement(
            "dot-product",
            "Dot-product attention is much faster than additive attention in practice.",
            "section 3.2.1",
            check_additive_cost,
        ),
        Statement(
            "parallel",
            "Recurrence precludes parallelization within a training example.",
            "section 1",
            check_parallel,
        ),
        TrainedStatement(
            "mask",
            "A decoder without its mask learns nothing that is of use in translation.",
            _NOTES,
            MASK,
            check_mask,
        ),
        TrainedStatement(
            "attention",
            "A recurrent translator needs attention, above all for long sentences.",
            _NOTES,
            ATTENTION,
            check_attention,
            decided_by_bleu=True,
        ),
        TrainedStatement(
            "long",
            "Recurrence and convolution lose what is far away, and self-attention does not.",
            "section 4",
            LONG,
            check_long,
            text=write_repeated_names,
        ),
        TrainedStatement(
            "encoders",
            "Self-attention encodes better than recurrence, convolution, an average or a sum.",
            _NOTES,
            ENCODERS,
            check_encoders,
            decided_by_bleu=True,
        ),
        TrainedStatement(
            "batch-size",
            "Layer norm learns with batches of any size, and batch norm needs large ones.",
            _NOTES,
            BATCH_SIZES,
            check_batch_sizes,
            decided_by_bleu=True,
        ),
        TrainedStatement(
            "scores",
            "For large d_k additive attention is ahead of dot products without the scale.",
            "section 3.2.1",
            SCORES,
            check_scores,
            decided_by_bleu=True,
        ),
        TrainedStatement(
            "heads",
            "Heads learn to attend to different things.",
            "section 4",
            HEADS,
            check_heads,
        ),
        TrainedStatement(
            "cost",
            "The Transformer is as good after a fraction of the training.",
            "abstract and section 6.1",
            COST,
            check_cost,
        ),
    )
}


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

    Raises `SettingError` for an unknown name, `RunFolderError` if `out` has a claim's models of
    another text or budget, or where `plan` has no plan of a claim.
    """
    if unknown := sorted({*names} - {*CLAIMS}):
        raise SettingError(
            f"NAME must be one of {', '.join(CLAIMS)}, but is {unknown[0]!r}; choose some."
        )
    make_folder(out)  # what cannot be written is said before the work
    chosen = {name: CLAIMS[name] for name in names or CLAIMS}
    models = max(1, sum(_models(claim) for claim in chosen.values()))
    found = {}
    for name, claim in chosen.items():
        kept = out / f"{name}.json"
        text = None if isinstance(claim, Statement) else corpus()
        share = Share(budget * _models(claim) / models, threads, None)
        if plan is not None and text is not None:
            share = Share.of(plan / name / PLAN)
        if kept.exists():
            found[name] = _read(kept, text)
            if text is not None:
                _check_budget(out / name / PLAN, share)
            continue
        say(claim.said)
        plain = {}
        if isinstance(claim, Statement):
            found[name] = claim.check()
        elif text is not None:
            found[name] = _train_and_check(claim, text, out / name, share, say)
            plain["text"] = describe(text)
        draw(claim.said, found[name], out / f"{name}.png")
        with replacing_file(kept) as stream:
            stream.write(json.dumps(found[name].to_dict() | plain, indent=1) + "\n")
    page = {
        name: found[name] if name in found else _read(out / f"{name}.json")
        for name in CLAIMS
        if name in found or (out / f"{name}.json").exists()
    }
    write_table(out, "claims", to_markdown(page), to_dict(page))
    return found


class Share(NamedTuple):
    """What a claim's trainings may take."""

    seconds: float
    threads: int
    plan: Path | None
    """The plan of another call, to make it again."""

    @classmethod
    def of(cls, plan: Path) -> "Share":
        """Read it of a plan."""
        planned = Plan.read(plan)
        return cls(planned.budget, planned.threads, plan)


def _check_budget(kept: Path, share: Share) -> None:
    """Refuse what was trained by another budget, where its plan is still there."""
    if not kept.exists():
        return
    planned = Plan.read(kept)
    if (planned.budget, planned.threads) != (share.seconds, share.threads):
        raise RunFolderError(
            f"--out must be a new folder or one of the same budget and threads, but {kept} shared "
            f"out {planned.budget / 60:.1f} minutes for {planned.threads} threads, and this call "
            f"{share.seconds / 60:.1f} for {share.threads} (0 is all; a budget is shared by the "
            "claims that are named); name another folder, or delete the claim's."
        )


def _models(claim: _Claim) -> int:
    """Count the models that a claim needs."""
    return len(claim.systems) if isinstance(claim, TrainedStatement) else 0


def _train_and_check(
    claim: TrainedStatement,
    corpus: TableCorpus,
    out: Path,
    share: Share,
    say: Callable[[str], None],
) -> Checked:
    """Train a claim's models for equally many steps, and compare them."""
    corpus = corpus._replace(narrow=1)  # the models are small already
    if claim.text is not None:
        corpus = claim.text(corpus, out / "lines")
    common = (*COMMON, f"data.vocabulary_size={corpus.vocabulary}")
    task = TableTask(RECIPE, common, claim.systems, corpus, out, "steps")
    measured = train_all(task, share.seconds, plan=share.plan, threads=share.threads, say=say)
    checked = claim.check(Trainings({one.name: one for one in measured}, corpus, out))
    lines = len(corpus.lines("train", corpus.source))
    steps = sorted({one.steps for one in measured})
    took = (
        f"Each model took {steps[0]:,}"
        if len(steps) == 1
        else (f"Models took {steps[0]:,} to {steps[-1]:,}, by the size of their batches,")
    )
    trained = f"{took} steps on {lines:,} pairs of lines ({corpus.source}-{corpus.target})."
    checked = replace(checked, sentence=f"{checked.sentence} {trained}")
    return leave_open(claim, checked, [one.bleu for one in measured])


def leave_open(claim: TrainedStatement, checked: Checked, bleu: Sequence[float]) -> Checked:
    """
    Decide nothing where models cannot be told apart. `bleu`: of each model.

    They cannot before they have learnt to translate, nor where BLEU decides and all make hardly an
    error.
    """
    needed = min(bleu) if claim.all_must_learn else max(bleu)
    which = "The weakest" if claim.all_must_learn else "The best"
    if needed < _LEARNED:
        doubt = f"{which} model has only {needed:.1f} BLEU: conclude nothing before a longer"
        return replace(checked, holds=None, sentence=f"{checked.sentence} {doubt} training.")
    if claim.decided_by_bleu and min(bleu) >= _TOO_EASY:
        doubt = f"Every model has {min(bleu):.1f} BLEU or more: conclude nothing on so easy a text."
        return replace(checked, holds=None, sentence=f"{checked.sentence} {doubt}")
    return checked


def to_markdown(found: dict[str, Checked]) -> str:
    """Lay the page out."""
    parts = ["# Claims"]
    for name, checked in found.items():
        claim = CLAIMS[name]
        parts += [
            f"## {claim.said}",
            f"({claim.source}) {checked.verdict} {checked.sentence}",
            *map(markdown, checked.tables),
            f"![{claim.said}]({name}.png)",
        ]
    return "\n\n".join([*parts, RESERVATION]) + "\n"


def to_dict(found: dict[str, Checked]) -> dict[str, Any]:
    """Convert to plain values."""
    return {
        name: {"said": CLAIMS[name].said, "source": CLAIMS[name].source, **checked.to_dict()}
        for name, checked in found.items()
    }


def draw(said: str, checked: Checked, out: Path) -> None:
    """Draw the numbers of a claim."""
    rows = checked.tables[0]
    sheet = ReportPage(said, checked.sentence, rows[0], tuple(rows[1:]))
    draw_size_curves(checked.panels, out, sheet)


def _read(kept: Path, corpus: TableCorpus | None = None) -> Checked:
    """Read what was measured before; refuse it if it is of another text."""
    try:
        plain = json.loads(kept.read_text(encoding="utf-8"))
        checked, text = Checked.of(plain), plain.get("text")
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise RunFolderError(
            f"{kept} must hold a measured claim, but cannot be read ({error}); delete it."
        ) from error
    if corpus is not None and text != describe(corpus):
        raise RunFolderError(
            f"--out must be a new folder or one of the same text, but {kept} was measured on other "
            "text; name another folder, or delete the file."
        )
    return checked
