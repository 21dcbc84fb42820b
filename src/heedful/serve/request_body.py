"""Parsing and validation of request bodies (JSON or forms), and encoding of responses."""

import json
import sys
from collections.abc import Iterable
from contextlib import aclosing
from difflib import get_close_matches
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from fastapi import Request, Response
from pydantic import BaseModel, ValidationError
from python_multipart.multipart import parse_options_header
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser

from heedful.serve.limits import HttpError, Limits
from heedful.serve.request_schemas import FORMS, MULTIPART, RequestBody, UploadedFile
from heedful.serve.response_schemas import ErrorResponse
from heedful.settings.explain import describe_rule

_RULES = {
    "dict_type": "must be an object of strings",
    "model_type": "must be a JSON object",
    "string_pattern_mismatch": "must have characters other than spaces",
}
"""Descriptions of rules that differ from those for settings."""
_Body = TypeVar("_Body", bound=RequestBody)
_JSON = "application/json"
# Unknown field names are cut to this many characters in messages: a client chooses their length.
_MAX_NAME_LENGTH = 40
# Maximum number of wrong fields that a message lists, so that it stays short enough to read.
_MAX_REPORTED = 10
# Maximum number of fields in a body; the largest request here has fewer than twenty.
_MAX_FIELDS = 100
# Maximum number of values in a form, in which `q` may be repeated.
_MAX_FORM_FIELDS = 2000


class _MemoryParser(MultiPartParser):
    """A parser of forms that never writes an uploaded file to disk."""

    spool_max_size = sys.maxsize


async def read_body(request: Request, kind: type[_Body]) -> _Body:
    """
    Read and validate a body.

    Raises `HttpError` if the body cannot be read or has wrong fields, which the message lists. A
    form may repeat ``q``.
    """
    sent = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    sent = _JSON if not sent or sent.endswith("+json") else sent
    if sent not in kind.types:
        raise HttpError(
            415,
            f"this endpoint accepts {' or '.join(kind.types)}, but the body is of another type.",
        )
    is_form = sent in FORMS
    _check_charset(request.headers.get("content-type", ""))
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise HttpError(415, "the body must not be compressed; send it without Content-Encoding.")
    body = await request.body()
    if sent == MULTIPART:
        values = await _form(request, body)
    else:
        values = _url_encoded(body) if is_form else _json(body)
    if isinstance(values, dict) and len(values) > _MAX_FIELDS:
        raise HttpError(
            400, f"a body may have at most {_MAX_FIELDS} fields, but this one has {len(values):,}."
        )
    try:
        return kind.model_validate(values, strict=kind.exact and not is_form)
    except ValidationError as error:
        raise HttpError(400, _wrong(error, kind, values)) from None


def check_texts(texts: list[str], limits: Limits) -> None:
    """Check the amount of text to translate."""
    if len(texts) > limits.max_lines:
        raise HttpError(
            400,
            f"q may have at most {limits.max_lines:,} texts, but it has {len(texts):,}; send "
            "fewer.",
        )
    if (characters := sum(map(len, texts))) > limits.max_characters:
        raise HttpError(
            400,
            f"a request may have at most {limits.max_characters:,} characters, but it has "
            f"{characters:,}; send less in one request.",
        )


def json_response(content: BaseModel | list[Any] | dict[str, Any], status: int = 200) -> Response:
    """Build a JSON response."""
    if isinstance(content, BaseModel):
        text = content.model_dump_json(exclude_none=True)
    else:
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return Response(text, status, media_type="application/json")


def error_response(refused: HttpError) -> Response:
    """Build an error response."""
    answer = json_response(ErrorResponse(error=refused.text), refused.status)
    if refused.retry_after is not None:
        answer.headers["Retry-After"] = str(refused.retry_after)
    if refused.closes:
        answer.headers["Connection"] = "close"
    return answer


def _check_charset(content_type: str) -> None:
    """Refuse charsets other than UTF-8; the form parser would accept any Python codec."""
    charset = parse_options_header(content_type)[1].get(b"charset", b"utf-8")
    if charset.lower() not in (b"utf-8", b"utf8"):
        raise HttpError(
            415, "the body must be in UTF-8, but Content-Type names another charset; send UTF-8."
        )


async def _form(request: Request, body: bytes) -> dict[str, Any]:
    """Read the fields of a multipart form."""
    fields: list[tuple[str, Any]] = []
    place = 0
    async with aclosing(request.stream()) as stream:
        parser = _MemoryParser(
            request.headers,
            stream,
            max_files=1,
            max_fields=_MAX_FORM_FIELDS,
            max_part_size=1 << 24,
        )
        try:
            form = await parser.parse()
        except MultiPartException as error:
            raise HTTPException(400, error.message) from error
    try:
        for name, value in form.multi_items():
            if isinstance(value, UploadFile):
                fields.append((name, UploadedFile(value.filename or "", await value.read())))
                continue
            # The form parser decodes invalid UTF-8 as Latin-1; such a value in UTF-8 is not in the
            # body. Fields have the order of the body, so one pass over the body is enough.
            if not value.isascii() and (place := body.find(value.encode(), place)) < 0:
                raise _not_utf_8()
            fields.append((name, value))
    finally:
        await form.close()
    return _by_name(fields)


def _url_encoded(body: bytes) -> dict[str, Any]:
    """Read the fields of a URL-encoded form, which may contain unescaped UTF-8."""
    try:
        fields = parse_qsl(
            body.decode(),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_MAX_FORM_FIELDS,
        )
    except UnicodeDecodeError:
        raise _not_utf_8() from None
    except ValueError:
        raise HttpError(
            400, f"a form may have at most {_MAX_FORM_FIELDS:,} fields; send fewer."
        ) from None
    return _by_name(fields)


def _not_utf_8() -> HttpError:
    """Build the error for a form in another encoding."""
    return HttpError(
        400,
        "a form must be in UTF-8, plain or percent-encoded (%C3%A9), but this one is not.",
    )


def _by_name(fields: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Group the values of a form by field; a repeated field has a list of values."""
    values: dict[str, list[Any]] = {}
    for name, value in fields:
        values.setdefault(name, []).append(value)
    return {name: several[0] if len(several) == 1 else several for name, several in values.items()}


def _json(body: bytes) -> Any:
    """Parse JSON."""
    try:
        # Decoded here, because json.loads accepts invalid UTF-8 (lone surrogates) in bytes.
        value = json.loads(body.decode("utf-8-sig"))
        # An escape such as \ud83d may be a lone surrogate; encoding it raises an error.
        if b"\\ud" in body or b"\\uD" in body:
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise HttpError(
            400, "the body must be JSON in UTF-8, but it has an unpaired surrogate, as in \\ud83d."
        ) from None
    except (ValueError, RecursionError):
        raise HttpError(
            400, "the body must be a JSON object in UTF-8, but it cannot be parsed."
        ) from None
    return value


def _wrong(error: ValidationError, kind: type[RequestBody], values: Any) -> str:
    """Write a message that names the wrong fields of `values`, but never their values."""
    messages: dict[str, str] = {}
    # A field that may be a text or a list has an error for each; a wrong type comes last.
    problems = error.errors(include_url=False, include_input=False)
    for problem in sorted(problems, key=lambda problem: problem["type"].endswith("_type")):
        field = str(problem["loc"][0]) if problem["loc"] else "the body"
        rule = _RULES.get(problem["type"]) or describe_rule(problem)
        message = rule[:1].lower() + rule[1:]
        if problem["type"] == "string_type" and isinstance(values.get(field), list):
            message = "must be one text"
        if problem["type"] == "extra_forbidden":
            message = _unknown(field, kind)
            field = field if len(field) <= _MAX_NAME_LENGTH else f"{field[:_MAX_NAME_LENGTH]}…"
        messages.setdefault(field, message)
        if len(messages) == _MAX_REPORTED:
            break
    return "; ".join(f"{field}: {message}" for field, message in messages.items()) + "."


def _unknown(field: str, kind: type[RequestBody]) -> str:
    """Report an unknown field and suggest a similar one."""
    known = [*kind.model_fields]
    near = get_close_matches(field[:_MAX_NAME_LENGTH].lower(), known, n=1, cutoff=0.5)
    hint = f"the most similar is {near[0]}" if near else f"the fields are {', '.join(known)}"
    return f"there is no such field; {hint}"
