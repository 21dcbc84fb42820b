"""
The ASGI application: routes and middleware.

::

    LibreTranslate  /translate /translate_file /download_file/… /suggest /detect /languages
                    /frontend/settings /health /metrics /spec
    heedful         /v1/models /v1/translate /v1/stream /v1/attend
    pages           /  /page/…  /docs

This module does not import torch: a server that serves exported models runs without it.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from heedful.serve.limits import HttpError
from heedful.serve.middleware import FAILED, GONE, App, LimitsMiddleware
from heedful.serve.request_body import error_response
from heedful.serve.routes_libretranslate import libre_routes
from heedful.serve.routes_v1 import own_routes
from heedful.serve.service import Service
from heedful.serve.static_files import add_pages

_HTTP_MESSAGES = {
    404: "there is no such endpoint; /docs lists the endpoints.",
    405: "this endpoint does not accept the method of the request; /docs lists its methods.",
}


def make_app(service: Service) -> App:
    """Create the application with all routes."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
        """Start the worker and pass the limits to connections; at the end, stop the worker."""
        del app
        service.worker.start()
        yield {"limits": service.limits, "metrics": service.metrics}
        service.worker.stop()

    app = FastAPI(
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
        exception_handlers={
            HttpError: _answer,
            ClientDisconnect: _answer,
            HTTPException: _convert,
            Exception: _answer,
        },
    )
    app.include_router(libre_routes(service))
    app.include_router(own_routes(service))
    add_pages(app, service.limits)
    return LimitsMiddleware(
        app, service.limits, service.state, service.metrics, service.hosts, service.cors
    )


async def _answer(request: Request, error: Exception) -> Response:
    """Return the error response to a request; the middleware logs unexpected errors."""
    del request
    if isinstance(error, HttpError):
        return error_response(error)
    return error_response(GONE if isinstance(error, ClientDisconnect) else FAILED)


async def _convert(request: Request, error: Exception) -> Response:
    """Convert an error from the framework to our format."""
    del request
    assert isinstance(error, HTTPException)
    reason = f"{error.detail[:1].lower()}{error.detail[1:]}".rstrip(".")
    text = _HTTP_MESSAGES.get(error.status_code, f"the request cannot be read: {reason}.")
    answer = error_response(HttpError(error.status_code, text))
    for name, value in (error.headers or {}).items():
        answer.headers[name] = value
    return answer
