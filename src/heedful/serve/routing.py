"""Model routing and source language detection."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from heedful.serve.documents.detect import Guess, detect
from heedful.serve.documents.html_document import visible_text
from heedful.serve.limits import HttpError
from heedful.serve.models import Direction, Models, ServedModel

Form = Literal["text", "html", "sentence"]
"""Format of a text; a `sentence` is not split."""

# A text whose detected language is the target language is left as it is only from this confidence:
# a wrong guess would return it untranslated.
_SURE = 50.0
# Of a language tag: a country of two letters, or a part of the world of three digits.
_REGION = re.compile(r"-([a-z]{2}|[0-9]{3})$")


@dataclass(frozen=True)
class ModelRoute:
    """The model and languages chosen for a text; made by `choose_route`."""

    model: ServedModel | None
    """The model; None if the text is already in the target language."""
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
    Choose the model and languages for some texts.

    `target`: code of the target language; None for the models' first one.
    `name`: name of a model; any model if None.

    Raises `HttpError` if no model fits.
    """
    if source.lower() != "auto":
        return [_chosen(models, "", source, target, name)] * len(texts)

    def each() -> list[ModelRoute]:
        # Names of tags look like English, so only the visible text counts.
        read = map(visible_text, texts) if form == "html" else texts
        return [_chosen(models, text, source, target, name) for text in read]

    # In a thread: detection takes long, and the event loop serves nobody else meanwhile.
    return await asyncio.to_thread(each)


def same_language(code: str, codes: Sequence[str]) -> str:
    """
    Normalise a client's language code: ``EN`` to ``en``; ``en-US`` to ``en`` if it is unknown.

    An unknown code is returned unchanged.
    """
    folded = {one.lower().replace("_", "-"): one for one in reversed(codes)}
    asked = code.lower().replace("_", "-")
    return folded.get(asked) or folded.get(_REGION.sub("", asked), code)


def _chosen(
    models: Models, text: str, source: str, target: str | None, name: str | None
) -> ModelRoute:
    """Choose the model for a text."""
    called = models.find(name)
    if not called:
        raise HttpError(404, f"model must be a name of GET /v1/models, but is {name!r}.")
    every = [direction for model in called for direction in model.directions]
    source = same_language(source, ["auto", *(code for one in every for code in one[:2])])
    if target is None:
        fits = [one for one in every if source in ("auto", one.source)]
        target = (fits or every)[0].target
    target = same_language(target, [one.target for one in every])
    sources = list(dict.fromkeys(one.source for one in every if one.target == target))
    if not sources:
        known = ", ".join(dict.fromkeys(one.target for one in every))
        raise HttpError(
            400,
            f"target must be one of the target languages ({known}), but is {target!r}.",
        )
    detected = None
    if source == "auto":
        detected, source = _detected(text, sources, target)
    # Among the models found above: a reload may have replaced them during detection.
    for model in called:
        for direction in model.directions:
            if (direction.source, direction.target) == (source, target):
                return ModelRoute(model, direction, detected)
    if source == target:
        return ModelRoute(None, Direction(source, target, ""), detected)
    raise HttpError(
        400,
        f"source must be auto or a language that can be translated into {target} "
        f"({', '.join(sources)}), but is {source!r}.",
    )


def _detected(text: str, sources: Sequence[str], target: str) -> tuple[Guess, str]:
    """Detect the language of a text, and the language to translate it from."""
    guesses = detect(text, list(dict.fromkeys([*sources, target])))
    best = guesses[0]
    if best.language in sources or best.confidence >= _SURE:
        return best, best.language
    return best, next(guess.language for guess in guesses if guess.language in sources)
