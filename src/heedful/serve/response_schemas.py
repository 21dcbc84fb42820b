"""What clients get: LibreTranslate's wire format, and our own under ``/v1``."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from heedful.serve.request_schemas import without_notes

Link = tuple[int, int]


class ResponseBody(BaseModel):
    """An answer."""

    model_config = ConfigDict(frozen=True, json_schema_extra=without_notes)


class ErrorResponse(ResponseBody):
    """
    Say what is wrong, in one paragraph.

    Notes
    -----
    Every answer that is no success has this form.
    """

    error: str


class DetectedLanguage(ResponseBody):
    """
    Name a language that a text may be in.

    Notes
    -----
    Confidence is in percent, as LibreTranslate's.
    """

    language: str
    confidence: float


class TranslateResponse(ResponseBody):
    """
    Answer ``POST /translate``.

    Notes
    -----
    Each field is a list where `q` was one; what was not asked for is absent.
    """

    translatedText: str | list[str]  # noqa: N815
    detectedLanguage: DetectedLanguage | list[DetectedLanguage] | None = None  # noqa: N815
    alternatives: list[str] | list[list[str]] | None = None


class TranslateFileResponse(ResponseBody):
    """
    Answer ``POST /translate_file``.

    Notes
    -----
    What is there is gone after some minutes.
    """

    translatedFileUrl: str = Field(description="Where the translated file is.")  # noqa: N815


class LanguageInfo(ResponseBody):
    """
    Name a language that can be translated from, and those it can be translated into.

    Notes
    -----
    An entry of ``GET /languages``.
    """

    code: str
    name: str
    targets: list[str]


class TokenProbability(ResponseBody):
    """
    Show a subword, and its probability if that was asked for.

    Notes
    -----
    Natural probability, between 0 and 1, given all subwords before it.
    """

    piece: str
    probability: float | None = None


class ScoredTranslation(ResponseBody):
    """
    Show a translation of one sentence, or of a text: then it is the sum of its sentences.

    Notes
    -----
    Links count words, which are what spaces set apart, from 0. Attention is the explorer's
    document, of a single sentence only.
    """

    text: str
    score: float = Field(description="Log-probability divided by the length penalty.")
    log_probability: float
    tokens: list[TokenProbability]
    alignment: list[Link] | None = None
    attention: dict[str, Any] | None = None


class TranslationWithAlternatives(ScoredTranslation):
    """
    Show the best translation of one sentence, or of a text, and the next best.

    Notes
    -----
    The k-th alternative of a text is made of the k-th of each sentence.
    """

    alternatives: list[ScoredTranslation] = Field(default_factory=list)


class SentenceTranslation(TranslationWithAlternatives):
    """
    Show the best translation of one sentence of a text, and the sentence.

    Notes
    -----
    As the text was cut.
    """

    source: str


class TextTranslation(TranslationWithAlternatives):
    """
    Show the translation of one text.

    Notes
    -----
    `sentences` is there where the text has more than one.
    """

    sentences: list[SentenceTranslation] | None = None
    detected: DetectedLanguage | None = None


class TranslateV1Response(ResponseBody):
    """
    Answer ``POST /v1/translate``.

    Notes
    -----
    One translation for each text, in order. `detected` of the first text stands here, too.
    """

    model: str
    translations: list[TextTranslation]
    detected: DetectedLanguage | None = None


class PartialHypothesis(ResponseBody):
    """
    Show a hypothesis while the search goes on: an open one, or one that has ended.

    Notes
    -----
    An entry of the beam in a step of ``POST /v1/stream``; best first.
    """

    text: str
    log_probability: float
    ended: bool | None = Field(None, description="True once nothing can be added to it.")


class StepEvent(ResponseBody):
    """
    Tell how far the search has come.

    Notes
    -----
    A line of ``POST /v1/stream``. Who reads slowly gets fewer of them.
    """

    event: Literal["step"] = "step"
    sentence: int
    step: int
    text: str
    beam: list[PartialHypothesis]


class SentenceEvent(SentenceTranslation):
    """
    Give a sentence that is done.

    Notes
    -----
    A line of ``POST /v1/stream``, in the order in which sentences are done.
    """

    event: Literal["sentence"] = "sentence"
    sentence: int


class EndEvent(ResponseBody):
    """
    Give the whole text; nothing follows.

    Notes
    -----
    The last line of ``POST /v1/stream``, unless that is an error.
    """

    event: Literal["end"] = "end"
    model: str
    text: str
    detected: DetectedLanguage | None = None


class ErrorEvent(ErrorResponse):
    """
    Say what went wrong after the answer had begun; nothing follows.

    Notes
    -----
    The last line of ``POST /v1/stream`` then.
    """

    event: Literal["error"] = "error"


class ModelInfo(ResponseBody):
    """
    Describe a model and one direction that it translates in.

    Notes
    -----
    An entry of ``GET /v1/models``. What an exported folder does not know is absent.
    """

    name: str
    source: str
    target: str
    engine: Literal["torch", "ctranslate2"]
    beam: int
    length_penalty: str
    weights: str | None = None
    step: int | None = None
    parameters: int | None = None
    layers: int | None = None
    heads: int | None = None
    alignments: bool = Field(description="Whether it can tell which word translates which.")
    attention: bool = Field(description="Whether it can show attention and its steps.")


class ModelsResponse(ResponseBody):
    """
    Answer ``GET /v1/models``.

    Notes
    -----
    The default is the model that was named first on the command line.
    """

    models: list[ModelInfo]
    default: str
