"""A sentence of a mail or a PDF is broken over several lines and loses its meaning."""

import pytest

from tests.support.serving import serving

BREAKS = ["\n", "\r\n", "\r", "\u2028", "\x0c", "\x0b", "\x85"]
RED_DOG = "le gros chien rouge"


@pytest.fixture(scope="module")
def server(zygote, toy_run):
    with serving(zygote, toy_run) as server:
        yield server


def translated(server, text, **more):
    body = {"q": text, "source": "en", "target": "fr", **more}
    return server.client.post("/translate", json=body).json()["translatedText"]


@pytest.mark.parametrize("line_break", BREAKS)
def test_line_breaks_stay_and_nothing_follows_the_last(server, line_break):
    text = f"{line_break}the big red dog{line_break * 2}the cat sleeps{line_break}"
    result = translated(server, text)
    parts = result.split(line_break)
    assert parts[0] == parts[2] == parts[-1] == ""
    assert parts[1] == RED_DOG
    assert len(parts) == len(text.split(line_break))


@pytest.mark.parametrize("text", ["", "  ", "\n", "\r\n \n", "\u2028"])
def test_empty_lines_stay_empty(server, text):
    assert translated(server, text) == text
    assert translated(server, text, join_lines=True) == text


def test_wrapped_lines_are_joined_on_request_at_every_route(server):
    wrapped = "the big\nred dog\n\nthe big red\r\ndog\n"
    joined = f"{RED_DOG}\n\n{RED_DOG}\n"
    assert translated(server, wrapped) != joined
    assert translated(server, wrapped, join_lines=True) == joined
    body = {"q": wrapped, "source": "en", "target": "fr", "join_lines": True}
    answer = server.client.post("/v1/translate", json=body).json()
    assert answer["translations"][0]["text"] == joined
    assert server.client.post("/translate", data={**body, "join_lines": "true"}).json() == {
        "translatedText": joined
    }
    streamed = server.client.post("/v1/stream", json=body).text
    assert '"event":"end"' in streamed.replace(" ", "")
    file = {"file": ("mail.txt", wrapped.encode(), "text/plain")}
    fields = {"source": "en", "target": "fr", "join_lines": "true"}
    url = server.client.post("/translate_file", data=fields, files=file).json()["translatedFileUrl"]
    assert server.client.get(url.replace("localhost", "127.0.0.1")).text == joined


def test_wrapped_lines_are_joined_by_the_command(heedful_cli, toy_run):
    wrapped = "the big\nred dog\n\nthe big red\ndog\n"
    done = heedful_cli("translate", toy_run, "--join-lines", stdin=wrapped)
    assert done.stdout == f"{RED_DOG}\n\n{RED_DOG}\n"
    plain = heedful_cli("translate", toy_run, stdin=wrapped)
    assert plain.stdout.count("\n") == wrapped.count("\n")
