"""Placeholders, variables, addresses and paths inside a sentence are translated or lost."""

import html

import pytest

HELD = [
    "{{name}}",
    "%1$s",
    "%(count)d",
    "$Username",
    "{0}",
    "NT\\SYSTEM",
    "a.b@example.org",
    "https://e.org/a?b=c&d=e",
    "###T01###",
    "v2.3.1",
    '<x id="1"/>',
    "/usr/share/doc",
    "${total}",
    "23",
]


@pytest.mark.parametrize("held", HELD)
def test_a_placeholder_is_there_once_and_the_sentence_is_as_without(translator, held):
    plain, result = translator.translate(["my boy sees a dog", f"my boy {held} sees a dog"])
    assert result.text.count(held) == 1
    assert result.text.replace(f" {held}", "", 1).replace(f"{held} ", "", 1) == plain.text


def test_several_placeholders_stay_in_their_number(translate):
    (text,) = translate(["{{a}} sees {{b}}, my boy {{a}}"])
    assert text.count("{{a}}") == 2 and text.count("{{b}}") == 1


def test_a_server_keeps_them_in_text_and_in_html(plain_server):
    ways = {"source": "en", "target": "fr"}
    for held in HELD:
        body = {"q": f"my boy {held} sees a dog", **ways}
        text = plain_server.client.post("/translate", json=body).json()["translatedText"]
        assert text.count(held) == 1, held
        marked = f'my boy <span translate="no">{html.escape(held, quote=False)}</span> sees'
        body = {"q": marked, "format": "html", **ways}
        text = plain_server.client.post("/translate", json=body).json()["translatedText"]
        assert text.count(html.escape(held, quote=False)) == 1, held
    body = {"q": "my boy sees a dog", "protected": ["boy"], **ways}
    text = plain_server.client.post("/translate", json=body).json()["translatedText"]
    assert text.split(" ").count("boy") == 1
    body = {"q": "my boy sees a dog", "glossary": {"dog": "toutou"}, **ways}
    answer = plain_server.client.post("/v1/translate", json=body).json()
    assert answer["translations"][0]["text"].split(" ").count("toutou") == 1
    body["glossary"] = {"dog": ""}
    assert plain_server.client.post("/v1/translate", json=body).status_code == 400
