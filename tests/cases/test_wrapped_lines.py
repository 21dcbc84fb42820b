"""A sentence of a mail or a PDF is broken over several lines and loses its meaning."""

import pytest

BREAKS = ["\n", "\r\n", "\r", "\u2028", "\x0c", "\x0b", "\x85"]
RED_DOG = "le gros chien rouge"


def translated(server, text, **more):
    body = {"q": text, "source": "en", "target": "fr", **more}
    return server.client.post("/translate", json=body).json()["translatedText"]


@pytest.mark.parametrize("line_break", BREAKS)
def test_line_breaks_stay_and_nothing_follows_the_last(plain_server, line_break):
    text = f"{line_break}the big red dog{line_break * 2}the cat sleeps{line_break}"
    result = translated(plain_server, text)
    parts = result.split(line_break)
    assert parts[0] == parts[2] == parts[-1] == ""
    assert parts[1] == RED_DOG
    assert len(parts) == len(text.split(line_break))


@pytest.mark.parametrize("text", ["", "  ", "\n", "\r\n \n", "\u2028"])
def test_empty_lines_stay_empty(plain_server, text):
    assert translated(plain_server, text) == text
    assert translated(plain_server, text, join_lines=True) == text


def test_wrapped_lines_are_joined_on_request_at_every_route(plain_server):
    wrapped = "the big\nred dog\n\nthe big red\r\ndog\n"
    joined = f"{RED_DOG}\n\n{RED_DOG}\n"
    assert translated(plain_server, wrapped) != joined
    assert translated(plain_server, wrapped, join_lines=True) == joined
    body = {"q": wrapped, "source": "en", "target": "fr", "join_lines": True}
    answer = plain_server.client.post("/v1/translate", json=body).json()
    assert answer["translations"][0]["text"] == joined
    assert plain_server.client.post("/translate", data={**body, "join_lines": "true"}).json() == {
        "translatedText": joined
    }
    streamed = plain_server.client.post("/v1/stream", json=body).text
    assert '"event":"end"' in streamed.replace(" ", "")
    file = {"file": ("mail.txt", wrapped.encode(), "text/plain")}
    fields = {"source": "en", "target": "fr", "join_lines": "true"}
    sent = plain_server.client.post("/translate_file", data=fields, files=file)
    url = sent.json()["translatedFileUrl"]
    assert plain_server.client.get(url.replace("localhost", "127.0.0.1")).text == joined


def test_wrapped_lines_are_joined_by_the_command(heedful_cli, toy_run):
    wrapped = "the big\nred dog\n\nthe big red\ndog\n"
    done = heedful_cli("translate", toy_run, "--join-lines", stdin=wrapped)
    assert done.stdout == f"{RED_DOG}\n\n{RED_DOG}\n"
    plain = heedful_cli("translate", toy_run, stdin=wrapped)
    assert plain.stdout.count("\n") == wrapped.count("\n")
