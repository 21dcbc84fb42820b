"""LibreTranslate's routes: few documents are unpacked at a time."""

import asyncio
import threading
import time
from types import SimpleNamespace

import pytest

from heedful.serve import routes_libretranslate
from heedful.serve.documents.file_kinds import FILE_KINDS, ReadFile
from heedful.serve.limits import Limits
from heedful.serve.request_schemas import TranslateFileRequest, UploadedFile
from heedful.serve.served_terms import ServedTerms


@pytest.mark.parametrize(("ending", "most"), [(".docx", 2), (".odt", 2), (".txt", 6)])
def test_few_documents_are_in_memory_at_once(monkeypatch, ending, most):
    lock, counts = threading.Lock(), [0, 0]  # documents in memory now, and the most so far

    def read(content):
        with lock:
            counts[0] += 1
            counts[1] = max(counts)
        time.sleep(0.05)
        return ReadFile("a dog", write)

    def write(text):
        with lock:
            counts[0] -= 1
        return text.encode()

    async def translate_all(*_, **__):
        await asyncio.sleep(0.05)
        return [SimpleNamespace(translation=SimpleNamespace(text="un chien"))]

    async def choose_route(*_, **__):
        return None

    monkeypatch.setitem(FILE_KINDS, ending, FILE_KINDS[ending]._replace(read=read))
    monkeypatch.setattr(routes_libretranslate, "translate_all", translate_all)
    monkeypatch.setattr(routes_libretranslate, "choose_route", choose_route)
    service = SimpleNamespace(limits=Limits(), models=None, worker=None, terms=ServedTerms())
    body = TranslateFileRequest(file=UploadedFile(f"a{ending}", b"x"), source="en", target="fr")

    async def all_at_once():
        documents = asyncio.Semaphore(routes_libretranslate._MOST_DOCUMENTS)
        work = [routes_libretranslate._translated_file(service, body, documents) for _ in range(6)]
        return await asyncio.gather(*work)

    assert asyncio.run(all_at_once()) == [b"un chien"] * 6
    assert counts[0] == 0
    assert counts[1] == most if most == 2 else counts[1] > 2
