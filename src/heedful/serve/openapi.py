"""OpenAPI descriptions of the routes, for ``/spec`` and ``/docs``."""

from collections.abc import Iterable
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from heedful._version import __version__
from heedful.serve.limits import Limits
from heedful.serve.request_schemas import (
    FORMS,
    MULTIPART,
    AttentionRequest,
    DetectRequest,
    RequestBody,
    StreamV1Request,
    TranslateFileRequest,
    TranslateRequest,
    TranslateV1Request,
)
from heedful.serve.response_schemas import ErrorResponse

_WRONG = {
    400: "The request is invalid.",
    403: "The key is missing or not valid.",
    404: "There is no such model, or no such file.",
    408: "The request did not arrive in time.",
    413: "The body is too large.",
    415: "The type of the body is not accepted.",
    421: "The request was sent to a host name that is not allowed.",
    429: "Too many sentences are waiting, or too many requests or wrong keys were sent; see "
    "Retry-After.",
    500: "The server failed.",
    503: "The server is stopping, too many connections are open, a model cannot be loaded, or "
    "the answer took too long.",
}
_REFERENCE = "#/components/schemas/{model}"


def describe_route(
    response: Any,
    request: type[RequestBody] | None = None,
    *,
    stream: bool = False,
    wrong: Iterable[int] = (403, 421, 500, 503),
) -> dict[str, Any]:
    """
    Describe a route for OpenAPI.

    `response`: the class of the response body; None for text.

    `heedful.serve.request_body` reads bodies, as forms or JSON; FastAPI only documents them.
    """
    kind = "application/x-ndjson" if stream else "application/json" if response else "text/plain"
    right: dict[str, Any] = {"description": "The answer.", "model": response}
    if stream or response is None:
        right = {"description": "The answer.", "content": {kind: {"schema": {"type": "string"}}}}
    answers = {200: right}
    for code in _WRONG if request else wrong:
        answers[code] = {"description": _WRONG[code], "model": ErrorResponse}
    description: dict[str, Any] = {"response_model": None, "responses": answers}
    if request is not None:
        content: dict[str, Any] = {
            kind: {"schema": {"$ref": _reference(request, kind)}} for kind in request.types
        }
        if request is TranslateFileRequest:
            content[MULTIPART]["encoding"] = {"file": {"contentType": "text/plain, text/html"}}
        body = {"required": True, "content": content}
        description["openapi_extra"] = {"requestBody": body}
    return description


def _reference(request: type[RequestBody], kind: str) -> str:
    """Return the reference to the schema of a body; forms have their own schemas, without null."""
    return _REFERENCE.format(model=request.__name__ + "Form" * (kind in FORMS))


def _form(schema: dict[str, Any]) -> dict[str, Any]:
    """Describe a body as a form; no field of a form can be null."""
    properties = {}
    for name, field in schema["properties"].items():
        kinds = [kind for kind in field.get("anyOf", ()) if kind != {"type": "null"}]
        form_field = {key: value for key, value in field.items() if key not in ("anyOf", "default")}
        if field.get("default") is not None:
            form_field["default"] = field["default"]
        properties[name] = {
            **form_field,
            **(kinds[0] if len(kinds) == 1 else {"anyOf": kinds} if kinds else {}),
        }
    return {**schema, "title": f"{schema['title']}Form", "properties": properties}


def _narrow(schema: dict[str, Any], limits: Limits) -> None:
    """Insert the operator's limits into the schema."""
    most = {
        "alternatives": limits.max_alternatives,
        "beam": limits.max_beam,
        "n_best": limits.max_alternatives + 1,
    }
    for name, number in most.items():
        for kind in schema["properties"].get(name, {}).get("anyOf", ()):
            if kind["type"] == "integer":
                kind["maximum"] = number


def document(app: FastAPI, limits: Limits) -> dict[str, Any]:
    """Build the OpenAPI document, and add the schemas of bodies, which FastAPI does not know."""
    if app.openapi_schema is None:
        specification = get_openapi(
            title="heedful",
            version=__version__,
            description="Translation API with LibreTranslate's routes, and additional routes under "
            "/v1.",
            routes=app.routes,
            license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        )
        schemas = specification.setdefault("components", {}).setdefault("schemas", {})
        for kind in (
            TranslateRequest,
            DetectRequest,
            TranslateFileRequest,
            TranslateV1Request,
            StreamV1Request,
            AttentionRequest,
        ):
            schema = kind.model_json_schema(ref_template=_REFERENCE)
            _narrow(schema, limits)
            schemas[f"{kind.__name__}Form"] = _form(schema)
            if kind is not TranslateFileRequest:
                schemas[kind.__name__] = schema
        app.openapi_schema = specification
    return app.openapi_schema
