"""`heedful paper figure3`, `figure4`, `figure5` and `heads`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import RunPath, Weights, refuse, warn
from heedful.cli.terminal_text import echo, echo_json, read_argument

Figure = Annotated[Path, typer.Option(help="File of the figure: .png, .svg, .pdf or .html.")]
Sentence = Annotated[
    str,
    typer.Option(
        help="Sentence in the run's source language. By default the paper's sentence, or a "
        "sentence of the run's training text if the run does not know the paper's words."
    ),
]
Layer = Annotated[
    int,
    typer.Option(
        min=0,
        help="Encoder layer, counted from 1; 0 means layer 5, or the last layer if there are fewer "
        "than five.",
    ),
]
Query = Annotated[
    str,
    typer.Option(
        help="Word whose attention is shown; “its:2” is the second “its”. By default the paper's "
        "word; if another sentence is shown, the word that attends most to a non-adjacent word."
    ),
]
Keys = Annotated[
    str,
    typer.Option(
        help="Words that the query word should attend to, such as “more difficult”; by "
        "default the paper's words, or none if another sentence is shown."
    ),
]
AllHeads = Annotated[
    str, typer.Option(help="Heads to draw, counted from 1, such as 1,4,5; by default all.")
]
TwoHeads = Annotated[
    str, typer.Option(help="Heads to draw, counted from 1, such as 5,6; by default the best two.")
]


def figure3(
    run: RunPath,
    out: Figure = Path("figure3.png"),
    sentence: Sentence = "",
    layer: Layer = 0,
    heads: AllHeads = "",
    query: Query = "",
    keys: Keys = "",
    weights: Weights = "default",
) -> None:
    """
    Draw what the heads of a layer attend to from one word.

    In figure 3 of the paper, heads of layer 5 attend from “making” to the distant words “more
    difficult”. The command prints the weight of each head on these words, or on the words of
    --keys.
    """
    _draw(3, run, out, sentence, layer, heads, query, keys, weights)


def figure4(
    run: RunPath,
    out: Figure = Path("figure4.png"),
    sentence: Sentence = "",
    layer: Layer = 0,
    heads: TwoHeads = "",
    query: Query = "",
    keys: Keys = "",
    weights: Weights = "default",
) -> None:
    """
    Draw two heads that find the words a pronoun stands for.

    In figure 4 of the paper, two heads of layer 5 attend from “its” to “Law” and “application”. For
    each head, the command compares the attention from the pronoun to these words with the attention
    from other words. It draws the two heads with the largest difference. The upper picture shows
    the attention of the first head from all words; the lower picture shows the attention of both
    heads from the pronoun.
    """
    _draw(4, run, out, sentence, layer, heads, query, keys, weights)


def figure5(
    run: RunPath,
    out: Figure = Path("figure5.png"),
    sentence: Sentence = "",
    layer: Layer = 0,
    heads: TwoHeads = "",
    weights: Weights = "default",
) -> None:
    """
    Draw two heads that follow the structure of a sentence.

    As in figure 5 of the paper, each head attends sharply, but not always at the same distance or
    to the same word. The two heads differ from each other.
    """
    _draw(5, run, out, sentence, layer, heads, "", "", weights)


def _draw(
    number: int,
    run: Path,
    out: Path,
    sentence: str,
    layer: int,
    heads: str,
    query: str,
    keys: str,
    weights: str,
) -> None:
    """Compute a figure, print its numbers and draw it."""
    from heedful.paper.figures import make_figure
    from heedful.translation.translator import Translator
    from heedful.visualise.report_page import check_report_ending

    check_report_ending(out)
    chosen = _numbers(heads)
    figure = make_figure(
        number,
        Translator.load(run, weights=weights, device="cpu", precision="fp32"),
        sentence=read_argument(sentence),
        layer=layer,
        heads=chosen,
        query=read_argument(query),
        keys=read_argument(keys),
    )
    for note in figure.notes:
        warn(f"{note}.")
    echo(figure.sheet.title)
    echo_table(figure.sheet.rows)
    typer.echo(figure.sheet.caption)
    figure.draw(out)
    typer.echo(str(out))


def _numbers(text: str) -> list[int]:
    """Parse the numbers of heads."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isdecimal() and int(part) for part in parts):
        refuse("--heads", f"must be head numbers from 1, separated by commas, but is {text!r}.")
    return list(dict.fromkeys(int(part) for part in parts))


def heads(
    run: RunPath,
    sentence: Annotated[
        str, typer.Argument(metavar="SENTENCE", help="A sentence in the run's source language.")
    ] = "",
    query: Annotated[
        str, typer.Option(help="The query word, usually the verb; “saw:2” is the second “saw”.")
    ] = "",
    who: Annotated[str, typer.Option(help="The words that answer “who”.")] = "",
    did_what: Annotated[str, typer.Option(help="The words that answer “did what”.")] = "",
    to_whom: Annotated[str, typer.Option(help="The words that answer “to whom”.")] = "",
    grammar: Annotated[
        int,
        typer.Option(
            min=0,
            help="Number of sentences of the quickstart's grammar, with known answers, to use "
            "instead of SENTENCE. Heads are chosen on half of the sentences and rated on the "
            "other half.",
        ),
    ] = 0,
    top: Annotated[
        int, typer.Option(min=1, help="With SENTENCE: number of heads to print for each question.")
    ] = 3,
    out: Annotated[
        Path | None,
        typer.Option(
            help="With SENTENCE: file for a picture of the best head for each question (.png, "
            ".svg, .pdf or .html)."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON; with SENTENCE, it contains all heads.")
    ] = False,
    weights: Weights = "default",
) -> None:
    """
    Find the heads that answer “who”, “did what” and “to whom”.

    heedful paper heads RUN "I kicked the ball" --query kicked --who I --did-what kicked

    All heads of all layers are ranked by the attention weight from the query word (--query) to the
    words of the answer. Rank 1 among the words means that no other word has more weight. With
    --grammar, the head that best finds the antecedent of a pronoun is also listed.
    """
    questions = {"who": who, "did what": did_what, "to whom": to_whom}
    answers = {question: read_argument(words) for question, words in questions.items() if words}
    if bool(grammar) == bool(sentence):
        refuse("SENTENCE", "or --grammar must be given, but not both.")
    if grammar == 1:
        refuse(
            "--grammar",
            "must be at least 2, because heads are chosen on one half of the sentences and rated "
            "on the other half.",
        )
    if grammar and (query or answers or out):
        refuse(
            "--grammar",
            "cannot be combined with --query, --who, --did-what, --to-whom or --out, because the "
            "grammar has its own questions and answers.",
        )
    if sentence and not (query and answers):
        refuse(
            "--query",
            "must name the query word, and --who, --did-what or --to-whom must name the words of "
            "the answer.",
        )
    from heedful.paper.role_report import find_in_grammar, find_in_sentence
    from heedful.translation.translator import Translator
    from heedful.visualise.report_page import check_report_ending

    if out is not None:
        check_report_ending(out)
    translator = Translator.load(run, weights=weights, device="cpu", precision="fp32")
    if grammar:
        report = find_in_grammar(translator, grammar)
    else:
        report = find_in_sentence(
            translator, read_argument(sentence), read_argument(query), answers, top
        )
    if out is not None:
        report.draw(out)
    if as_json:
        echo_json(report.as_json)
        return
    for note in report.notes:
        warn(f"{note}.")
    echo_table(report.sheet.rows)
    typer.echo(report.sheet.caption)
    if out is not None:
        typer.echo(str(out))


def echo_table(rows: Sequence[Sequence[str]]) -> None:
    """Print a table with aligned columns."""
    from heedful.experiments.page import align_columns

    for line in align_columns(rows, str.ljust):
        echo(line)
