"""`heedful evaluate`."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import Json, Seed, SignificanceTest, Trials
from heedful.cli.terminal_text import echo_json


def evaluate(
    hypothesis: Annotated[
        Path, typer.Option(help="File of detokenized translations, one per line.")
    ],
    reference: Annotated[
        list[str],
        typer.Option(metavar="FILE", help="File of reference translations; may be repeated."),
    ],
    language: Annotated[
        str,
        typer.Option(
            help="Code of the target language; by default the extension of the files, or the "
            "code of a language that heedful recognizes by its script. Chinese, Japanese (extra "
            "ja) and Korean (extra ko) have tokenizers of their own."
        ),
    ] = "",
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Ignore case.")] = False,
    confidence: Annotated[
        bool,
        typer.Option(
            "--confidence", help="Print the 95% confidence interval of each score except COMET's."
        ),
    ] = False,
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Another system's translations, to test whether the scores differ significantly; "
            "may be repeated.",
        ),
    ] = None,
    test: SignificanceTest = "randomization",
    trials: Trials = 10_000,
    seed: Seed = 12_345,
    comet: Annotated[
        str,
        typer.Option(
            metavar="MODEL_OR_FILE",
            help="Score with this COMET model too (extra comet). COMET's own library loads the "
            "model and runs code from it: give only a model that you trust.",
        ),
    ] = "",
    source: Annotated[Path | None, typer.Option(help="Source text, for --comet.")] = None,
    as_json: Json = False,
) -> None:
    """
    Score translations: BLEU, chrF, TER, exact match, CER.

    The signature of each score states how it was computed. Exact match is the share of the lines
    that are equal to a reference. CER is the character error rate: edits per hundred characters of
    the references. Exact match and CER ignore spaces at the start and end of a line. BLEU, chrF and
    TER are computed by sacreBLEU. The paper's BLEU is computed as in tensor2tensor's
    get_ende_bleu.sh, which tokenizes the text and splits compounds. This score needs the extra
    “paper” and is not comparable with sacreBLEU's.
    """
    from heedful.analysis.evaluate import evaluate as evaluate_system
    from heedful.evaluation.significance import Resampling

    evaluation = evaluate_system(
        hypothesis,
        reference,
        language=language,
        lowercase=lowercase,
        source=source,
        comet=comet,
        against=against or (),
        confidence=confidence,
        test=test,
        resampling=Resampling(trials, seed),
    )
    if as_json:
        echo_json(evaluation.to_dict())
    else:
        typer.echo(str(evaluation))
