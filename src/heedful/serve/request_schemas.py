"""
Request bodies of LibreTranslate's API and of ``/v1``.

Pydantic checks types and the bounds that never change. `heedful.serve.service` checks the limits
that an operator may choose: on characters, texts, alternatives and the beam size.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from heedful.serve.documents.file_kinds import file_ending, readable_endings
from heedful.settings.field_types import explained
from heedful.settings.search import BEAM, COVERAGE_PENALTY, LENGTH_PENALTY, PENALTY_FORM

Language = Annotated[
    str, Field(min_length=1, max_length=35, description="Code of the language, such as en.")
]
# Limits on the number and length of a request's terms: each line is searched for every term.
_MOST_TERMS, _LONGEST_TERM = 300, 100
_Term = Annotated[str, Field(min_length=1, max_length=_LONGEST_TERM, pattern=r"\S")]
# `fail_fast` stops at the first error: a list of 100,000 wrong values must cause only one error.
_Terms = Annotated[list[_Term], Field(max_length=_MOST_TERMS, fail_fast=True)]
_PROTECTED = "Strings to keep unchanged; the translation contains each occurrence exactly once."
RequestText = str | Annotated[list[str], Field(min_length=1, fail_fast=True)]


def _flag(sent: object) -> object:
    """Parse a boolean, which a form sends as text."""
    if isinstance(sent, bool):
        return sent
    if not isinstance(sent, str) or sent.lower() not in ("true", "false"):
        raise PydanticCustomError("flag", "must be true or false")
    return sent.lower() == "true"


def _number(sent: object) -> object:
    """Refuse booleans, which Python accepts as 0 and 1."""
    if isinstance(sent, bool):
        raise PydanticCustomError("number", "must be a number")
    return sent


_NUMBER = BeforeValidator(_number)
_OR_THE_MODELS = "If absent, the model's setting is used."
Flag = Annotated[bool, BeforeValidator(_flag)]
JoinLines = Annotated[
    Flag,
    Field(
        description="Whether to join the lines of each paragraph, for text that was wrapped at a "
        "fixed width, as in e-mails and PDFs. Markup is not affected."
    ),
]
MULTIPART = "multipart/form-data"
FORMS = ("application/x-www-form-urlencoded", MULTIPART)


def _with_nulls(schema: dict[str, Any]) -> None:
    """Declare each optional field nullable."""
    for name, field in schema["properties"].items():
        if name not in schema.get("required", ()) and "anyOf" not in field:
            annotations = {
                key: field.pop(key) for key in ("title", "description", "default") if key in field
            }
            schema["properties"][name] = {"anyOf": [field, {"type": "null"}], **annotations}


class RequestBody(BaseModel):
    """
    Fields of every request body.

    Unknown fields are ignored, as in LibreTranslate. An optional field that is null counts as
    absent.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, json_schema_extra=_with_nulls)
    types: ClassVar[tuple[str, ...]] = ("application/json", *FORMS)
    exact: ClassVar[bool] = False
    """Whether JSON must have the exact types, such as 5 and not "5". Forms contain only text."""

    api_key: str = Field(
        "",
        max_length=512,
        description="API key; it may be sent in the header Authorization: Bearer KEY instead.",
    )

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, values: Any) -> Any:
        """Drop optional fields that are null; many clients send them."""
        if not isinstance(values, dict):
            return values
        fields = cls.model_fields
        optional = {name for name, field in fields.items() if not field.is_required()}
        return {
            name: value
            for name, value in values.items()
            if value is not None or name not in optional
        }

    @property
    def texts(self) -> list[str]:
        """All texts of the body, for the limits on texts and characters."""
        return []


class _BodyWithTexts(RequestBody):
    """A body with one text or several."""

    q: RequestText = Field(description="A text, or a list of texts.")

    @property
    def texts(self) -> list[str]:
        return [self.q] if isinstance(self.q, str) else self.q


class TranslateRequest(_BodyWithTexts):
    """The body of ``POST /translate``: LibreTranslate's fields, `join_lines` and `protected`."""

    source: Language = Field(description="Code of the text's language, or auto.")
    target: Language = Field(description="Code of the language to translate into.")
    format: Literal["text", "html"] = Field("text", description="Format of q.")
    join_lines: JoinLines = False
    alternatives: Annotated[int, _NUMBER] = Field(
        0, ge=0, le=100, description="Number of alternatives to return."
    )
    protected: _Term | _Terms | None = Field(None, description=_PROTECTED)

    @property
    def protected_strings(self) -> list[str]:
        """The protected strings, as a list."""
        return [self.protected] if isinstance(self.protected, str) else self.protected or []


class DetectRequest(_BodyWithTexts):
    """The body of ``POST /detect``, as LibreTranslate defines it."""

    q: RequestText = Field(description="A text, or a list of texts that are joined into one.")


@dataclass(frozen=True)
class UploadedFile:
    """
    An uploaded file.

    Only the suffix of its name is used: a client cannot choose a file name on the server.
    """

    name: str
    """Its name as sent by the client."""
    content: bytes


class KnownFile(NamedTuple):
    """An uploaded file of a kind that can be translated; its content is not parsed yet."""

    ending: str
    """Suffix of its name, a key of `FILE_KINDS`."""
    content: bytes


def _known_file(sent: object) -> KnownFile:
    """Check the name of an uploaded file."""
    if not isinstance(sent, UploadedFile):
        raise PydanticCustomError("file", "must be a file")
    ending = file_ending(sent.name)
    if ending not in (endings := readable_endings()):
        raise PydanticCustomError("ending", f"must have a name that ends in {', '.join(endings)}")
    if not sent.content:
        raise PydanticCustomError("empty", "must have content, but it is empty")
    return KnownFile(ending, sent.content)


class TranslateFileRequest(RequestBody):
    """The body of ``POST /translate_file``; it must be a form, because JSON has no files."""

    types: ClassVar[tuple[str, ...]] = (MULTIPART,)

    file: Annotated[
        KnownFile,
        BeforeValidator(_known_file),
        WithJsonSchema(
            {
                "type": "string",
                "format": "binary",
                "description": f"A file of one of the kinds {', '.join(readable_endings())}.",
            }
        ),
    ]
    source: Language = Field(description="Code of the file's language, or auto.")
    target: Language = Field(description="Code of the language to translate into.")
    join_lines: JoinLines = False


class SearchRequest(RequestBody):
    """
    Fields of every ``/v1`` body: languages, model and search.

    Unknown fields are refused; otherwise a misspelled option would be silently ignored.
    """

    model_config = ConfigDict(extra="forbid")
    exact: ClassVar[bool] = True

    source: Language = Field("auto", description="Code of the text's language, or auto.")
    target: Language | None = Field(
        None,
        description="Code of the target language; the model's first target language if absent.",
    )
    model: str | None = Field(
        None, max_length=200, description="Name of a model that GET /v1/models lists."
    )
    beam: Annotated[int | None, _NUMBER] = explained(BEAM, _OR_THE_MODELS, default=None, le=100)
    length_penalty: str | None = explained(
        LENGTH_PENALTY,
        _OR_THE_MODELS,
        default=None,
        max_length=32,
        json_schema_extra={"pattern": f"^({PENALTY_FORM})$"},
    )
    coverage_penalty: Annotated[float | None, _NUMBER] = explained(
        COVERAGE_PENALTY,
        f"{_OR_THE_MODELS} Only for models whose `coverage_penalty` in GET /v1/models is a number.",
        default=None,
        allow_inf_nan=False,
    )


class TranslateV1Request(_BodyWithTexts, SearchRequest):
    """The body of ``POST /v1/translate``."""

    split: Flag = Field(
        True,
        description="Whether to split texts into sentences. If false, only texts longer than the "
        "model accepts are split.",
    )
    join_lines: JoinLines = False
    n_best: Annotated[int, _NUMBER] = Field(
        1, ge=1, le=100, description="Number of translations of each sentence."
    )
    probabilities: Flag = Field(False, description="Whether to return each subword's probability.")
    alignments: Flag = Field(False, description="Whether to return word alignments.")
    attention: Flag = Field(
        False, description="Whether to return attention, in the explorer's format."
    )
    reading_notes: Flag = Field(
        False,
        description="Whether to return notes on how each sentence was read, such as text that the "
        "model did not read and numbers that the translation lacks.",
    )
    glossary: Annotated[dict[_Term, _Term], Field(max_length=_MOST_TERMS)] | None = Field(
        None,
        description="Translations of terms. A term matches whole words, but not inflected forms; "
        "of terms that begin at the same word, the longest is used. The terms are added to the "
        "server's own terms and take precedence over them.",
    )
    protected: _Terms = Field([], description=_PROTECTED)


class StreamV1Request(TranslateV1Request):
    """The body of ``POST /v1/stream``: one text."""

    q: str | Annotated[list[str], Field(min_length=1, max_length=1, fail_fast=True)] = Field(
        description="A text."
    )


class AttentionRequest(SearchRequest):
    """The body of ``POST /v1/attend``; the response is the explorer's document."""

    q: str = Field(description="A sentence.", json_schema_extra={"pattern": r"\S"})
    target_text: str | None = Field(
        None, description="A translation to show instead of the model's own."
    )

    @property
    def texts(self) -> list[str]:
        return [self.q, self.target_text or ""]
