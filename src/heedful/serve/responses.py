"""Responses of the ``/v1`` routes."""

import math
from dataclasses import replace
from typing import Any

from heedful.serve.documents.detect import Guess
from heedful.serve.pipeline import TextResult
from heedful.serve.response_schemas import (
    DetectedLanguage,
    ScoredTranslation,
    SentenceTranslation,
    TextTranslation,
    TokenProbability,
    TranslationWithAlternatives,
)
from heedful.translation.result import Attention, Translation
from heedful.visualise.record import ExplorerRecord, ModelRecord


def text_translation(result: TextResult, shows_reading: bool = False) -> TextTranslation:
    """
    Build the response for a text.

    Attention and reading notes belong to the text if it is one sentence, otherwise to each
    sentence.
    """
    name, text = result.route.name, result.translation
    if len(result.translations) == 1:
        text = replace(text, reading=result.translations[0].reading)
    best = _best(text, name, shows_reading)
    several = [
        sentence_translation(piece, translation, name, shows_reading)
        for piece, translation in zip(result.pieces, result.translations, strict=True)
    ]
    detected = detected_language(result.route.detected)
    return TextTranslation(
        **best, sentences=several if len(several) > 1 else None, detected=detected
    )


def sentence_translation(
    source: str, translation: Translation, model: str, shows_reading: bool = False
) -> SentenceTranslation:
    """Build the response for a sentence, as a part of a text's response or as an event."""
    return SentenceTranslation(source=source, **_best(translation, model, shows_reading))


def detected_language(guess: Guess | None) -> DetectedLanguage | None:
    """
    Build the response for a detected language.

    `guess` is None if the request named the language. The confidence is rounded to one
    decimal place.
    """
    if guess is None:
        return None
    return DetectedLanguage(language=guess.language, confidence=round(guess.confidence, 1))


def explorer_document(attention: Attention, translation: Translation, model: str) -> dict[str, Any]:
    """Build the explorer's document from attention."""
    record = ModelRecord(
        name=model,
        source=attention.source_tokens,
        target=attention.target_tokens,
        start="<s>",
        encoder=attention.encoder,
        decoder=attention.decoder,
        cross=attention.cross,
        text=translation.text,
        score=translation.score,
    )
    return ExplorerRecord(title=translation.text, models=(record,)).document()


def _best(translation: Translation, model: str, shows_reading: bool) -> dict[str, Any]:
    """Convert a translation and its alternatives to fields of a response."""
    note = translation.reading.to_dict() if shows_reading and translation.reading else None
    others = [
        ScoredTranslation(**_to_json(alternative, model))
        for alternative in translation.alternatives
    ]
    best = _to_json(translation, model) | {"reading": note or None}
    return TranslationWithAlternatives(**best, alternatives=others).__dict__


def _to_json(translation: Translation, model: str) -> dict[str, Any]:
    """Convert one translation."""
    known = [round(math.exp(logarithm), 6) for logarithm in translation.log_probabilities]
    unknown = [None] * (len(translation.tokens) - len(known))
    pairs = zip(translation.tokens, [*known, *unknown], strict=False)
    attention = translation.attention
    return {
        "text": translation.text,
        "score": translation.score,
        "log_probability": translation.log_probability,
        "tokens": [
            TokenProbability(piece=piece, probability=probability) for piece, probability in pairs
        ],
        "alignment": list(translation.alignment.links) if translation.alignment else None,
        "attention": attention and explorer_document(attention, translation, model),
    }
