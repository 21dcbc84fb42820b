"""Model routing and source language detection."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from heedful.serve.documents.detect import Guess, detect, is_possible, is_short
from heedful.serve.documents.file_kinds import Form, words_of
from heedful.serve.limits import HttpError
from heedful.serve.models import Direction, Models, ServedModel
from heedful.text.language_codes import in_another_script, look_up

# A text is left unchanged if its language is the target language with at least this confidence. The
# threshold is high, because a wrong guess returns the text untranslated.
_SURE = 50.0
# Below this confidence, a text of many words counts as being in none of the server's languages.
# Few texts are misjudged, because the detector gives these languages prior odds of 300 to 1.
_FOREIGN = 5.0


@dataclass(frozen=True)
class ModelRoute:
    """The model and languages that `choose_route` chooses for a text."""

    model: ServedModel | None
    """The model; None if the text is left unchanged."""
    direction: Direction
    """Source and target language."""
    detected: Guess | None = None
    """The detected language, if the request named none."""

    @property
    def name(self) -> str:
        """Name of the model; empty if there is none."""
        return self.model.name if self.model else ""

    def tagged(self, sentence: str) -> str:
        """Prepend the language tag to a sentence, if the model has tags."""
        tag = self.direction.tag
        return f"{tag} {sentence}" if tag else sentence


async def choose_route(
    models: Models,
    texts: Sequence[str],
    source: str,
    target: str | None,
    name: str | None = None,
    form: Form = "text",
) -> list[ModelRoute]:
    """
    Choose the model and languages for each text.

    `target`: code of the target language; None for the first language into which the models
    translate `source`. `name`: name of a model; any model if None.

    Raises `HttpError` if no model fits.
    """
    if source.lower() != "auto":
        return [_choose_model(models, "", source, target, name)] * len(texts)

    # Detection runs in a thread, because it takes long enough to block the event loop. The names of
    # HTML tags look like English, so only the visible text counts.
    return await asyncio.to_thread(
        lambda: [
            _choose_model(models, words_of(text, form), source, target, name) for text in texts
        ]
    )


def _choose_model(
    models: Models, text: str, source: str, target: str | None, name: str | None
) -> ModelRoute:
    """Choose the model for a text."""
    called = models.find(name)
    if not called:
        raise HttpError(404, f"model must be a name that GET /v1/models lists, but is {name!r}.")
    every = [direction for model in called for direction in model.directions]
    is_auto = source.lower() == "auto"
    if target is None:
        sources = [direction.source for direction in every]
        named = None if is_auto else look_up(source, sources)
        target = next(
            (direction.target for direction in every if named in (None, direction.source)), ""
        )
    if not is_auto and (language := _without_translation(every, source, target)):
        return ModelRoute(None, Direction(language, language, ""))
    targets = list(dict.fromkeys(direction.target for direction in every))
    target = look_up(target, targets) or _refuse(
        f"target must be one of the target languages ({', '.join(targets)})", target, targets
    )
    sources = list(
        dict.fromkeys(direction.source for direction in every if direction.target == target)
    )
    detected = None
    if is_auto:
        detected, source = _detect(text, sources, target)
    else:
        source = look_up(source, sources) or _refuse(
            f"source must be auto or a language that can be translated into {target} "
            f"({', '.join(sources)})",
            source,
            sources,
        )
    # Search only the models found above: a reload may have replaced them during detection.
    for model in called:
        for direction in model.directions:
            if (direction.source, direction.target) == (source, target):
                return ModelRoute(model, direction, detected)
    return ModelRoute(None, Direction(source, target, ""), detected)


def _without_translation(directions: Sequence[Direction], source: str, target: str) -> str | None:
    """Return the language if source and target are the same and the server knows it."""
    codes = list(dict.fromkeys(code for direction in directions for code in direction[:2]))
    language = look_up(source, codes)
    return language if language == look_up(target, codes) else None


def _refuse(rule: str, code: str, known: Sequence[str]) -> NoReturn:
    """Refuse a language; the message may name a known language that differs only in its script."""
    near = in_another_script(code, known)
    script = f"; {near} is written in another script" if near else ""
    raise HttpError(400, f"{rule}, but is {code!r}{script}.")


def _detect(text: str, sources: Sequence[str], target: str) -> tuple[Guess, str]:
    """
    Detect the language of a text, and choose the language to translate it from.

    The target language is chosen if the text stays unchanged: it is in this language, or every
    confidence is low and `_is_foreign` is true.
    """
    languages = list(dict.fromkeys([*sources, target]))
    guesses = detect(text, languages)
    best = guesses[0]
    if best.confidence < _FOREIGN and _is_foreign(text, languages):
        return best, target
    if best.language in sources or best.confidence >= _SURE:
        return best, best.language
    possible = [guess.language for guess in guesses if guess.language in sources]
    written = [language for language in possible if is_possible(text, language)]
    return best, (written or possible)[0]


def _is_foreign(text: str, languages: Sequence[str]) -> bool:
    """Return whether a text is in none of the languages, given a low confidence in all of them."""
    if not any(map(str.isalpha, text)):
        return False
    return not is_short(text) or not any(is_possible(text, language) for language in languages)
