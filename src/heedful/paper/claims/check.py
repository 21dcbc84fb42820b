"""All claims, and a folder of what was measured."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from heedful.errors import RunFolderError, SettingError
from heedful.files import replacing_file
from heedful.paper.claims.exact import check_convolution, check_shift
from heedful.paper.claims.layers import (
    check_additive_cost,
    check_batch_norm,
    check_gradients,
    check_parallel,
)
from heedful.paper.claims.statement import Checked, Statement
from heedful.paper.tables import markdown, write_table
from heedful.visualise.report_page import ReportPage
from heedful.visualise.size_curves import draw_size_curves

_NOTES = "often said of the paper"

CLAIMS = {
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
    )
}


def check_claims(
    names: Sequence[str], out: Path, say: Callable[[str], object] = lambda _: None
) -> dict[str, Checked]:
    """
    Decide claims, all if none is named; what `out` has is not measured again.

    Raises `SettingError` for an unknown name.
    """
    if unknown := sorted({*names} - {*CLAIMS}):
        raise SettingError(
            f"NAME must be one of {', '.join(CLAIMS)}, but is {unknown[0]!r}; choose some."
        )
    out.mkdir(parents=True, exist_ok=True)  # what cannot be written is said before the work
    found = {}
    for name in names or CLAIMS:
        kept = out / f"{name}.json"
        if kept.exists():
            found[name] = _read(kept)
            continue
        say(CLAIMS[name].said)
        found[name] = CLAIMS[name].check()
        _draw(CLAIMS[name], found[name], out / f"{name}.png")
        with replacing_file(kept) as stream:
            stream.write(json.dumps(found[name].to_dict(), indent=1) + "\n")
    write_table(out, "claims", to_markdown(found), to_dict(found))
    return found


def to_markdown(found: dict[str, Checked]) -> str:
    """Lay the page out."""
    parts = ["# Claims"]
    for name, checked in found.items():
        claim = CLAIMS[name]
        verdict = "It holds." if checked.holds else "It does not hold here."
        parts += [
            f"## {claim.said}",
            f"({claim.source}) {verdict} {checked.sentence}",
            markdown(checked.rows),
            f"![{claim.said}]({name}.png)",
        ]
    return "\n\n".join(parts) + "\n"


def to_dict(found: dict[str, Checked]) -> dict[str, Any]:
    """Convert to plain values."""
    return {
        name: {"said": CLAIMS[name].said, "source": CLAIMS[name].source, **checked.to_dict()}
        for name, checked in found.items()
    }


def _draw(claim: Statement, checked: Checked, out: Path) -> None:
    """Draw the numbers."""
    rows = checked.rows
    sheet = ReportPage(claim.said, checked.sentence, rows[0], tuple(rows[1:]))
    draw_size_curves([checked.panel], out, sheet)


def _read(kept: Path) -> Checked:
    """Read what was measured before."""
    try:
        return Checked.of(json.loads(kept.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise RunFolderError(
            f"{kept} must hold a measured claim, but cannot be read ({error}); delete it."
        ) from error
