"""`heedful data list` and `heedful data get`."""

import shutil
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.terminal_text import echo

if TYPE_CHECKING:
    from rich.progress import Progress

    from heedful.data.datasets.spec import KnownCorpus


def list_corpora() -> None:
    """
    List the known corpora, with sizes and licenses.

    Any other corpus of OPUS (https://opus.nlpl.eu) has the name opus:CORPUS/VERSION/SOURCE-TARGET,
    for instance opus:TED2020/v1/de-en.
    """
    from heedful.data.datasets.registry import CORPORA
    from heedful.data.generated.registry import GENERATED

    width = min(shutil.get_terminal_size().columns, 100)
    for text in GENERATED.values():
        head = f"{text.name:<23} {' '.join(text.languages):<12}"
        typer.echo(f"{head} {text.sizes[0]:,} pairs, no download")
        typer.echo(textwrap.fill(text.about, width, initial_indent=" " * 4))
    for corpus in CORPORA.values():
        pairs = f"{corpus.pairs:,} pairs" if corpus.pairs else "pairs not known"
        typer.echo(f"{corpus.name:<23} {' '.join(corpus.languages):<12} {pairs}, {_size(corpus)}")
        for line in (corpus.about, f"license: {corpus.license}"):
            typer.echo(textwrap.fill(line, width, initial_indent="    ", subsequent_indent="    "))
    note = (
        "The numbers of pairs include only training pairs; for downloaded text, they are "
        "approximate. The addresses come from published scripts and were not tested for this "
        "list; if an address fails, use --mirror of `heedful data get`."
    )
    typer.echo(f"\n{textwrap.fill(note, width)}")


def get(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A name from `heedful data list`, or opus:CORPUS/VERSION/SOURCE-TARGET; "
            "generated corpora need no download.",
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="Output folder; by default data/NAME.")] = None,
    mirror: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PLACE",
            help="A folder or URL with the files, tried before the known addresses; "
            "may be repeated.",
        ),
    ] = None,
) -> None:
    """
    Fetch or generate a corpus as line-aligned text.

    Files that are already in the folder are used, and an interrupted download is continued. The
    SHA-256 checksum of each downloaded file is compared with the known or recorded value, if any,
    and written to SHA256SUMS next to the files. Proxies are set by the usual environment variables,
    such as HTTPS_PROXY.
    """
    from heedful.data.generated.registry import GENERATED

    if name in GENERATED:
        generated, folder = GENERATED[name], out or Path("data", name)
        generated.write(folder)
        for count, path in generated.sides(folder):
            echo(f"{count:>12,} lines  {path}")
        typer.echo(f"\n{generated.train_command(folder)}")
        return

    from heedful.data.datasets.fetch_corpus import get_corpus, train_command
    from heedful.data.datasets.registry import find_corpus

    corpus = find_corpus(name)
    folder = out or Path("data", corpus.name)
    teller = _DownloadProgress()
    try:
        lines = get_corpus(corpus, folder, mirrors=mirror or [], say=teller.say, watch=teller.watch)
    finally:
        teller.stop()
    for text in corpus.texts:
        echo(f"{lines[text.name]:>12,} lines  {folder / text.name}")
    echo(f"\n{train_command(corpus, folder)}")


def _size(corpus: "KnownCorpus") -> str:
    """Format the size of the download, as far as it is known."""
    known = [download.size for download in corpus.downloads if download.size is not None]
    if not known:
        return "size not known"
    more = "more than " if len(known) < len(corpus.downloads) else ""
    return f"{more}{sum(known) / 1e6:,.1f} MB"


class _DownloadProgress:
    """Prints lines, and on a terminal a progress bar below them."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True)
        self._bar: Progress | None = None

    def say(self, line: str) -> None:
        """Remove the bar and print."""
        self.stop()
        echo(line)

    def watch(self, name: str, done: int, total: int | None) -> None:
        """Update the bar."""
        if not self._console.is_terminal:
            return
        if self._bar is None:
            from rich.progress import BarColumn, DownloadColumn, Progress, TransferSpeedColumn

            columns = (
                "{task.description}",
                BarColumn(bar_width=20),
                DownloadColumn(),
                TransferSpeedColumn(),
            )
            self._bar = Progress(*columns, console=self._console, transient=True)
            self._bar.add_task(name, total=total)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=done)

    def stop(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
