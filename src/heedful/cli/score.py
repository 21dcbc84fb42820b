"""`heedful score`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import (
    AlignBy,
    Alignments,
    Device,
    Format,
    FromLanguage,
    Precision,
    Reading,
    RunPath,
    Threads,
    ToLanguage,
    Weights,
    choose_languages,
    refuse,
    warn,
)
from heedful.cli.terminal_text import write_utf8


def score(
    run: RunPath,
    source: Annotated[list[str], typer.Option(metavar="FILE", help="Source text.")],
    target: Annotated[
        list[str],
        typer.Option(metavar="FILE", help="Target text, aligned with the source line by line."),
    ],
    weights: Weights = "default",
    normalize: Annotated[
        bool,
        typer.Option(
            "--normalize",
            help="With --format text: divide each log-probability by the number of tokens, "
            "including the end symbol.",
        ),
    ] = False,
    ranks: Annotated[
        bool,
        typer.Option(
            "--ranks",
            help="With --format jsonl: write the rank of each token; 1 is the most probable.",
        ),
    ] = False,
    alignments: Alignments = False,
    align_by: AlignBy = "",
    gold: Annotated[
        Path | None,
        typer.Option(
            help="File of gold alignments, such as 0-0 1p2, where p marks a possible link; only "
            "the error rate, precision and recall of each layer are printed."
        ),
    ] = None,
    from_language: FromLanguage = "",
    to_language: ToLanguage = "",
    reading: Reading = None,
    format: Format = "text",
    device: Device = "auto",
    precision: Precision = "auto",
    threads: Threads = 0,
) -> None:
    """
    Print the log-probability of each translation.

    Logarithms are natural, and the end symbol is included. --alignments adds a tab and the word
    alignment, such as 0-0 1-2. --format jsonl adds the log-probability of every token. With --gold,
    only the alignment error rate, precision and recall of each decoder layer are printed, with the
    best first. Each layer is measured with and without the shift of --align-by. Each line begins
    with the --align-by settings that it measures.
    """
    if ranks and format != "jsonl":
        refuse("--ranks", "needs --format jsonl.")
    if normalize and format != "text":
        refuse("--normalize", "needs --format text.")
    if align_by and not alignments:
        refuse("--align-by", "needs --alignments.")
    per_pair = {"--normalize": normalize, "--ranks": ranks, "--alignments": alignments}
    if gold is not None and (options := [name for name, is_set in per_pair.items() if is_set]):
        refuse(options[0], "has no effect with --gold; leave one of the two out.")

    from heedful.text.corpus import Corpus, expand, one_file
    from heedful.translation.score import format_pair, gold_lines
    from heedful.translation.score import score as score_pairs
    from heedful.translation.translator import Translator

    translator = Translator.load(
        run,
        weights=weights,
        device=device,
        precision=precision,
        threads=threads,
        reading=reading,
    )
    translator, _ = choose_languages(translator, from_language, to_language)
    if gold is None:
        pairs = score_pairs(
            translator,
            source,
            target,
            ranks=ranks,
            alignments=alignments,
            align_by=align_by,
            warn=warn,
        )
        lines: Iterator[str] = (format_pair(*row, format, normalize) for row in enumerate(pairs))
    else:
        corpus = Corpus(tuple(expand(source)), tuple(expand(target)))
        lines = gold_lines(translator, corpus, one_file(gold), format)
    write_utf8()
    for line in lines:
        typer.echo(line)
