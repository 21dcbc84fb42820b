"""Upload of a run to the hub, after an export to a Hugging Face class and a parity check."""

from pathlib import Path

from heedful._version import __version__
from heedful.errors import ExchangeError
from heedful.exchange.card.edits import signed
from heedful.exchange.card.model_card import CARD, CardFacts
from heedful.exchange.convert import export_model
from heedful.exchange.hub.client import HubClient
from heedful.exchange.hub.upload_folder import upload_folder
from heedful.exchange.parity import Parity
from heedful.exchange.registry import HUGGING_FACE
from heedful.files import read_within, write_synced
from heedful.runs.hub_names import HubName


def push_run(
    run: str | Path,
    name: HubName,
    *,
    weights: str = "default",
    private: bool = False,
    message: str = "",
    facts: CardFacts | None = None,
    accept_differences: bool = False,
) -> tuple[str, Parity, tuple[str, ...]]:
    """
    Upload a run as a folder that transformers loads, with a card.

    `facts`: facts that the run does not record, for the card. A card that was edited on the hub
    stays. Returns the URL of the commit, the result of the comparison, and notes.

    Nothing is uploaded unless transformers computes the same log-probabilities. Raises
    `ParityFailed` if log-probabilities differ, or if too many translations differ and
    `accept_differences` is false. Raises `ExchangeError` if there is no token.
    """
    client = HubClient("uploading to Hugging Face's hub")
    if client.is_offline:
        raise ExchangeError(
            f"uploading {name.repo} needs the hub, but HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is "
            "set; unset the variable."
        )
    client.require_token(name)
    with upload_folder() as place:
        folder = place / name.title
        parity, notes = export_model(
            run, HUGGING_FACE, folder, weights=weights, facts=facts, name=str(name)
        )
        if not accept_differences:
            parity.check_outputs(None)
        card = folder / CARD
        write_synced(card, signed(read_within(card)))
        commit_message = message or f"Upload a model exported by heedful {__version__}"
        page = client.upload(folder, name, private=private, message=commit_message)
    return page, parity, notes
