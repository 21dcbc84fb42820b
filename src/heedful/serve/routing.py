"""Which model translates a text, and from which language."""

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
"""What a text is; a sentence is not taken apart."""

# In a language that a text is already in with this confidence, it stays as it is.
_SURE = 50.0
# Of a language tag: a country of two letters, or a part of the world of three digits.
_REGION = re.compile(r"-([a-z]{2}|[0-9]{3})$")


@dataclass(frozen=True)
class ModelRoute:
    """
    Hold what translates a text.

    Attributes
    ----------
    model : ServedModel, optional
        None where the text is in the target language and stays as it is.
    direction : Direction
        From which language to which.
    detected : Guess, optional
        If the language was not said.

    Notes
    -----
    Made by `choose_route`.
    """

    model: ServedModel | None
    direction: Direction
    detected: Guess | None = None

    @property
    def name(self) -> str:
        """Name of the model; empty if there is none."""
        return self.model.name if self.model else ""

    def tagged(self, sentence: str) -> str:
        """
        Put the language tag before a sentence, if the model has tags.

        Parameters
        ----------
        sentence : str
            As it stands in the text.

        Returns
        -------
        str
            As the model reads it.

        Notes
        -----
        `heedful.serve.pipeline.drop_tag` takes it out of the answer.
        """
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
    Find what translates some texts.

    Parameters
    ----------
    models : Models
        Those that are served.
    texts : sequence of str
        The texts, for their languages.
    source : str
        Code of their language, or ``auto``: then each may be in another.
    target : str or None
        Code of the language to translate into; None for the first that the models know.
    name : str, optional
        Of a model; any when absent.
    form : {'text', 'html', 'sentence'}, default 'text'
        What the texts are.

    Returns
    -------
    list of Chosen
        One a text.

    Notes
    -----
    Raises `HttpError` for what is not there.
    """
    if source.lower() != "auto":
        return [_chosen(models, "", source, target, name)] * len(texts)

    def each() -> list[ModelRoute]:
        # What a page shows tells its language, not its tags.
        read = map(visible_text, texts) if form == "html" else texts
        return [_chosen(models, text, source, target, name) for text in read]

    # In a thread, so that others need not wait.
    return await asyncio.to_thread(each)


def same_language(code: str, known: Sequence[str]) -> str:
    """
    Find the language that a client means: ``EN`` is ``en``, and ``en-US`` is if it is not known.

    What is not found comes back as it is.
    """
    folded = {one.lower().replace("_", "-"): one for one in reversed(known)}
    asked = code.lower().replace("_", "-")
    return folded.get(asked) or folded.get(_REGION.sub("", asked), code)


def _chosen(
    models: Models, text: str, source: str, target: str | None, name: str | None
) -> ModelRoute:
    """Find what translates a text."""
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
            f"target must be a language that can be translated into ({known}), but is {target!r}.",
        )
    detected = None
    if source == "auto":
        detected, source = _detected(text, sources, target)
    # Of the same models: those that are served may have changed while the language was detected.
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
    """Tell what a text is in, and as what it is to be read."""
    guesses = detect(text, list(dict.fromkeys([*sources, target])))
    best = guesses[0]
    if best.language in sources or best.confidence >= _SURE:
        return best, best.language
    return best, next(guess.language for guess in guesses if guess.language in sources)
