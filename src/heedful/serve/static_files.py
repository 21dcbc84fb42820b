"""Static files of the web page and of the OpenAPI page, all served locally."""

from collections.abc import Awaitable, Callable
from importlib.resources import files

from fastapi import APIRouter, FastAPI, Request, Response

from heedful.serve.limits import Limits
from heedful.serve.openapi import describe_route, document
from heedful.serve.page import PAGE_HEADERS, PageFile, page_file, page_files
from heedful.serve.request_body import json_response

_SWAGGER = ("swagger-ui-bundle.js", "swagger-ui.css")
_DOCS = b"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>heedful: HTTP API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="routes"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
"""
_START = b"""SwaggerUIBundle({
  url: "spec", dom_id: "#routes", deepLinking: false, validatorUrl: null, queryConfigEnabled: false,
  presets: [SwaggerUIBundle.presets.apis]
});
"""


def add_pages(app: FastAPI, limits: Limits) -> None:
    """Add the routes of the pages."""
    routes = APIRouter(include_in_schema=False)
    for path, file in {**page_files(), **_docs_files()}.items():
        routes.add_api_route(path, _sender(file))
    app.include_router(routes)

    @app.get("/spec", tags=["LibreTranslate"], **describe_route(dict[str, object]))
    async def spec() -> Response:
        """Return the OpenAPI document of all routes."""
        return json_response(document(app, limits))


def _sender(file: PageFile) -> Callable[[Request], Awaitable[Response]]:
    """Create a handler that serves a file."""

    async def send(request: Request) -> Response:
        """Send the file, unless the browser has it."""
        known = request.headers.get("if-none-match", "")
        status = 304 if file.tag in (tag.strip() for tag in known.split(",")) else 200
        content = b"" if status == 304 else file.content
        own = {**PAGE_HEADERS, "ETag": file.tag}
        return Response(content, status, own, media_type=file.media_type)

    return send


def _docs_files() -> dict[str, PageFile]:
    """Read the files of the OpenAPI page; the package fastapi_offline contains Swagger UI."""
    folder = files("fastapi_offline") / "static"
    contents = {"start.js": _START, **{name: (folder / name).read_bytes() for name in _SWAGGER}}
    scripts = {f"/docs/{name}": page_file(name, content) for name, content in contents.items()}
    return {"/docs": page_file("docs.html", _DOCS), **scripts}
