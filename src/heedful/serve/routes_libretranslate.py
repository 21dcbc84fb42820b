"""
LibreTranslate-compatible routes.

The wire format is LibreTranslate's, but the code is not. Bodies are JSON or forms, a list of texts
is answered with lists, confidence is in percent, and every error is ``{"error": …}``.
"""

import asyncio
import re
from contextlib import nullcontext
from typing import Any

from fastapi import APIRouter, Request, Response

from heedful.errors import TextError
from heedful.search.settings import SearchOptions
from heedful.serve.batch_queue import Search
from heedful.serve.documents.detect import detect
from heedful.serve.documents.file_kinds import FILE_KINDS, Form, readable_endings
from heedful.serve.limits import HttpError
from heedful.serve.metrics import CONTENT_TYPE
from heedful.serve.openapi import describe_route
from heedful.serve.pipeline import TextResult, translate_all
from heedful.serve.request_body import check_texts, json_response
from heedful.serve.request_schemas import (
    DetectRequest,
    TranslateFileRequest,
    TranslateRequest,
)
from heedful.serve.response_schemas import (
    DetectedLanguage,
    LanguageInfo,
    TranslateFileResponse,
    TranslateResponse,
)
from heedful.serve.responses import detected_language
from heedful.serve.routing import choose_route
from heedful.serve.service import Service
from heedful.text.language_codes import language_of_code, parse_code

_NAMES = """
aa Afar, ab Abkhazian, af Afrikaans, am Amharic, ar Arabic, as Assamese, ay Aymara, az
Azerbaijani, ba Bashkir, be Belarusian, bg Bulgarian, bn Bengali, bo Tibetan, br Breton, bs
Bosnian, ca Catalan, ce Chechen, co Corsican, cs Czech, cv Chuvash, cy Welsh, da Danish, de
German, dv Divehi, dz Dzongkha, ee Ewe, el Greek, en English, eo Esperanto, es Spanish, et
Estonian, eu Basque, fa Persian, ff Fulah, fi Finnish, fj Fijian, fo Faroese, fr French, fy
Western Frisian, ga Irish, gd Scottish Gaelic, gl Galician, gn Guarani, gu Gujarati, ha Hausa, he
Hebrew, hi Hindi, hr Croatian, ht Haitian Creole, hu Hungarian, hy Armenian, ia Interlingua, id
Indonesian, ig Igbo, ilo Ilocano, is Icelandic, it Italian, ja Japanese, jv Javanese, ka Georgian,
kk Kazakh, kl Greenlandic, km Khmer, kn Kannada, ko Korean, ku Kurdish, kw Cornish, ky Kyrgyz, la
Latin, lb Luxembourgish, lg Ganda, ln Lingala, lo Lao, lt Lithuanian, lv Latvian, mg Malagasy, mi
Maori, mk Macedonian, ml Malayalam, mn Mongolian, mr Marathi, ms Malay, mt Maltese, my Burmese, nb
Norwegian Bokmål, ne Nepali, nl Dutch, nn Norwegian Nynorsk, no Norwegian, ny Nyanja, oc Occitan,
om Oromo, or Odia, pa Punjabi, pb Portuguese
(Brazil), pl Polish, ps Pashto, pt Portuguese, qu Quechua, rm Romansh, rn
Rundi, ro Romanian, ru Russian, rw Kinyarwanda, sa Sanskrit, sc Sardinian, sd Sindhi, se Northern
Sami, si Sinhala, sk Slovak, sl Slovenian, sm Samoan, sn Shona, so Somali, sq Albanian, sr
Serbian, ss Swati, st Southern Sotho, su Sundanese, sv Swedish, sw Swahili, ta Tamil, te Telugu,
tg Tajik, th Thai, ti Tigrinya, tk Turkmen, tl Tagalog, tn Tswana, to Tongan, tr Turkish, ts
Tsonga, tt Tatar, tw Twi, ty Tahitian, ug Uyghur, uk Ukrainian, ur Urdu, uz Uzbek, ve Venda, vi
Vietnamese, wo Wolof, xh Xhosa, yi Yiddish, yo Yoruba, yue Cantonese, zh Chinese, zt Chinese
(traditional), zu Zulu
"""
_BY_CODE = dict(entry.split(" ", 1) for entry in " ".join(_NAMES.split()).split(", "))


def language_name(code: str) -> str:
    """
    Return the English name of a language.

    >>> language_name("pt-BR")
    'Portuguese (BR)'
    >>> language_name("eng_Latn"), language_name("en_XX"), language_name("zho_Hant")
    ('English', 'English', 'Chinese (Hant)')
    """
    plain, _, rest = code.replace("_", "-").partition("-")
    name = _BY_CODE.get(plain.lower()) or _BY_CODE.get(language_of_code(plain))
    if name is None:
        return code
    # Subtags that the language implies are left out, and so is XX, mBART's mark for no country.
    own = parse_code(plain)
    more = [p for p in rest.split("-") if p not in ("", "XX") and parse_code(f"{plain}-{p}") != own]
    return f"{name} ({'-'.join(more)})" if more else name


# Maximum number of office documents in memory at a time; others wait. Each may take 200 MB.
_MOST_DOCUMENTS = 2
# The Host header comes from the client: only these characters may appear in a returned address.
_HOST = re.compile(r"[A-Za-z0-9._\-]+(:[0-9]+)?|\[[0-9A-Fa-f:.]+\](:[0-9]+)?")


def libre_routes(service: Service) -> APIRouter:
    """Create the routes; `/suggest` refuses every request."""
    routes = APIRouter(tags=["LibreTranslate"])
    documents = asyncio.Semaphore(_MOST_DOCUMENTS)

    @routes.post("/translate", **describe_route(TranslateResponse, request=TranslateRequest))
    async def translate(request: Request) -> Response:
        """Translate one text or several."""
        body = await service.read(request, TranslateRequest)
        result = await service.wait(request, _translate_texts(service, body))
        return json_response(_answer(body, result))

    @routes.post(
        "/translate_file", **describe_route(TranslateFileResponse, request=TranslateFileRequest)
    )
    async def translate_file(request: Request) -> Response:
        """Translate a file: text, HTML, subtitles, Markdown, or an office document."""
        body = await service.read(request, TranslateFileRequest)
        content = await service.wait(request, _translated_file(service, body, documents))
        name = service.files.keep(content, body.file.ending)
        # The address has the host name that the client used, as in LibreTranslate.
        host = request.headers.get("host", "")
        if not _HOST.fullmatch(host):
            host = ":".join(map(str, request.scope["server"]))
        url = f"{request.scope['scheme']}://{host}/download_file/{name}"
        return json_response(TranslateFileResponse(translatedFileUrl=url))

    @routes.get("/download_file/{name}", **describe_route(None, wrong=(404, 421, 500, 503)))
    async def download_file(name: str) -> Response:
        """Fetch a translated file."""
        content = service.files.find(name)
        if content is None:
            raise HttpError(
                404, "there is no such file; translated files are kept for a few minutes."
            )
        ending = name[name.rfind(".") :]
        # It is an attachment: a browser must not show the file, because it may contain scripts.
        headers = {"Content-Disposition": f'attachment; filename="translation{ending}"'}
        return Response(content, headers=headers, media_type=FILE_KINDS[ending].media_type)

    @routes.post("/suggest", include_in_schema=False)
    async def suggest() -> Response:
        """Refuse suggestions, as LibreTranslate does when they are disabled."""
        raise HttpError(403, "this server does not accept suggestions.")

    @routes.post("/detect", **describe_route(list[DetectedLanguage], request=DetectRequest))
    async def detect_language(request: Request) -> Response:
        """Detect the language of a text."""
        body = await service.read(request, DetectRequest)
        text = "\n".join(body.texts)
        languages = service.models.languages()
        every = list(dict.fromkeys([*languages, *(t for ts in languages.values() for t in ts)]))
        guesses = await service.wait(request, asyncio.to_thread(detect, text, every))
        detected = [detected_language(guess) for guess in guesses]
        return json_response([language.model_dump() for language in detected if language])

    @routes.get("/languages", **describe_route(list[LanguageInfo]))
    async def languages() -> Response:
        """List the source languages, each with its target languages."""
        known = service.models.languages()
        return json_response(
            [
                LanguageInfo(code=code, name=language_name(code), targets=targets).model_dump()
                for code, targets in known.items()
            ]
        )

    @routes.get("/frontend/settings", **describe_route(dict[str, Any]))
    async def settings() -> Response:
        """Return the settings for a translation page."""
        source, targets = next(iter(service.models.languages().items()))
        needed = service.auth.needs_keys
        return json_response(
            {
                "apiKeys": needed,
                "keyRequired": needed,
                "charLimit": service.limits.max_characters,
                "maxAlternatives": service.limits.max_alternatives,
                "frontendTimeout": 500,
                "filesTranslation": True,
                "supportedFilesFormat": readable_endings(),
                "suggestions": False,
                "language": {
                    "source": {"code": source, "name": language_name(source)},
                    "target": {"code": targets[0], "name": language_name(targets[0])},
                },
            }
        )

    @routes.get("/health", **describe_route(dict[str, str]))
    async def health() -> Response:
        """Return whether the server accepts new requests."""
        if service.state.stopping:
            return json_response({"status": "stopping"}, 503)
        return json_response({"status": "ok"})

    @routes.get("/metrics", **describe_route(None))
    async def metrics(request: Request) -> Response:
        """Return metrics for Prometheus."""
        if service.auth.needs_keys:
            service.auth.check(request, counts=False)
        return Response(service.metrics.page(), media_type=CONTENT_TYPE)

    return routes


async def _translated_file(
    service: Service, body: TranslateFileRequest, documents: asyncio.Semaphore
) -> bytes:
    """Translate a file as a whole; `documents` limits the office documents in memory."""
    kind = FILE_KINDS[body.file.ending]
    form: Form = "wrapped" if body.join_lines and kind.form == "text" else kind.form
    # An unpacked document stays in memory until its translation is written.
    async with documents if kind.form == "office" else nullcontext():
        # This runs in a thread, because unpacking takes long enough to block the event loop.
        try:
            read = await asyncio.to_thread(kind.read, body.file.content)
        except TextError as error:
            raise HttpError(400, f"file: {error}") from None
        check_texts([read.text], service.limits)
        route = await choose_route(service.models, [read.text], body.source, body.target, form=form)
        glossary, strings = service.terms.with_request(None, ())
        search = Search(SearchOptions(n_best=1), glossary=glossary, protected=strings)
        (result,) = await translate_all(service.worker, [read.text], route, search, form=form)
        return await asyncio.to_thread(read.write, result.translation.text)


async def _translate_texts(service: Service, body: TranslateRequest) -> list[TextResult]:
    """Translate all texts at once, each from its own language."""
    texts = body.texts
    form: Form = "wrapped" if body.join_lines and body.format == "text" else body.format
    service.check_alternatives(body.alternatives)
    route = await choose_route(service.models, texts, body.source, body.target, form=form)
    glossary, strings = service.terms.with_request(None, body.protected_strings)
    options = SearchOptions(n_best=body.alternatives + 1)
    search = Search(options, glossary=glossary, protected=strings)
    return await translate_all(service.worker, texts, route, search, form=form)


def _answer(body: TranslateRequest, result: list[TextResult]) -> TranslateResponse:
    """Build a response with one text or with lists, like the request."""
    texts = [text_result.translation.text for text_result in result]
    guesses = [
        guess for text_result in result if (guess := detected_language(text_result.route.detected))
    ]
    others = [
        [alternative.text for alternative in text_result.translation.alternatives]
        for text_result in result
    ]
    lists: dict[str, list[Any]] = {"translatedText": texts, "detectedLanguage": guesses}
    if body.alternatives:
        lists["alternatives"] = others
    is_single = isinstance(body.q, str)
    return TranslateResponse(
        **{name: values[0] if is_single else values for name, values in lists.items() if values}
    )
