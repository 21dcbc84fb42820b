"""`heedful serve`: the answers of its routes."""

import base64
import json
import math
import re

import pytest

from tests.support.serving import serving

SENTENCES = ["the big red dog sleeps", "a cat sees the bird", "she has three small houses"]


@pytest.fixture(scope="module")
def server(zygote, trained):
    with serving(zygote, trained, "--precision", "fp32") as started:
        yield started


@pytest.fixture(scope="module")
def by_command(heedful_cli, trained):
    """The output of `heedful translate` for the sentences."""
    done = heedful_cli(
        "translate",
        trained,
        "--device",
        "cpu",
        "--precision",
        "fp32",
        "--format",
        "jsonl",
        "--n-best",
        3,
        stdin="".join(f"{line}\n" for line in SENTENCES),
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def ask(server, **body):
    answer = server.client.post("/translate", json={"source": "en", "target": "fr", **body})
    assert answer.status_code == 200, answer.text
    return answer.json()


def own(server, path="/v1/translate", **body):
    answer = server.client.post(path, json={"source": "en", "target": "fr", **body})
    assert answer.status_code == 200, answer.text
    return answer


def test_one_text_or_several_as_libretranslate_answers_them(server, by_command):
    texts = [one["text"] for one in by_command]
    assert ask(server, q=SENTENCES[0]) == {"translatedText": texts[0]}
    assert ask(server, q=SENTENCES) == {"translatedText": texts}
    found = ask(server, q=SENTENCES[:2], alternatives=2)
    others = [[other["text"] for other in one["alternatives"]] for one in by_command]
    assert found == {"translatedText": texts[:2], "alternatives": others[:2]}


def test_forms_are_as_good_as_json(server, by_command):
    form = {"q": SENTENCES[0], "source": "en", "target": "fr", "alternatives": "2"}
    for sent in ({"data": form}, {"files": {name: (None, value) for name, value in form.items()}}):
        answer = server.client.post("/translate", **sent)
        assert answer.status_code == 200, answer.text
        assert answer.json()["translatedText"] == by_command[0]["text"]
        assert len(answer.json()["alternatives"]) == 2
    several = server.client.post("/translate", data={**form, "q": SENTENCES})
    assert several.json()["translatedText"] == [one["text"] for one in by_command]


def test_scores_are_those_of_the_command_line(server, by_command):
    body = {"q": SENTENCES, "split": False, "n_best": 3, "probabilities": True}
    found = own(server, **body).json()
    assert found["model"] == "run"
    for mine, theirs in zip(found["translations"], by_command, strict=True):
        assert [piece["piece"] for piece in mine["tokens"]] == theirs["tokens"]
        pairs = zip([mine, *mine["alternatives"]], [theirs, *theirs["alternatives"]], strict=True)
        for ours, other in pairs:
            assert ours["score"] == pytest.approx(other["score"], abs=1e-3)
            assert ours["log_probability"] == pytest.approx(other["log_probability"], abs=1e-3)
        known = sum(math.log(piece["probability"]) for piece in mine["tokens"])
        assert mine["log_probability"] <= known + 1e-3


def test_a_text_keeps_its_layout(server, by_command):
    first, second = (one["text"] for one in by_command[:2])
    text = f"  {SENTENCES[0]}\n\n{SENTENCES[1]}\n"
    assert ask(server, q=text)["translatedText"] == f"  {first}\n\n{second}\n"
    found = own(server, q=text, alignments=True).json()["translations"][0]
    assert [one["source"] for one in found["sentences"]] == SENTENCES[:2]
    scores = [one["score"] for one in found["sentences"]]
    assert found["score"] == pytest.approx(sum(scores))
    words = len(SENTENCES[0].split()), len(first.split())
    shifted = [[i + words[0], j + words[1]] for i, j in found["sentences"][1]["alignment"]]
    assert found["alignment"] == found["sentences"][0]["alignment"] + shifted


def test_nothing_to_translate_stays_as_it_is(server):
    for text in ("", " \n ", "\u00a0"):
        assert ask(server, q=text) == {"translatedText": text}


def test_a_sentence_that_is_too_long_is_translated_in_parts(server):
    long = " ".join(["dog"] * 1100)
    found = own(server, q=long, split=False, beam=1).json()["translations"][0]
    parts = found["sentences"]
    assert " ".join(part["source"] for part in parts) == long
    assert " ".join(part["text"] for part in parts) == found["text"]
    assert own(server, q="x" * 1100, beam=1).status_code == 200


def test_markup_is_kept(server):
    html = f"<p class='a'>{SENTENCES[0]} <b>bird</b> &amp; cat</p><!-- x --><hr>"
    found = ask(server, q=html, format="html")["translatedText"]
    assert re.findall(r"<[^>]*>", found) == re.findall(r"<[^>]*>", html)


def test_words_and_attention_are_told_on_request(server):
    found = own(server, q=SENTENCES[0], attention=True, alignments=True).json()["translations"][0]
    assert all(len(link) == 2 for link in found["alignment"])
    model = found["attention"]["models"][0]
    assert model["source"][-1] == "</s>"
    cross = model["cross"]
    size = cross["layers"] * cross["heads"] * len(model["target"]) * len(model["source"])
    assert len(base64.b64decode(cross["weights"])) == size


def test_a_sentence_can_be_looked_at(server):
    model = own(server, "/v1/attend", q=SENTENCES[0], beam=3).json()["models"][0]
    assert len(model["steps"]) == len(model["target"])
    assert model["beam"]
    given = own(server, "/v1/attend", q=SENTENCES[0], target_text="le chien").json()["models"][0]
    assert given["text"] == "le chien"
    long = server.client.post("/v1/attend", json={"q": "dog " * 300, "source": "en"})
    assert long.status_code == 400
    assert "200" in long.json()["error"]


def test_a_stream_tells_of_steps_and_ends_with_the_whole(server, by_command):
    text = f"{SENTENCES[0]}\n{SENTENCES[1]}"
    answer = own(server, "/v1/stream", q=text, n_best=2, probabilities=True)
    assert answer.headers["content-type"] == "application/x-ndjson"
    events = [json.loads(line) for line in answer.text.splitlines()]
    assert events[-1]["event"] == "end"
    assert events[-1]["text"] == "\n".join(one["text"] for one in by_command[:2])
    done = {event["sentence"]: event for event in events if event["event"] == "sentence"}
    assert [done[number]["source"] for number in (0, 1)] == SENTENCES[:2]
    assert done[0]["text"] == by_command[0]["text"]
    assert len(done[0]["alternatives"]) == 1
    for event in events:
        if event["event"] == "step":
            assert event["text"] == event["beam"][0]["text"]
            assert event["step"] >= 1


def test_models_and_languages_are_listed(server):
    found = server.client.get("/v1/models").json()
    assert found["default"] == "run"
    model = found["models"][0]
    assert (model["source"], model["target"], model["engine"]) == ("en", "fr", "torch")
    assert model["beam"] == 4
    assert model["parameters"] > 10_000
    languages = server.client.get("/languages").json()
    assert languages == [{"code": "en", "name": "English", "targets": ["fr"]}]
    settings = server.client.get("/frontend/settings").json()
    assert settings["charLimit"] == 20_000
    assert settings["keyRequired"] is False
    assert settings["language"]["target"] == {"code": "fr", "name": "French"}
    assert server.client.get("/health").json() == {"status": "ok"}


BAD = [
    ("not JSON", b"{", "JSON", 400),
    ("deep JSON", b"[" * 100_000, "", 400),
    ("no object", b"[]", "", 400),
    ("not UTF-8", b'{"q": "\xff"}', "JSON", 400),
    ("half a character in bytes", b'{"q": "\xed\xa0\x80", "source": "en"}', "JSON", 400),
    ("half a character", rb'{"q": "\ud800", "source": "en", "target": "fr"}', "JSON", 400),
    ("no text", {"source": "en", "target": "fr"}, "q:", 400),
    ("a number for a text", {"q": 5}, "q:", 400),
    ("no texts", {"q": []}, "q:", 400),
    ("a text among numbers", {"q": ["a", 1]}, "q:", 400),
    ("an unknown form", {"q": "a", "format": "pdf"}, "format:", 400),
    ("too many alternatives", {"q": "a", "alternatives": 11}, "10 alternatives", 400),
    ("alternatives in words", {"q": "a", "alternatives": "many"}, "alternatives:", 400),
    ("an unknown source", {"q": "a", "source": "xx"}, "source", 400),
    ("an unknown target", {"q": "a", "target": "xx"}, "target", 400),
    ("too long", {"q": "a" * 20_001}, "20,000 characters", 400),
    ("too many texts", {"q": ["a"] * 513}, "512 texts", 400),
]


@pytest.mark.parametrize(("body", "told", "status"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_what_is_wrong_is_told_in_one_form(server, body, told, status):
    if isinstance(body, dict):
        body = json.dumps({"source": "en", "target": "fr", **body}).encode()
    for path in ("/translate", "/v1/translate", "/v1/stream"):
        if path != "/translate" and told in ("format:", "10 alternatives", "alternatives:"):
            continue
        if path == "/v1/stream" and told == "512 texts":
            told = "q:"  # it takes one
        answer = server.client.post(
            path, content=body, headers={"Content-Type": "application/json"}
        )
        assert answer.status_code == status, answer.text
        assert answer.json().keys() == {"error"}
        assert told in answer.json()["error"]


OWN_BAD = [
    ({"beam": 17}, 400),
    ({"beam": 0}, 400),
    ({"n_best": 12}, 400),
    ({"length_penalty": "short"}, 400),
    ({"length_penalty": "gnmt:-1e999"}, 400),
    ({"length_penalty": "gnmt:1e308"}, 400),
    ({"model": "other"}, 404),
    ({"q": ["a"] * 17, "attention": True}, 400),
    ({"probabilities": "perhaps"}, 400),
]


@pytest.mark.parametrize(("body", "status"), OWN_BAD)
def test_what_is_wrong_with_a_search_is_told(server, body, status):
    answer = server.client.post("/v1/translate", json={"q": "a", "source": "en", **body})
    assert answer.status_code == status, answer.text
    assert answer.json().keys() == {"error"}


def test_other_addresses_ways_and_types_are_told_in_the_same_form(server):
    client = server.client
    answers = {
        404: client.get("/nothing"),
        405: client.get("/translate"),
        415: client.post("/translate", content=b"a", headers={"Content-Type": "text/plain"}),
    }
    for status, answer in answers.items():
        assert answer.status_code == status
        assert answer.json().keys() == {"error"}


def test_what_can_be_got_has_a_head(server):
    for path in ("/", "/health", "/languages", "/spec", "/v1/models", "/nothing"):
        head, whole = server.client.head(path), server.client.get(path)
        assert (head.status_code, head.content) == (whole.status_code, b"")
        assert head.headers["content-length"] == whole.headers["content-length"]
    assert server.client.head("/translate").status_code == 405


def test_every_answer_says_that_it_is_no_page(server):
    for path in ("/health", "/nothing", "/languages", "/spec"):
        headers = server.client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "server" not in headers


def test_all_routes_are_described_and_nothing_is_fetched_from_elsewhere(server):
    found = server.client.get("/spec").json()
    assert {"/translate", "/detect", "/v1/stream", "/v1/attend"} <= found["paths"].keys()
    body = found["paths"]["/translate"]["post"]["requestBody"]["content"]["application/json"]
    name = body["schema"]["$ref"].rpartition("/")[2]
    assert {"q", "source", "target"} <= set(found["components"]["schemas"][name]["required"])
    assert "Notes\\n" not in json.dumps(found)  # a section of a docstring
    page = server.client.get("/docs")
    files = re.findall(r'(?:src|href)="(?!data:)([^"]*)"', page.text)
    assert len(files) == 3
    for file in files:
        answer = server.client.get(f"/{file}")
        assert answer.status_code == 200
        again = server.client.get(f"/{file}", headers={"If-None-Match": answer.headers["etag"]})
        assert again.status_code == 304
    assert "unsafe" not in page.headers["content-security-policy"]


def test_pages_of_other_origins_may_ask(server):
    origin = {"Origin": "http://elsewhere.example"}
    assert (
        server.client.get("/languages", headers=origin).headers["access-control-allow-origin"]
        == "*"
    )
    asked = server.client.options(
        "/translate",
        headers={
            **origin,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "content-type",
        },
    )
    assert asked.status_code == 200


def test_what_is_counted_can_be_scraped(server):
    before = server.metric("heedful_sentences_total")
    ask(server, q=SENTENCES)
    assert server.metric("heedful_sentences_total") == before + len(SENTENCES)
    assert server.metric("heedful_requests_total") > 1
    assert server.metric("heedful_queue_sentences") == 0


def test_texts_and_addresses_stay_out_of_the_log(server):
    ask(server, q="secretword goes to the house")
    server.client.post("/translate?q=secretword", json={"q": {"secretword": 1}})
    server.client.get("/secretword")
    server.client.request("SECRETWORD", "/health")
    server.until(lambda: "/translate 200" in server.log())
    assert "secretword" not in server.log().lower()
    assert "127.0.0.1" not in server.log()


def test_a_coverage_penalty_is_refused_by_a_transformer_on_every_route(server):
    assert "coverage_penalty" not in server.client.get("/v1/models").json()["models"][0]
    for path in ("/v1/translate", "/v1/stream", "/v1/attend"):
        refusal = server.client.post(
            path, json={"q": SENTENCES[0], "source": "en", "coverage_penalty": 0.2}
        )
        assert refusal.status_code == 400
        assert "this decoder has one for each layer" in refusal.text
