"""Request bodies: optional fields may be null, and unknown fields are reported."""

import asyncio
import json
import tempfile
from urllib.parse import quote, quote_plus

import pytest
from fastapi import Request

from heedful.serve.limits import HttpError
from heedful.serve.request_body import read_body
from heedful.serve.request_schemas import (
    AttentionRequest,
    StreamV1Request,
    TranslateFileRequest,
    TranslateRequest,
    TranslateV1Request,
)

NEEDED = {"q": "a", "source": "en", "target": "fr"}


def read(kind, **body):
    return receive(kind, json.dumps({**NEEDED, **body}).encode())


def receive(kind, content, content_type="application/json", encoding=b"identity"):
    async def arrive():
        return {"type": "http.request", "body": content}

    headers = [(b"content-type", content_type.encode()), (b"content-encoding", encoding)]
    scope = {"type": "http", "method": "POST", "headers": headers}
    return asyncio.run(read_body(Request(scope, arrive), kind))


@pytest.mark.parametrize("kind", [TranslateRequest, TranslateV1Request, AttentionRequest])
def test_what_is_optional_may_be_null(kind):
    fields = kind.model_fields
    optional = [name for name, field in fields.items() if not field.is_required()]
    assert read(kind, **dict.fromkeys(optional)) == read(
        kind, **{name: fields[name].default for name in optional}
    )
    properties = kind.model_json_schema()["properties"]
    assert all({"type": "null"} in properties[name]["anyOf"] for name in optional)
    with pytest.raises(HttpError, match=r"^q: "):
        read(kind, q=None)


def test_a_field_that_is_not_known_is_told_with_the_nearest():
    with pytest.raises(
        HttpError, match="n_bests: there is no such field; the most similar is n_best"
    ):
        read(TranslateV1Request, n_bests=3)
    with pytest.raises(HttpError, match=r"^zzz: there is no such field; the fields are api_key, "):
        read(AttentionRequest, zzz=3)
    with pytest.raises(HttpError) as refused:
        read(TranslateV1Request, **{"y" * 500_000: 1, **{f"x{k}": 1 for k in range(90)}})
    assert refused.value.status == 400
    assert len(refused.value.text) < 3000


def test_a_hundred_thousand_mistakes_are_one():
    for wrong in ({f"x{k}": 1 for k in range(100_000)}, {"q": [1] * 100_000}):
        with pytest.raises(HttpError) as refused:
            read(TranslateV1Request, **wrong)
        assert len(refused.value.text) < 200


def test_libretranslates_bodies_may_hold_more():
    assert read(TranslateRequest, secret="x", n_bests=3) == read(TranslateRequest)


@pytest.mark.parametrize("name", ["beam", "n_best", "coverage_penalty"])
def test_true_is_no_number(name):
    with pytest.raises(HttpError, match=f"^{name}: must be a number"):
        read(TranslateV1Request, **{name: True})
    assert getattr(read(TranslateV1Request, **{name: 2}), name) == 2


@pytest.mark.parametrize("wrong", ["much", [0.2], {"beta": 0.2}, -0.1, 11, 10**400])
def test_a_coverage_penalty_is_a_number_from_0_to_10(wrong):
    with pytest.raises(HttpError, match=r"^coverage_penalty: ") as refused:
        read(TranslateV1Request, coverage_penalty=wrong)
    assert refused.value.status == 400


@pytest.mark.parametrize("charset", ["utf-8", '"UTF-8"', "utf8"])
def test_a_form_in_utf_8_may_say_so(charset):
    assert receive(TranslateRequest, form("dög"), form_type(charset)).q == "dög"


@pytest.mark.parametrize("charset", ["punycode", "idna", "unicode_escape", "utf-7", "latin-1", ""])
def test_a_form_in_another_charset_is_refused(charset):
    with pytest.raises(HttpError, match="must be in UTF-8") as refusal:
        receive(TranslateRequest, form("a-zzzzzzzzzzz"), form_type(charset))
    assert refusal.value.status == 415


def form_type(charset):
    return f"multipart/form-data; boundary=x; charset={charset}"


def form(text):
    fields = {**NEEDED, "q": text}
    part = '--x\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
    return ("".join(part.format(*field) for field in fields.items()) + "--x--\r\n").encode()


FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize("text", ["é ü 日本 😀", "100% sure?", "%zz", "a;b", "a+b"])
def test_a_form_is_read_alike_as_bytes_and_as_escapes(text):
    raw = text.replace("%", "%25").replace("+", "%2B").replace(" ", "+")
    for q in (raw, quote(text, safe=""), quote_plus(text)):
        body = receive(TranslateRequest, f"q={q}&source=en&target=fr".encode(), FORM)
        assert body.q == text


def test_a_repeated_field_of_a_form_is_a_list_and_an_empty_one_is_there():
    body = receive(TranslateRequest, "q=é&q=&source=en&target=fr".encode(), FORM)
    assert body.q == ["é", ""]


def parts(content):
    fields = {b"q": content, b"source": b"en", b"target": b"fr"}
    lines = [
        b'--x\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % field
        for field in fields.items()
    ]
    return b"".join([*lines, b"--x--\r\n"])


@pytest.mark.parametrize("content", ["é".encode("latin-1"), "日本".encode("utf-16"), b"%E9"])
def test_a_form_that_is_not_utf_8_is_refused_and_never_garbled(content):
    with pytest.raises(HttpError, match="a form must be in UTF-8") as refused:
        receive(TranslateRequest, b"q=" + content + b"&source=en&target=fr", FORM)
    assert refused.value.status == 400
    if b"%" not in content:
        with pytest.raises(HttpError, match="a form must be in UTF-8"):
            receive(TranslateRequest, parts(content), "multipart/form-data; boundary=x")


def test_parts_of_a_form_in_utf_8_are_read():
    body = receive(TranslateRequest, parts("é 日本".encode()), "multipart/form-data; boundary=x")
    assert body.q == "é 日本"


def test_a_large_file_is_never_written_to_disk(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    content = b"a dog\n" * (1 << 19)
    body = parts(content).replace(b'"q"', b'"file"; filename="a.txt"')
    read = receive(TranslateFileRequest, body, "multipart/form-data; boundary=x")
    assert read.file.content == content


def test_a_form_of_too_many_fields_is_refused():
    with pytest.raises(HttpError, match="at most 2,000 fields"):
        receive(TranslateRequest, b"q=a&" * 3000, FORM)


@pytest.mark.parametrize(
    ("kind", "content", "message"),
    [
        (TranslateRequest, "[1]", "the body: must be a JSON object."),
        (TranslateRequest, {"q": []}, "q: must be a list of at least 1 entry."),
        (StreamV1Request, {"q": ["a", "b"]}, "q: must be a list of at most 1 entry."),
        (TranslateRequest, {"source": ""}, "source: must not be empty."),
        (TranslateV1Request, {"glossary": ["x"]}, "glossary: must be an object of strings."),
        (TranslateV1Request, {"glossary": {"a": " "}}, "must have characters other than spaces."),
        (
            TranslateRequest,
            '{"q": "a\\ud83d"}',
            "must be JSON in UTF-8, but it has an unpaired surrogate",
        ),
        (TranslateRequest, '{"q"', "must be a JSON object in UTF-8, but it cannot be parsed"),
    ],
)
def test_a_message_says_in_json_words_what_is_wrong(kind, content, message):
    if isinstance(content, dict):
        content = json.dumps({"q": "a", "target": "fr", "source": "en", **content})
    with pytest.raises(HttpError) as refused:
        receive(kind, content.encode())
    assert message in refused.value.text


def test_a_form_that_repeats_a_field_and_a_compressed_body_are_refused():
    form = "application/x-www-form-urlencoded"
    with pytest.raises(HttpError, match=r"^source: must be one text\.$"):
        receive(TranslateRequest, b"q=a&source=en&source=de&target=fr", form)
    with pytest.raises(HttpError, match="must not be compressed") as refused:
        receive(TranslateRequest, b"\x1f\x8b", encoding=b"gzip")
    assert refused.value.status == 415
