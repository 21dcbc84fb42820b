"""
LibreTranslate's routes, for the clients that exist.

Its wire format, not its code: bodies are JSON or forms, a list of texts is answered with lists, the
confidence of a language is in percent, and every error is ``{"error": …}``.
"""

import asyncio
from typing import Any, Literal

from fastapi import APIRouter, Request, Response

from heedful.serve.answers import detected_given
from heedful.serve.metrics import CONTENT_TYPE
from heedful.serve.names import language_name
from heedful.serve.reading import check_texts, given, read_asked
from heedful.serve.schema import (
    DetectAsked,
    Detected,
    LanguageGiven,
    TranslateAsked,
    TranslateGiven,
)
from heedful.serve.service import Service
from heedful.serve.speaking import Spoken
from heedful.serve.spec import described
from heedful.serve.text.detect import detect
from heedful.serve.text.markup import shown
from heedful.serve.worker import Search


def libre_routes(service: Service) -> APIRouter:
    """
    Make the routes.

    Parameters
    ----------
    service : Service
        Does the work.

    Returns
    -------
    APIRouter
        To be included in the application.

    Notes
    -----
    `/translate_file` and `/suggest` of LibreTranslate are not there: 404.
    """
    routes = APIRouter(tags=["LibreTranslate"])

    @routes.post("/translate", **described(TranslateGiven, asked=TranslateAsked))
    async def translate(request: Request) -> Response:
        """Translate a text, or several."""
        asked = await read_asked(request, TranslateAsked)
        service.gate.check(request, asked.api_key)
        texts = check_texts(asked.q, service.limits)
        spoken = await service.wait(request, _translated(service, asked, texts))
        return given(_answer(asked, spoken))

    @routes.post("/detect", **described(list[Detected], asked=DetectAsked))
    async def detect_language(request: Request) -> Response:
        """Guess the language of a text."""
        asked = await read_asked(request, DetectAsked)
        service.gate.check(request, asked.api_key)
        text = "\n".join(check_texts(asked.q, service.limits))
        languages = service.models.languages()
        every = list(dict.fromkeys([*languages, *(t for ts in languages.values() for t in ts)]))
        guesses = await service.wait(request, asyncio.to_thread(detect, text, every))
        found = [detected_given(guess) for guess in guesses]
        return given([one.model_dump() for one in found if one])

    @routes.get("/languages", **described(list[LanguageGiven]))
    async def languages() -> Response:
        """List the languages, and what each can be translated into."""
        known = service.models.languages()
        return given(
            [
                LanguageGiven(code=code, name=language_name(code), targets=targets).model_dump()
                for code, targets in known.items()
            ]
        )

    @routes.get("/frontend/settings", **described(dict[str, Any]))
    async def settings() -> Response:
        """Tell a page what it may ask."""
        source, targets = next(iter(service.models.languages().items()))
        needed = service.gate.needs_keys
        return given(
            {
                "apiKeys": needed,
                "keyRequired": needed,
                "charLimit": service.limits.characters,
                "frontendTimeout": 500,
                "filesTranslation": False,
                "supportedFilesFormat": [],
                "suggestions": False,
                "language": {
                    "source": {"code": source, "name": language_name(source)},
                    "target": {"code": targets[0], "name": language_name(targets[0])},
                },
            }
        )

    @routes.get("/health", **described(dict[str, str]))
    async def health() -> Response:
        """Say whether new work is taken."""
        if service.state.stopping:
            return given({"status": "stopping"}, 503)
        return given({"status": "ok"})

    @routes.get("/metrics", **described(None))
    async def metrics(request: Request) -> Response:
        """Count, for Prometheus."""
        if service.gate.needs_keys:
            service.gate.check(request, counts=False)
        return Response(service.metrics.page(), media_type=CONTENT_TYPE)

    return routes


async def _translated(service: Service, asked: TranslateAsked, texts: list[str]) -> list[Spoken]:
    """Translate all texts at once, each in its own language."""
    speaker = service.speaker
    # What a page shows tells its language, not its tags.
    read = [shown(text) for text in texts] if asked.format == "html" else texts
    chosen = [await speaker.choose(text, asked.source, asked.target, None) for text in read]
    service.check_search(None, None, asked.alternatives + 1)
    search = Search(n_best=asked.alternatives + 1)
    form: Literal["text", "html"] = asked.format
    return await speaker.translate_all(texts, chosen, search, form=form)


def _answer(asked: TranslateAsked, spoken: list[Spoken]) -> TranslateGiven:
    """Answer with one text or with lists, as was asked."""
    texts = [one.whole.text for one in spoken]
    guesses = [guess for one in spoken if (guess := detected_given(one.chosen.detected))]
    others = [[other.text for other in one.whole.alternatives] for one in spoken]
    if isinstance(asked.q, str):
        return TranslateGiven(
            translatedText=texts[0],
            detectedLanguage=guesses[0] if guesses else None,
            alternatives=others[0] if asked.alternatives else None,
        )
    return TranslateGiven(
        translatedText=texts,
        detectedLanguage=guesses or None,
        alternatives=others if asked.alternatives else None,
    )
