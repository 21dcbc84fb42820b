"""
The routes of the server.

::

    LibreTranslate  /translate /detect /languages /frontend/settings /health /metrics /spec
    our own         /v1/models /v1/translate /v1/stream /v1/attend
    pages           /  /page/…  /docs

No torch here: a server of exported models runs where it is not installed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import FastAPI

from heedful.serve.limits import Limits


@dataclass(frozen=True)
class Settings:
    """
    Say how a server behaves.

    Attributes
    ----------
    limits : Limits
        What it accepts.
    keys : frozenset of str, optional
        One of them must come with each request; none for everybody.
    cors : sequence of str, default ()
        Origins whose pages may ask; ``*`` for all.

    Notes
    -----
    Made from the options of `heedful serve`.
    """

    limits: Limits = Limits()
    keys: frozenset[str] = frozenset()
    cors: Sequence[str] = ()


def make_app(models: object, worker: object, settings: Settings) -> FastAPI:
    """
    Put the routes together.

    Parameters
    ----------
    models : Models
        What translates.
    worker : Worker
        Where it does.
    settings : Settings
        How the server behaves.

    Returns
    -------
    FastAPI
        To be run by `heedful.serve.server`.

    Notes
    -----
    Routes are in `heedful.serve.libre` and `heedful.serve.own`.
    """
    raise NotImplementedError
