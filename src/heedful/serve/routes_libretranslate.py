"""
LibreTranslate's routes, for the clients that exist.

Its wire format, not its code: bodies are JSON or forms, a list of texts is answered with lists, the
confidence of a language is in percent, and every error is ``{"error": …}``.

What languages are called in English.
"""

import asyncio
import re
from typing import Any

from fastapi import APIRouter, Request, Response

from heedful.serve.batch_queue import Search
from heedful.serve.documents.detect import detect
from heedful.serve.limits import Refused
from heedful.serve.metrics import CONTENT_TYPE
from heedful.serve.openapi import described
from heedful.serve.pipeline import Spoken, translate_all
from heedful.serve.request_body import given
from heedful.serve.request_schemas import ENDINGS, DetectAsked, FileAsked, TranslateAsked
from heedful.serve.response_schemas import Detected, FileGiven, LanguageGiven, TranslateGiven
from heedful.serve.responses import detected_given
from heedful.serve.routing import choose
from heedful.serve.service import Service

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
om Oromo, or Odia, pa Punjabi, pl Polish, ps Pashto, pt Portuguese, qu Quechua, rm Romansh, rn
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
    Name a language.

    Parameters
    ----------
    code : str
        Of ISO 639, perhaps with a script or a country: ``en``, ``pt-BR``, ``zh_Hans``.

    Returns
    -------
    str
        Its English name, with what follows the code in brackets; the code if it has no name here.

    Notes
    -----
    For people; programs use the code.

    Examples
    --------
    >>> language_name("pt-BR")
    'Portuguese (BR)'
    """
    plain, _, rest = code.replace("_", "-").partition("-")
    name = _BY_CODE.get(plain.lower())
    if name is None:
        return code
    return f"{name} ({rest})" if rest else name


_KINDS = {".txt": "text/plain; charset=utf-8", ".html": "text/html; charset=utf-8"}
# Of a client's making: nothing else may get into an address that is given back.
_HOST = re.compile(r"[A-Za-z0-9._\-]+(:[0-9]+)?|\[[0-9A-Fa-f:.]+\](:[0-9]+)?")


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
    Files are text and HTML alone; `/suggest` takes nothing.
    """
    routes = APIRouter(tags=["LibreTranslate"])

    @routes.post("/translate", **described(TranslateGiven, asked=TranslateAsked))
    async def translate(request: Request) -> Response:
        """Translate a text, or several."""
        asked = await service.read(request, TranslateAsked)
        spoken = await service.wait(request, _translated(service, asked, asked.alternatives))
        return given(_answer(asked, spoken))

    @routes.post("/translate_file", **described(FileGiven, asked=FileAsked))
    async def translate_file(request: Request) -> Response:
        """Translate a file of text or HTML."""
        asked = await service.read(request, FileAsked)
        (spoken,) = await service.wait(request, _translated(service, asked))
        name = service.files.keep(spoken.whole.text.encode(), asked.file.ending)
        # By the client's own name for this server, as LibreTranslate does.
        host = request.headers.get("host", "")
        if not _HOST.fullmatch(host):
            host = ":".join(map(str, request.scope["server"]))
        url = f"{request.scope['scheme']}://{host}/download_file/{name}"
        return given(FileGiven(translatedFileUrl=url))

    @routes.get("/download_file/{name}", **described(None, wrong=(404, 500, 503)))
    async def download_file(name: str) -> Response:
        """Fetch a translated file."""
        content = service.files.find(name)
        if content is None:
            raise Refused(404, "there is no such file; each is kept for some minutes.")
        ending = name[name.rfind(".") :]
        # To be saved, not shown: it may hold scripts.
        headers = {"Content-Disposition": f'attachment; filename="translation{ending}"'}
        return Response(content, headers=headers, media_type=_KINDS[ending])

    @routes.post("/suggest", include_in_schema=False)
    async def suggest() -> Response:
        """Refuse better translations, as LibreTranslate does where they are switched off."""
        raise Refused(403, "suggestions are not taken here.")

    @routes.post("/detect", **described(list[Detected], asked=DetectAsked))
    async def detect_language(request: Request) -> Response:
        """Guess the language of a text."""
        asked = await service.read(request, DetectAsked)
        text = "\n".join(asked.texts)
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
                "filesTranslation": True,
                "supportedFilesFormat": list(ENDINGS),
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


async def _translated(
    service: Service, asked: TranslateAsked | FileAsked, alternatives: int = 0
) -> list[Spoken]:
    """Translate all texts at once, each in its own language."""
    texts, form = asked.texts, asked.format
    service.check_search(None, None, alternatives + 1)
    chosen = await choose(service.models, texts, asked.source, asked.target, form=form)
    search = Search(n_best=alternatives + 1)
    return await translate_all(service.worker, texts, chosen, search, form=form)


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
