"""`heedful hub`."""

import json
from typing import Annotated

import typer

from heedful.cli.export import Datasets, LicenseName, Scores
from heedful.cli.options import (
    AcceptDifferences,
    Json,
    RunPath,
    Weights,
    command_group,
    refuse,
    warn,
)
from heedful.cli.plugin_option import with_plugins
from heedful.cli.terminal_text import echo
from heedful.runs.hub_names import HubName

app = command_group("hub", "Manage models converted from Hugging Face; upload your own.")

Name = Annotated[
    str, typer.Argument(metavar="ORG/NAME", help="Name on the hub; @REVISION may follow.")
]


@app.command("list")
def list_models(
    as_json: Json = False,
) -> None:
    """
    List the converted models.

    Prints the name, commit, license and size of each model, and the revisions, such as main, that
    refer to this commit.
    """
    from heedful.exchange.hub.cache import cached_models
    from heedful.exchange.hub.upload_folder import remove_abandoned

    remove_abandoned()
    models = cached_models()
    if as_json:
        shown = [
            {**model.record, "pinned": model.pinned, "bytes": model.bytes, "run": str(model.run)}
            for model in models
        ]
        typer.echo(json.dumps(shown, indent=2))
        return
    for model in models:
        pins = f" ({', '.join(model.pinned)})" if model.pinned else ""
        size = f"{model.bytes / 1e6:,.1f} MB"
        license = model.record.get("license", "not stated")
        echo(f"{model.name.repo}@{model.name.revision[:12]}{pins}  {size}  license: {license}")


@app.command()
def update(name: Name) -> None:
    """
    Convert the newest commit of a model.

    Afterwards, the name refers to this commit.
    """
    from heedful.exchange.hub.fetch import update_run

    parsed = _parse(name)
    before, now = update_run(parsed)
    earlier = f"which replaces {before[:12]}" if before else "the first one on this machine"
    echo(f"{parsed}: commit {now[:12]}, {'unchanged' if before == now else earlier}.")


@app.command()
def remove(name: Name) -> None:
    """
    Delete converted models.

    Deletes all commits of the model, or only the commit named by @REVISION.
    """
    from heedful.exchange.hub.cache import ModelCache, find_cached

    parsed = _parse(name)
    for model in find_cached(parsed, "@" in name):
        size = model.bytes
        ModelCache(parsed.repo).remove(model.name.revision)
        echo(f"{model.name.repo}@{model.name.revision[:12]}: deleted, {size / 1e6:,.1f} MB.")
    echo("The downloaded files are in the cache of huggingface_hub; `hf cache rm` deletes them.")


def push(
    run: RunPath,
    name: Annotated[str, typer.Argument(metavar="ORG/NAME", help="Name on the hub.")],
    private: Annotated[
        bool, typer.Option("--private", help="Make the repository private if it is new.")
    ] = False,
    revision: Annotated[
        str | None,
        typer.Option(
            help="Branch to upload to, by default main; it is created if it does not exist."
        ),
    ] = None,
    message: Annotated[str, typer.Option(help="Message of the commit.")] = "",
    weights: Weights = "default",
    license_name: LicenseName = "",
    datasets: Datasets = None,
    scores: Scores = None,
    accept_differences: AcceptDifferences = False,
) -> None:
    """
    Export a run to transformers, and upload it.

    The exported model has a model card, and is compared with the run before the upload.
    """
    from heedful.exchange.card.model_card import CardFacts
    from heedful.exchange.hub.push import push_run

    if revision is not None and "@" in name:
        refuse("--revision", f"names a branch, but {name} names one too; leave one of them out.")
    parsed = _parse(name if revision is None else f"{name}@{revision}")
    page, parity, notes = push_run(
        run,
        parsed,
        weights=weights,
        private=private,
        message=message,
        facts=CardFacts(license_name, tuple(datasets or ()), tuple(scores or ())),
        accept_differences=accept_differences,
    )
    for note in notes:
        warn(note)
    echo(f"{page}: {parity}.")


app.command()(with_plugins(push))


def _parse(text: str) -> HubName:
    """Parse a name on the hub; exit with code 2 if the text is not a name."""
    name = HubName.parse(text)
    if name is None:
        refuse("ORG/NAME", f"must be a name such as Helsinki-NLP/opus-mt-en-de, but is {text!r}.")
    return name
