"""`heedful serve`."""

import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import (
    SEARCH_PRECISIONS,
    Device,
    SearchPrecision,
    Threads,
    Weights,
    check_choice,
)


def serve(
    run: Annotated[
        list[str],
        typer.Argument(
            metavar="[SOURCE:TARGET=]RUN",
            help="Run folders; languages before a folder whose settings do not name them.",
        ),
    ],
    host: Annotated[str, typer.Option(help="Address to listen at; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen at; 0 for a free one.")
    ] = 5000,
    engine: Annotated[
        str,
        typer.Option(
            help="torch, or ctranslate2 for folders of `heedful export --format ctranslate2`."
        ),
    ] = "torch",
    weights: Weights = "default",
    device: Device = "auto",
    precision: SearchPrecision = "auto",
    threads: Threads = 0,
    beam: Annotated[
        int | None, typer.Option(min=1, help="Open hypotheses where a client names no number.")
    ] = None,
    batch_tokens: Annotated[
        int, typer.Option(min=1, help="Source tokens of a batch, padding included.")
    ] = 2048,
    gather: Annotated[
        float, typer.Option(min=0, help="Milliseconds that a sentence waits for company.")
    ] = 5.0,
    max_characters: Annotated[int, typer.Option(min=1, help="Of all texts of a request.")] = 20_000,
    max_lines: Annotated[int, typer.Option(min=1, help="Texts of a request.")] = 512,
    max_alternatives: Annotated[
        int, typer.Option(min=0, help="Translations of a sentence beside the best.")
    ] = 10,
    max_beam: Annotated[
        int, typer.Option(min=1, help="Open hypotheses a client may ask for.")
    ] = 16,
    max_seconds: Annotated[
        float, typer.Option(min=0.1, help="From the end of a request to its answer.")
    ] = 60.0,
    max_body: Annotated[int, typer.Option(min=100, help="Bytes of a request's body.")] = 1 << 20,
    max_connections: Annotated[int, typer.Option(min=1, help="Connections at once.")] = 1000,
    max_queue: Annotated[
        int, typer.Option(min=1, help="Sentences that wait; more are answered with 429.")
    ] = 2000,
    per_minute: Annotated[
        int, typer.Option(min=0, help="Requests of an address or a key; 0 for any number.")
    ] = 0,
    wrong_keys: Annotated[
        int, typer.Option(min=0, help="Wrong keys of an address in a minute; 0 for any number.")
    ] = 10,
    trusted_proxies: Annotated[
        str,
        typer.Option(
            metavar="ADDRESSES",
            help="Proxies whose X-Forwarded-For is believed: addresses or networks, with commas.",
        ),
    ] = "",
    read_seconds: Annotated[
        float, typer.Option(min=0.1, help="For a request to arrive, and an answer to be taken.")
    ] = 20.0,
    idle_seconds: Annotated[
        float, typer.Option(min=1, help="That a connection may be open between two requests.")
    ] = 30.0,
    stop_seconds: Annotated[
        float, typer.Option(min=0, help="For what has begun to be finished at a stop.")
    ] = 30.0,
    api_keys: Annotated[
        Path | None, typer.Option(help="File with a key a line; requests must bring one of them.")
    ] = None,
    cors: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN", help="Origin whose pages may ask; may be repeated; * (all) or none."
        ),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Log only what goes wrong, not each request.")
    ] = False,
) -> None:
    """
    Serve runs over HTTP: LibreTranslate's routes and a web page.

    More routes are under /v1. The address is printed when clients may come. Requests are gathered
    into batches. SIGHUP opens the runs anew while the old ones go on; SIGTERM refuses new requests
    and finishes those that have begun. The log, on standard error, has no texts.
    """
    check_choice("--engine", engine, ("torch", "ctranslate2"))
    check_choice("--precision", precision, SEARCH_PRECISIONS)
    if engine == "ctranslate2" and weights != "default":
        raise typer.BadParameter(
            "is of runs; an exported folder has one set.", param_hint="--weights"
        )
    _need_extra()

    from heedful.serve.auth import Auth, read_proxies
    from heedful.serve.limits import Limits
    from heedful.serve.models import ModelLoader, Models, ModelSpec
    from heedful.serve.server import listen
    from heedful.serve.server import serve as run_server

    limits = Limits(
        characters=max_characters,
        lines=max_lines,
        alternatives=max_alternatives,
        beam=max(max_beam, beam or 1),
        seconds=max_seconds,
        read_seconds=read_seconds,
        idle_seconds=idle_seconds,
        stop_seconds=stop_seconds,
        body_bytes=max_body,
        connections=max_connections,
        queue=max_queue,
        per_minute=per_minute,
    )
    auth = Auth(api_keys, per_minute, wrong_keys)
    proxies = read_proxies(trusted_proxies)
    loader = ModelLoader(engine, weights, device, precision, threads, beam)
    models = Models([ModelSpec.parse(text) for text in run], loader)
    place = listen(host, port)
    models.load()
    _log_to_stderr(logging.WARNING if quiet else logging.INFO)
    for model in models.current:
        for direction in model.directions:
            typer.echo(f"{model.name}: {direction.source} to {direction.target}, {engine}")
    run_server(
        models,
        place=place,
        limits=limits,
        auth=auth,
        cors=() if cors == ["none"] else tuple(cors or ["*"]),
        proxies=proxies,
        batch_tokens=batch_tokens,
        gather_seconds=gather / 1000,
        say=_say,
    )


def _say(address: str) -> None:
    """Print the address and flush."""
    typer.echo(address)
    sys.stdout.flush()


def _need_extra() -> None:
    """Refuse to start without the packages of the extra."""
    from importlib.util import find_spec

    from heedful.errors import MissingExtra

    needed = (
        "fastapi",
        "uvicorn",
        "prometheus_client",
        "python_multipart",
        "py3langid",
        "sentencex",
    )
    if missing := [name for name in needed if find_spec(name) is None]:
        raise MissingExtra(
            f"a server needs {', '.join(missing)}, not installed here; install it with: "
            "pip install 'heedful[serve]'"
        )


def _log_to_stderr(level: int) -> None:
    """Write the server's log and uvicorn's errors to standard error, one line each."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    for name, least in (("heedful.serve", level), ("uvicorn.error", logging.ERROR)):
        logger = logging.getLogger(name)
        logger.setLevel(least)
        logger.addHandler(handler)
        logger.propagate = False
