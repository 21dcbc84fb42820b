"""Our own routes: what LibreTranslate's cannot say about a translation."""

import asyncio
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from heedful.serve.batch_queue import Search
from heedful.serve.limits import Refused
from heedful.serve.models import Direction, Model
from heedful.serve.openapi import described
from heedful.serve.pipeline import aside, translate_all
from heedful.serve.request_body import given
from heedful.serve.request_schemas import AttendAsked, SearchAsked, Searched, StreamAsked
from heedful.serve.response_schemas import ModelGiven, ModelsGiven, SearchGiven
from heedful.serve.responses import detected_given, text_given
from heedful.serve.routing import Chosen, choose
from heedful.serve.service import Service
from heedful.serve.streaming import Stream


def own_routes(service: Service) -> APIRouter:
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
    All begin with ``/v1``.
    """
    routes = APIRouter(prefix="/v1", tags=["heedful"])

    @routes.get("/models", **described(ModelsGiven))
    async def models() -> Response:
        """List the models, and the directions that they translate in."""
        current = service.models.current
        entries = [_model(model, way) for model in current for way in model.directions]
        return given(ModelsGiven(models=entries, default=current[0].name))

    @routes.post("/translate", **described(SearchGiven, asked=SearchAsked))
    async def translate(request: Request) -> Response:
        """Translate texts, with all that is known of their translations."""
        asked = await service.read(request, SearchAsked)
        return await service.wait(request, _translated(service, asked))

    @routes.post("/stream", **described(None, asked=StreamAsked, stream=True))
    async def stream(request: Request) -> Response:
        """Translate a text and tell of every step on the way."""
        asked = await service.read(request, StreamAsked)
        (chosen,) = await _chosen(service, asked, asked.texts)
        search = _search(service, asked, chosen.model)
        events = Stream(service, chosen, search)
        await service.wait(request, events.begin(asked.texts[0], _form(asked)))
        return StreamingResponse(
            events.lines(),
            media_type="application/x-ndjson",
            headers={"X-Accel-Buffering": "no"},
        )

    @routes.post("/attend", **described(dict[str, Any], asked=AttendAsked))
    async def attend(request: Request) -> Response:
        """Show where a model looks, and its search step by step, as the explorer draws it."""
        asked = await service.read(request, AttendAsked)
        document = await service.wait(request, _attended(service, asked))
        return await asyncio.to_thread(given, document)

    return routes


async def _translated(service: Service, asked: SearchAsked) -> Response:
    """Translate all texts at once."""
    chosen = await _chosen(service, asked, asked.texts)
    first = chosen[0]
    search = _search(service, asked, first.model)
    spoken = await translate_all(service.worker, asked.texts, chosen, search, form=_form(asked))

    def answer() -> Response:
        translations = [text_given(one) for one in spoken]
        detected = detected_given(first.detected)
        return given(SearchGiven(model=first.name, translations=translations, detected=detected))

    size = sum(map(len, asked.texts)) * asked.n_best * (100 if asked.attention else 1)
    return await aside(size, answer)


async def _attended(service: Service, asked: AttendAsked) -> dict[str, Any]:
    """Look at one sentence."""
    (chosen,) = await _chosen(service, asked, [asked.q])
    model, text = chosen.model, " ".join(asked.q.split())
    service.check_search(asked.beam, asked.length_penalty, 1)
    if model is None or not text:
        raise Refused(400, "q must be a sentence that is not in the target language.")
    _check_looks(model)
    line, target = chosen.tagged(text), asked.target_text

    def look() -> dict[str, Any]:
        from heedful.analysis.attend import attend_all

        return attend_all(
            {model.name: model.translator},  # type: ignore[dict-item]
            line,
            " ".join(target.split()) if target else None,
            beam=asked.beam or model.facts["beam"],
            length_penalty=asked.length_penalty,
        ).document()

    return await service.worker.call(look)


async def _chosen(service: Service, asked: Searched, texts: list[str]) -> list[Chosen]:
    """Find the models."""
    return await choose(service.models, texts, asked.source, asked.target, asked.model)


def _search(service: Service, asked: SearchAsked, model: Model | None) -> Search:
    """Check what is asked and how."""
    service.check_search(asked.beam, asked.length_penalty, asked.n_best)
    if model is not None and (asked.alignments or asked.attention):
        _check_looks(model)
    return Search(
        asked.beam,
        asked.length_penalty,
        asked.n_best,
        asked.probabilities,
        asked.alignments,
        asked.attention,
    )


def _form(asked: SearchAsked) -> Literal["text", "sentence"]:
    """Say whether texts are cut into sentences."""
    return "text" if asked.split else "sentence"


def _check_looks(model: Model) -> None:
    """Refuse attention where there is none."""
    if not model.looks:
        raise Refused(
            400,
            "alignments and attention need a model whose `attention` is true in GET /v1/models, "
            "but this one runs in CTranslate2, which does not tell them.",
        )


def _model(model: Model, direction: Direction) -> ModelGiven:
    """Describe a model in one direction."""
    return ModelGiven(
        name=model.name,
        source=direction.source,
        target=direction.target,
        engine=model.engine,  # type: ignore[arg-type]
        alignments=model.looks,
        attention=model.looks,
        **model.facts,
    )
