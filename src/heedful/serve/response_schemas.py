"""Response bodies of LibreTranslate's API and of ``/v1``."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Link = tuple[int, int]


class ResponseBody(BaseModel):
    """A response body."""

    model_config = ConfigDict(frozen=True)


class ErrorResponse(ResponseBody):
    """An error in one paragraph, which is the body of every unsuccessful response."""

    error: str


class DetectedLanguage(ResponseBody):
    """A detected language."""

    language: str
    confidence: float


class TranslateResponse(ResponseBody):
    """The response of ``POST /translate``."""

    translatedText: str | list[str]  # noqa: N815
    detectedLanguage: DetectedLanguage | list[DetectedLanguage] | None = None  # noqa: N815
    alternatives: list[str] | list[list[str]] | None = None


class TranslateFileResponse(ResponseBody):
    """The response of ``POST /translate_file``; the file is deleted after a few minutes."""

    translatedFileUrl: str = Field(description="Address of the translated file.")  # noqa: N815


class LanguageInfo(ResponseBody):
    """A source language and its target languages."""

    code: str
    name: str
    targets: list[str]


class TokenProbability(ResponseBody):
    """A subword, with its probability if requested."""

    piece: str
    probability: float | None = None


class ScoredTranslation(ResponseBody):
    """
    The translation of a sentence, or of a text whose translated sentences are joined.

    `alignment` links words, which are separated by spaces and counted from 0. `attention` is the
    explorer's document; only single sentences have it.
    """

    text: str
    score: float = Field(
        description="Log-probability divided by the length penalty, plus any coverage penalty."
    )
    log_probability: float
    tokens: list[TokenProbability]
    alignment: list[Link] | None = None
    attention: dict[str, Any] | None = None
    reading: dict[str, Any] | None = Field(
        None,
        description="Notes on how the sentence was read, as in the JSON Lines of `heedful "
        "translate`; only with `reading_notes`, and absent if there are none.",
    )


class TranslationWithAlternatives(ScoredTranslation):
    """The best translation of a sentence or text, and the alternatives."""

    alternatives: list[ScoredTranslation] = Field(default_factory=list)


class SentenceTranslation(TranslationWithAlternatives):
    """The best translation of one sentence of a text, and the sentence."""

    source: str


class TextTranslation(TranslationWithAlternatives):
    """The translation of one text. `sentences` is present if there are several."""

    sentences: list[SentenceTranslation] | None = None
    detected: DetectedLanguage | None = None


class TranslateV1Response(ResponseBody):
    """
    The response of ``POST /v1/translate``.

    It has one translation for each text, in order. `model` is the model of the first text, or empty
    if that text is left unchanged. `detected` is the detected language of the first text.
    """

    model: str
    translations: list[TextTranslation]
    detected: DetectedLanguage | None = None


class PartialHypothesis(ResponseBody):
    """A hypothesis during the search, open or finished."""

    text: str
    log_probability: float
    ended: bool | None = Field(None, description="True if the hypothesis is finished.")


class StepEvent(ResponseBody):
    """A step of the search, as a line of ``POST /v1/stream``; slow clients get fewer steps."""

    event: Literal["step"] = "step"
    sentence: int
    step: int
    text: str
    beam: list[PartialHypothesis]


class SentenceEvent(SentenceTranslation):
    """A finished sentence."""

    event: Literal["sentence"] = "sentence"
    sentence: int


class EndEvent(ResponseBody):
    """The translation of the whole text, as the last event."""

    event: Literal["end"] = "end"
    model: str
    text: str
    detected: DetectedLanguage | None = None


class ErrorEvent(ErrorResponse):
    """An error after the response has begun, as the last event."""

    event: Literal["error"] = "error"


class ModelInfo(ResponseBody):
    """
    A model and one of its translation directions.

    This is an entry of ``GET /v1/models``. Facts that an exported folder does not record are
    absent.
    """

    name: str
    source: str
    target: str
    engine: Literal["torch", "ctranslate2"]
    beam: int
    length_penalty: str
    coverage_penalty: float | None = Field(
        None, description="Absent for models that cannot have a coverage penalty."
    )
    weights: str | None = None
    step: int | None = None
    parameters: int | None = None
    layers: int | None = None
    heads: int | None = None
    alignments: bool = Field(description="Whether word alignments are available.")
    attention: bool = Field(
        description="Whether attention and the steps of the search are available."
    )


class ModelsResponse(ResponseBody):
    """The response of ``GET /v1/models``; the default is the first model on the command line."""

    models: list[ModelInfo]
    default: str
