"""From the body of a request, JSON or a form, to what is asked; and answers back."""

import json
from typing import Any, TypeVar

from fastapi import Request, Response
from pydantic import BaseModel, ValidationError

from heedful.serve.limits import Limits, Refused
from heedful.serve.schema import Problem

_Asked = TypeVar("_Asked", bound=BaseModel)
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


async def read_asked(request: Request, kind: type[_Asked]) -> _Asked:
    """
    Read and check a body.

    Parameters
    ----------
    request : Request
        Its body is a JSON object or a form.
    kind : type
        What is asked on this route.

    Returns
    -------
    BaseModel
        Of that kind.

    Notes
    -----
    Raises `Refused` with every field that is wrong. A form may repeat ``q``.
    """
    sent = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if sent in _FORMS:
        values = await _form(request)
    elif not sent or sent == "application/json" or sent.endswith("+json"):
        values = _json(await request.body())
    else:
        raise Refused(415, "a body must be application/json or a form, but is of another type.")
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise Refused(400, _wrong(error)) from None


def check_texts(asked: str | list[str], limits: Limits) -> list[str]:
    """
    Check how much is to be translated.

    Parameters
    ----------
    asked : str or list of str
        The field ``q``.
    limits : Limits
        What is accepted.

    Returns
    -------
    list of str
        Its texts.

    Notes
    -----
    Raises `Refused`.
    """
    texts = [asked] if isinstance(asked, str) else asked
    if len(texts) > limits.lines:
        raise Refused(
            400, f"q may hold at most {limits.lines:,} texts, but {len(texts):,} came; send fewer."
        )
    if (characters := sum(map(len, texts))) > limits.characters:
        raise Refused(
            400,
            f"a request may hold at most {limits.characters:,} characters, but {characters:,} "
            "came; send less at once.",
        )
    return texts


def given(content: BaseModel | list[Any] | dict[str, Any], status: int = 200) -> Response:
    """
    Answer in JSON.

    Parameters
    ----------
    content : BaseModel, list or dict
        What is answered; of a model, what is None is left out.
    status : int, default 200
        Of HTTP.

    Returns
    -------
    Response
        In UTF-8.

    Notes
    -----
    What was asked for in vain is absent, as in LibreTranslate's answers.
    """
    if isinstance(content, BaseModel):
        text = content.model_dump_json(exclude_none=True)
    else:
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return Response(text, status, media_type="application/json")


def problem(refused: Refused) -> Response:
    """
    Answer that something is wrong.

    Parameters
    ----------
    refused : Refused
        What.

    Returns
    -------
    Response
        ``{"error": …}``, and when to come again.

    Notes
    -----
    After a body that was not read to its end nothing more can come over the connection.
    """
    answer = given(Problem(error=refused.text), refused.status)
    if refused.retry_after is not None:
        answer.headers["Retry-After"] = str(refused.retry_after)
    if refused.status in (408, 413):
        answer.headers["Connection"] = "close"
    return answer


async def _form(request: Request) -> dict[str, Any]:
    """Read the fields of a form; those that come several times are lists."""
    async with request.form(max_files=0, max_fields=2000, max_part_size=1 << 24) as form:
        values = {name: form.getlist(name) for name in form}
    return {name: several[0] if len(several) == 1 else several for name, several in values.items()}


def _json(body: bytes) -> Any:
    """Read JSON."""
    try:
        found = json.loads(body)
        if b"\\ud" in body or b"\\uD" in body:  # half a character; the other may be missing
            json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise Refused(400, "the body must be a JSON object in UTF-8, but cannot be read.") from None
    return found


def _wrong(error: ValidationError) -> str:
    """Name the fields that are wrong, never their values."""
    told: dict[str, str] = {}
    for one in error.errors(include_url=False, include_context=False, include_input=False):
        field = str(one["loc"][0]) if one["loc"] else "the body"
        told.setdefault(field, one["msg"][:1].lower() + one["msg"][1:])
    return "; ".join(f"{field}: {message}" for field, message in told.items()) + "."
