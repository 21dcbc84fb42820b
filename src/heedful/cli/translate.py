"""`heedful translate`."""

import os
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import (
    AlignBy,
    Alignments,
    Device,
    Format,
    Precision,
    Threads,
    Weights,
    check_choice,
    warn,
)


def translate(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    input: Annotated[Path | None, typer.Option(help="Text to translate, else stdin.")] = None,
    output: Annotated[Path | None, typer.Option(help="Where to write, else stdout.")] = None,
    weights: Weights = "default",
    beam: Annotated[
        int | None, typer.Option(min=1, help="Open hypotheses a sentence; 1 is greedy search.")
    ] = None,
    length_penalty: Annotated[
        str | None, typer.Option(help="gnmt:ALPHA, power:ALPHA or none.")
    ] = None,
    max_length: Annotated[
        str | None, typer.Option(help="input+N or N tokens, the end symbol not counted.")
    ] = None,
    n_best: Annotated[int, typer.Option(min=1, help="Translations of each line.")] = 1,
    scores: Annotated[
        bool, typer.Option("--scores", help="Put the score before the text.")
    ] = False,
    alignments: Alignments = False,
    align_by: AlignBy = "",
    replace_unknown: Annotated[
        bool,
        typer.Option(
            "--replace-unknown", help="Write the source word where a word comes out as unknown."
        ),
    ] = False,
    dictionary: Annotated[
        Path | None,
        typer.Option(help="Write its translation instead: lines of a word, a tab, a translation."),
    ] = None,
    format: Format = "text",
    device: Device = "auto",
    precision: Precision = "auto",
    threads: Threads = 0,
) -> None:
    """
    Translate lines from stdin or a file, in order.

    An empty line stays empty. Output appears whenever input pauses, so it can be used in a pipe or
    by hand. With --n-best, lines are written as: number ||| text ||| score. With --alignments the
    links of words follow as one more field, behind a tab.
    """
    check_choice("--format", format, ("text", "jsonl"))
    check_choice("--precision", precision, ("auto", "fp32", "bf16"))
    if align_by and not (alignments or replace_unknown or dictionary):
        raise typer.BadParameter(
            "needs --alignments, --replace-unknown or --dictionary.", param_hint="--align-by"
        )

    from heedful.data.corpus import one_file, read_lines
    from heedful.data.lines import decode_lines
    from heedful.search.length import LengthLimit, LengthPenalty
    from heedful.search.unknown import read_dictionary
    from heedful.workflow.translate import Layout, translate_lines
    from heedful.workflow.translator import Translator

    LengthPenalty.parse(length_penalty or "none")
    LengthLimit.parse(max_length or "input+50")
    known = read_dictionary(dictionary) if dictionary is not None else replace_unknown
    lines = decode_lines(_standard_input(), "stdin")
    if input is not None:
        text = one_file(input)
        if output is not None and output.exists() and output.samefile(text.path):
            raise typer.BadParameter("must be another file than --input.", param_hint="--output")
        lines = read_lines(text)
    translator = Translator.load(
        run, weights=weights, device=device, precision=precision, threads=threads
    )
    translator.aligner.extraction(align_by)
    if output is None:
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    place = (
        nullcontext(sys.stdout)
        if output is None
        else output.open("w", encoding="utf-8", newline="\n")
    )
    with place as stream:
        translate_lines(
            translator,
            lines,
            stream,
            Layout(format, n_best, scores, alignments),
            warn,
            beam=beam,
            length_penalty=length_penalty,
            max_length=max_length,
            alignments=alignments,
            align_by=align_by,
            replace_unknown=known,
        )


def _standard_input() -> Iterator[bytes]:
    """
    Read lines from the descriptor itself.

    A thread that waits in `sys.stdin.buffer` holds its lock, and Python aborts if it must end
    while somebody waits there: at Ctrl-C, or when the reader of the output has gone.
    """
    rest = b""
    while part := os.read(0, 1 << 16):
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            yield line + b"\n"
    if rest:
        yield rest
