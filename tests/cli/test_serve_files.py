"""`heedful serve`: file translation, and files that it refuses."""

import io
import re

import docx
import pytest
from httpx2 import URL
from odf.opendocument import OpenDocumentText, load
from odf.teletype import extractText
from odf.text import P

from heedful.serve.documents.file_kinds import FILE_KINDS
from tests.support.serving import serving

SENTENCE = "the big red dog sleeps"
NAMES = [
    "a.txt",
    ".TXT",
    "../../etc/a.txt",
    "C:\\a.txt",
    "a\u202e.txt",
    "a b\r\n.txt",
    "é" * 300 + ".txt",
]


@pytest.fixture(scope="module")
def server(zygote, trained):
    options = ["--max-body", 100_000, "--allow-host", "*"]
    with serving(zygote, trained, *options) as started:
        yield started


def send(server, content, name="a.txt", **more):
    form = {"source": "en", "target": "fr", **more}
    return server.client.post("/translate_file", data=form, files={"file": (name, content)})


def fetch(server, answer):
    assert answer.status_code == 200, answer.text
    assert answer.json().keys() == {"translatedFileUrl"}
    return server.client.get(answer.json()["translatedFileUrl"])


def translated(server, text, **more):
    body = {"q": text, "source": "en", "target": "fr", **more}
    return server.client.post("/translate", json=body).json()["translatedText"]


def test_a_text_comes_back_as_it_would_from_translate(server):
    text = f"\ufeff  {SENTENCE}\r\n\r\n- a cat sees the bird\n"
    got = fetch(server, send(server, text.encode()))
    assert got.content.decode() == translated(server, text[1:])
    assert got.headers["content-type"] == "text/plain; charset=utf-8"
    assert got.headers["content-disposition"] == 'attachment; filename="translation.txt"'


def test_a_page_keeps_its_markup_and_is_never_shown(server):
    page = f"<!doctype html><p class='a'>{SENTENCE} <b>bird</b></p><script>alert(1)</script>"
    got = fetch(server, send(server, page.encode(), "a.html", source="auto"))
    assert got.text == translated(server, page, format="html")
    assert re.findall("<[^>]*>", got.text) == re.findall("<[^>]*>", page)
    assert got.headers["content-disposition"].startswith("attachment")
    assert got.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in got.headers["content-security-policy"]


SUBTITLES = f"1\r\n00:00:01,000 --> 00:00:02,000\r\n<i>{SENTENCE}</i>\r\n\r\n"


def test_subtitles_are_translated_alike_as_a_file_and_as_text(server):
    got = fetch(server, send(server, SUBTITLES.encode(), "a.srt", source="auto"))
    assert got.content.decode() == translated(server, SUBTITLES)
    assert got.text.replace(f"{translated(server, SENTENCE)}", SENTENCE) == SUBTITLES
    assert got.headers["content-type"] == "application/x-subrip; charset=utf-8"


@pytest.mark.parametrize("ending", ["docx", "odt", "md"])
def test_documents_come_back_as_documents(server, ending):
    stream = io.BytesIO()
    if ending == "docx":
        document = docx.Document()
        document.add_paragraph(SENTENCE)
        document.save(stream)
    elif ending == "odt":
        document = OpenDocumentText()
        document.text.addElement(P(text=SENTENCE))
        document.save(stream)
    else:
        stream.write(f"# {SENTENCE}\n".encode())
    got = fetch(server, send(server, stream.getvalue(), f"a.{ending}", source="auto"))
    assert got.headers["content-disposition"].endswith(f'"translation.{ending}"')
    answer, expected = io.BytesIO(got.content), translated(server, SENTENCE)
    if ending == "docx":
        assert docx.Document(answer).paragraphs[0].text == expected
    elif ending == "odt":
        assert extractText(load(answer).getElementsByType(P)[0]) == expected
    else:
        assert got.text == f"# {expected}\n"


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_no_name_of_a_client_is_ever_used(server, name):
    answer = send(server, b"dog", name)
    url = URL(answer.json()["translatedFileUrl"])
    assert str(url).startswith(f"{server.address}/download_file/")
    assert re.fullmatch(r"/download_file/[\w-]{32}\.txt", url.path)
    assert fetch(server, answer).headers["content-disposition"].endswith('"translation.txt"')


def test_no_host_but_a_name_gets_into_an_address(server):
    for host, shown in (("a.example:8", "//a.example:8/"), ('x"><script>', "//127.0.0.1:")):
        form = {"source": "en", "target": "fr"}
        files = {"file": ("a.txt", b"a dog")}
        answer = server.client.post(
            "/translate_file", data=form, files=files, headers={"Host": host}
        )
        assert shown in answer.json()["translatedFileUrl"]


def test_names_differ_and_others_are_not_there(server):
    first, second = (send(server, b"dog").json()["translatedFileUrl"] for _ in range(2))
    assert first != second
    for path in (
        "/download_file/a.txt",
        "/download_file/..%2f..%2fetc%2fpasswd",
        "/download_file/../../../etc/passwd",
        "/download_file/%00",
        "/download_file/",
        URL(first).path[:-5],
        URL(first).path + "/",
    ):
        answer = server.client.get(path)
        assert answer.status_code == 404
        assert answer.json().keys() == {"error"}


WRONG = [
    (b"dog", {"name": "a.pdf"}, 400, "ends in .txt, .html"),
    (b"dog", {"name": "a.txt.exe"}, 400, "ends in .txt, .html"),
    (b"dog", {"name": "txt"}, 400, "ends in .txt, .html"),
    (b"dog", {"name": "a.docx"}, 400, "file: a .docx file must be a complete zip archive"),
    (b"PK\x03\x04", {"name": "a.odt"}, 400, "file: an .odt file must be a complete zip archive"),
    (b"", {}, 400, "file: must have content, but it is empty"),
    (b"", {"name": "a.docx"}, 400, "file: must have content, but it is empty"),
    (b"\xe9t\xe9", {}, 400, "UTF-8"),
    (SUBTITLES.encode("utf-16"), {"name": "a.srt"}, 400, "UTF-8"),
    (SUBTITLES.encode("utf-16-le"), {"name": "a.srt"}, 400, "it holds NUL characters, as UTF-16"),
    (SUBTITLES.encode("latin-1") + b"\xe9", {"name": "a.srt"}, 400, "UTF-8"),
    ("dog".encode("utf-16"), {}, 400, "UTF-8"),
    (b"dog", {"target": "xx"}, 400, "target"),
    (b"dog", {"source": "xx"}, 400, "source"),
    (b"a dog. " * 3_000, {}, 400, "20,000 characters"),
    (b"a dog. " * 20_000, {}, 413, "100,000 bytes"),
]


@pytest.mark.parametrize(("content", "more", "status", "told"), WRONG, ids=range(len(WRONG)))
def test_what_cannot_be_translated_is_told(server, content, more, status, told):
    answer = send(server, content, **more)
    assert answer.status_code == status
    assert answer.json().keys() == {"error"}
    assert told in answer.json()["error"]
    assert "\n" not in answer.json()["error"]
    assert server.client.get("/health").json() == {"status": "ok"}


def test_a_form_in_one_line_may_hold_bytes_of_utf_8(server):
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answers = [
        server.client.post("/translate", content=content, headers=headers)
        for content in (
            f"q=“{SENTENCE}” é&source=en&target=fr".encode(),
            f"q=%E2%80%9C{SENTENCE}%E2%80%9D %C3%A9&source=en&target=fr".encode(),
        )
    ]
    assert (
        answers[0].json()
        == answers[1].json()
        == {"translatedText": translated(server, f"“{SENTENCE}” é")}
    )
    refused = server.client.post(
        "/translate", content=b"q=\xe9&source=en&target=fr", headers=headers
    )
    assert refused.status_code == 400
    assert refused.json()["error"].startswith("a form must be in UTF-8")


PART = b'--x\r\nContent-Disposition: form-data; name="%b"%b\r\n\r\n%b\r\n'
FILE = PART % (b"file", b'; filename="a.txt"', b"dog")
REST = PART % (b"source", b"", b"en") + PART % (b"target", b"", b"fr")
BROKEN = [
    b"",
    b"abc",
    FILE,
    FILE + REST[:-10],
    REST + b"--x--\r\n",
    FILE + FILE + REST + b"--x--\r\n",
    PART % (b"file", b"", b"dog") + REST + b"--x--\r\n",
    FILE.replace(b"; name", b"; nom") + REST + b"--x--\r\n",
    FILE.replace(b"Content-", b"Content\x00") + REST + b"--x--\r\n",
    FILE.replace(b"a.txt", b"a" * 70_000) + REST + b"--x--\r\n",
    PART % (b"a", b"", b"") * 2_500 + FILE + REST + b"--x--\r\n",
]


@pytest.mark.parametrize("content", BROKEN, ids=range(len(BROKEN)))
def test_a_broken_form_is_told(server, content):
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = server.client.post("/translate_file", content=content, headers=headers)
    assert answer.status_code in (400, 413), answer.text
    assert answer.json().keys() == {"error"}


def test_a_page_with_references_to_control_characters_is_translated(server):
    page = f"<p>{SENTENCE}&#11;and a&#x1E; cat&#xFFFF;.</p><p title='&#5;'>a bird&#127; sings</p>"
    got = fetch(server, send(server, page.encode(), "word.html", source="auto"))
    assert got.text == translated(server, page, format="html", source="auto")
    references = re.findall("&#x?[0-9A-F]+;", page)
    assert sorted(re.findall("&#x?[0-9A-F]+;", got.text)) == sorted(references)
    assert SENTENCE not in got.text


@pytest.mark.parametrize("charset", ["punycode", "undefined", "unicode_escape", "ISO-8859-1"])
def test_a_form_in_another_charset_is_refused(server, charset):
    headers = {"Content-Type": f"multipart/form-data; boundary=x; charset={charset}"}
    content = FILE + REST + b"--x--\r\n"
    for path in ("/translate_file", "/translate"):
        answer = server.client.post(path, content=content, headers=headers)
        assert answer.status_code == 415
        assert "UTF-8" in answer.json()["error"]
    headers["Content-Type"] = "multipart/form-data; boundary=x; charset=UTF-8"
    assert fetch(
        server, server.client.post("/translate_file", content=content, headers=headers)
    ).text == translated(server, "dog")


def test_only_a_form_brings_a_file(server):
    body = {"file": ["a.txt", "dog"], "source": "en", "target": "fr"}
    for sent in ({"json": body}, {"data": body}):
        answer = server.client.post("/translate_file", **sent)
        assert answer.status_code == 415
        assert "multipart/form-data" in answer.json()["error"]
    texts = {"q": ("a.txt", b"dog"), "source": (None, "en"), "target": (None, "fr")}
    answer = server.client.post("/translate", files=texts)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("q:")


def test_a_key_is_needed_for_a_file_but_not_to_fetch_it(zygote, trained, tmp_path):
    keys = tmp_path / "keys.txt"
    keys.write_text("secret\n", encoding="utf-8")
    with serving(zygote, trained, "--api-keys", keys) as server:
        assert send(server, b"dog").status_code == 403
        assert fetch(server, send(server, b"dog", api_key="secret")).status_code == 200


def test_suggestions_are_refused_as_where_libretranslate_takes_none(server):
    asked = {"q": SENTENCE, "s": "le chien", "source": "en", "target": "fr"}
    for sent in ({"json": asked}, {"data": asked}):
        answer = server.client.post("/suggest", **sent)
        assert answer.status_code == 403
        assert answer.json().keys() == {"error"}
    settings = server.client.get("/frontend/settings").json()
    assert settings["suggestions"] is False
    assert settings["filesTranslation"] is True
    assert settings["supportedFilesFormat"] == list(FILE_KINDS)
