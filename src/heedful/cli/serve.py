"""`heedful serve`."""

import logging
import os
import re
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.cli.options import (
    Device,
    Engine,
    Reading,
    SearchPrecision,
    Threads,
    Weights,
    refuse,
    warn,
    with_flags,
)
from heedful.search.settings import SearchOptions
from heedful.serve.limits import Limits

_PREFIX = "HEEDFUL_SERVE_"
_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/\s]+")


@with_flags("limits", Limits, per_minute=...)
def serve(
    context: typer.Context,
    run: Annotated[
        list[str],
        typer.Argument(
            envvar="HEEDFUL_SERVE_RUN",
            metavar="[SOURCE:TARGET=]RUN[+RUN…]",
            help="Run folders. Put the languages before a folder if its settings do not name "
            "them; join the runs of an ensemble with +.",
        ),
    ],
    limits: dict[str, Any],
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 for all addresses.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for a free one.")
    ] = 5000,
    engine: Engine = "torch",
    weights: Weights = "default",
    device: Device = "auto",
    precision: SearchPrecision = "auto",
    threads: Threads = 0,
    beam: Annotated[
        int | None,
        typer.Option(
            min=1, help="Beam size for requests that do not set it; by default the run's."
        ),
    ] = None,
    batch_tokens: Annotated[
        int,
        typer.Option(min=1, help="Maximum number of source tokens in a batch, padding included."),
    ] = 2048,
    gather: Annotated[
        float,
        typer.Option(
            min=0,
            help="Milliseconds to wait for more sentences before a batch is translated; the "
            "wait can be longer after slow batches.",
        ),
    ] = 5.0,
    per_minute: Annotated[
        int,
        typer.Option(
            min=0,
            help="Maximum number of translation or detection requests per minute from each "
            "address or key; 0 for no limit.",
        ),
    ] = 0,
    wrong_keys: Annotated[
        int,
        typer.Option(
            min=0, help="Maximum number of wrong keys per minute from each address; 0 for no limit."
        ),
    ] = 10,
    trusted_proxies: Annotated[
        str,
        typer.Option(
            metavar="ADDRESSES",
            help="Proxies whose X-Forwarded-For is trusted: addresses or "
            "networks, separated by commas.",
        ),
    ] = "",
    api_keys: Annotated[
        Path | None,
        typer.Option(
            help="File with one API key per line; requests for translation, detection or "
            "metrics need a key."
        ),
    ] = None,
    cors: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN",
            help="Origin whose pages may send requests; may be repeated; * (the default) allows "
            "every origin, and the word none allows no origin.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Host name that clients use for the server, for example behind a proxy; may be "
            "repeated; * for any. By default localhost, or any name if --host can be reached "
            "from other machines.",
        ),
    ] = None,
    unload_after: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Unload a model that has not been used for this long, such as 10m; the next "
            "request loads it again. By default all models stay in memory.",
        ),
    ] = "",
    reading: Reading = None,
    glossary: Annotated[
        Path | None,
        typer.Option(
            help="File with a term, a tab and its translation on each line, for all requests. A "
            "request's own entries take precedence."
        ),
    ] = None,
    protected: Annotated[
        Path | None,
        typer.Option(help="File with strings that stay unchanged in all requests, one per line."),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Log only warnings and errors, not each request.")
    ] = False,
) -> None:
    """
    Start a server with LibreTranslate's routes and a web page.

    More routes are under /v1. The address is printed when the server is ready. Sentences of
    different requests are translated together in batches.

    SIGHUP reloads the runs, keys and terms while the server continues to translate. After SIGTERM,
    the server completes requests in progress. It refuses new requests, unless it received its
    sockets from systemd. The log on standard error never contains the text of a request.

    Each option can also be set by an environment variable, such as HEEDFUL_SERVE_PORT. Sockets that
    systemd passes are used instead of --host and --port.
    """
    if engine == "ctranslate2" and weights != "default":
        refuse(
            "--weights",
            "applies to runs, but an exported folder has only one set of weights; leave the option "
            "out.",
        )
    _need_extra()
    _check_variables(context)
    for origin in cors or ():
        if origin not in ("*", "none", "null") and not _ORIGIN.fullmatch(origin):
            refuse(
                "--cors",
                "must be an origin such as https://example.org, without a path, or * or none, but "
                f"is {origin!r}.",
            )

    from heedful.serve.allowed_hosts import AllowedHosts
    from heedful.serve.auth import Auth, read_proxies
    from heedful.serve.models import ModelLoader, Models, ModelSpec
    from heedful.serve.served_terms import ServedTerms
    from heedful.serve.server import listen
    from heedful.serve.server import serve as run_server
    from heedful.serve.service import Service
    from heedful.serve.systemd import passed_sockets
    from heedful.settings.durations import parse_duration

    limits["max_beam"] = max(limits["max_beam"], beam or 1)
    SearchOptions(beam=limits["max_beam"])  # refuses a beam size that no search accepts
    auth = Auth(api_keys, per_minute, wrong_keys)
    terms = ServedTerms(glossary, protected, warn)
    proxies = read_proxies(trusted_proxies)
    loader = ModelLoader(engine, weights, device, precision, threads, beam, reading)
    models = Models([ModelSpec.parse(text) for text in run], loader)
    unload_seconds = parse_duration(unload_after, "--unload-after") if unload_after else None
    passed = passed_sockets()
    listeners = passed or [listen(host, port)]
    hosts = AllowedHosts(allow_host or (), listeners[0].getsockname()[0])
    models.load()
    _log_to_stderr(logging.WARNING if quiet else logging.INFO)
    for model in models.current:
        for direction in model.directions:
            typer.echo(f"{model.name}: {direction.source} to {direction.target}, {engine}")
    service = Service(
        models,
        auth,
        Limits(**limits),
        cors=() if cors == ["none"] else tuple(cors or ["*"]),
        hosts=hosts,
        terms=terms,
        batch_tokens=batch_tokens,
        gather_seconds=gather / 1000,
    )
    run_server(
        service,
        listeners,
        proxies,
        _print_addresses,
        is_passed=bool(passed),
        unload_seconds=unload_seconds,
    )


def _check_variables(context: typer.Context) -> None:
    """Warn about environment variables that no option reads; refuse an empty list of keys."""
    known = {f"{_PREFIX}{parameter.name.upper()}" for parameter in context.command.params}
    for name in sorted({name for name in os.environ if name.startswith(_PREFIX)} - known):
        near = get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]}?" if near else "."
        warn(f"the environment variable {name} has no effect, because no option reads it{hint}")
    if os.environ.get(f"{_PREFIX}API_KEYS") == "":
        refuse(
            f"{_PREFIX}API_KEYS",
            "must name a file with keys, but is empty; unset the variable to serve without keys.",
        )


def _print_addresses(addresses: Sequence[str]) -> None:
    """Print the addresses and flush."""
    for address in addresses:
        typer.echo(address)
    sys.stdout.flush()


def _need_extra() -> None:
    """Refuse to start without the packages of the extra “serve”."""
    from importlib.util import find_spec

    from heedful.errors import MissingExtra

    needed = (
        "fastapi",
        "fastapi_offline",
        "uvicorn",
        "prometheus_client",
        "python_multipart",
        "py3langid",
    )
    if missing := [name for name in needed if find_spec(name) is None]:
        raise MissingExtra(
            f"a server needs packages that are not installed ({', '.join(missing)}); install them "
            "with: pip install 'heedful[serve]'"
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
    # its messages quote bytes of bodies, and clients get them in the answer
    logging.getLogger("python_multipart").propagate = False
