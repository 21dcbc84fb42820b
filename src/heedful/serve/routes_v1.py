"""The ``/v1`` routes, for requests that LibreTranslate's API cannot express."""

import asyncio
from dataclasses import replace
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from heedful.serve.batch_queue import Search
from heedful.serve.limits import HttpError
from heedful.serve.models import Direction, ServedModel
from heedful.serve.openapi import describe_route
from heedful.serve.pipeline import translate_all
from heedful.serve.request_body import json_response
from heedful.serve.request_schemas import (
    AttentionRequest,
    SearchRequest,
    StreamV1Request,
    TranslateV1Request,
)
from heedful.serve.response_schemas import ModelInfo, ModelsResponse, TranslateV1Response
from heedful.serve.responses import detected_language, text_translation
from heedful.serve.routing import ModelRoute, choose_route
from heedful.serve.service import Service
from heedful.serve.streaming import Stream
from heedful.serve.worker import aside


def own_routes(service: Service) -> APIRouter:
    """Create the ``/v1`` routes."""
    routes = APIRouter(prefix="/v1", tags=["heedful"])

    @routes.get("/models", **describe_route(ModelsResponse))
    async def models() -> Response:
        """List the models and their directions."""
        current = service.models.current
        entries = [_model(model, way) for model in current for way in model.directions]
        return json_response(ModelsResponse(models=entries, default=current[0].name))

    @routes.post("/translate", **describe_route(TranslateV1Response, request=TranslateV1Request))
    async def translate(request: Request) -> Response:
        """Translate texts, with scores, subwords, alternatives and alignments."""
        body = await service.read(request, TranslateV1Request)
        return await service.wait(request, _translate_texts(service, body))

    @routes.post("/stream", **describe_route(None, request=StreamV1Request, stream=True))
    async def stream(request: Request) -> Response:
        """Translate a text and stream the steps of the search."""
        body = await service.read(request, StreamV1Request)
        (route,) = await _choose_models(service, body, body.texts)
        search = _search(service, body, route.model)
        events = Stream(service, route, search, body.reading_notes)
        await service.wait(request, events.begin(body.texts[0], _form(body)))
        return StreamingResponse(
            events.lines(),
            media_type="application/x-ndjson",
            headers={"X-Accel-Buffering": "no"},
        )

    @routes.post("/attend", **describe_route(dict[str, Any], request=AttentionRequest))
    async def attend(request: Request) -> Response:
        """Return the attention and the steps of the search, as the explorer draws them."""
        body = await service.read(request, AttentionRequest)
        document = await service.wait(request, _compute_attention(service, body))
        return await asyncio.to_thread(json_response, document)

    return routes


async def _translate_texts(service: Service, body: TranslateV1Request) -> Response:
    """Translate all texts at once."""
    route = await _choose_models(service, body, body.texts)
    first = route[0]
    search = _search(service, body, first.model)
    result = await translate_all(service.worker, body.texts, route, search, form=_form(body))

    def answer() -> Response:
        translations = [text_translation(text_result, body.reading_notes) for text_result in result]
        detected = detected_language(first.detected)
        return json_response(
            TranslateV1Response(model=first.name, translations=translations, detected=detected)
        )

    size = sum(map(len, body.texts)) * body.n_best * (100 if body.attention else 1)
    return await aside(size, answer)


async def _compute_attention(service: Service, body: AttentionRequest) -> dict[str, Any]:
    """Compute the attention of one sentence."""
    (route,) = await _choose_models(service, body, [body.q])
    model, text = route.model, " ".join(body.q.split())
    options = service.search_options(body, 1, model)
    if model is None or not text:
        raise HttpError(400, "q must be a sentence that is not in the target language.")
    _require("attention needs", "attention", model.no_attention)
    line, target = route.tagged(text), body.target_text

    def attend() -> dict[str, Any]:
        from heedful.analysis.attend import attend_all

        translator: Any = model.translator
        if any(languages := model.languages(route.direction)):
            translator = translator.between(*languages)
        return attend_all(
            {model.name: translator},
            line,
            " ".join(target.split()) if target else None,
            replace(options, beam=body.beam or model.facts["beam"]),
        ).document()

    return await service.worker.call(attend)


async def _choose_models(
    service: Service, body: SearchRequest, texts: list[str]
) -> list[ModelRoute]:
    """Choose the model and languages of each text."""
    return await choose_route(service.models, texts, body.source, body.target, body.model)


def _search(service: Service, body: TranslateV1Request, model: ServedModel | None) -> Search:
    """Check the search options of a request, and return them with its terms."""
    options = service.search_options(body, body.n_best, model)
    if model is not None and body.attention:
        _require("attention needs", "attention", model.no_attention)
    if model is not None and body.alignments:
        _require("alignments need", "alignments", model.no_alignment)
    shown = body.probabilities, body.alignments, body.attention
    return Search(options, *shown, *service.terms.with_request(body.glossary, body.protected))


def _form(body: TranslateV1Request) -> Literal["text", "sentence", "wrapped"]:
    """Choose how texts are split: only if too long, or into sentences, perhaps of joined lines."""
    if not body.split:
        return "sentence"
    return "wrapped" if body.join_lines else "text"


def _require(what: str, field: str, reason: str) -> None:
    """Refuse an output that the model cannot provide; `reason` is empty if it can."""
    if reason:
        raise HttpError(
            400, f"{what} a model whose `{field}` is true in GET /v1/models, but {reason}."
        )


def _model(model: ServedModel, direction: Direction) -> ModelInfo:
    """Describe a model in one direction."""
    return ModelInfo(
        name=model.name,
        source=direction.source,
        target=direction.target,
        engine=model.engine,  # type: ignore[arg-type]
        alignments=not model.no_alignment,
        attention=not model.no_attention,
        **model.facts,
    )
