"""Terms that a user has decided come out in other words."""

import json

import pytest

from tests.support.serving import serving

QUICK = ("--device", "cpu", "--precision", "fp32", "--threads", "1")

SENTENCE = "my boy sees a dog"


def test_a_term_has_the_translation_of_the_glossary_once(heedful_cli, toy_run, tmp_path):
    (tmp_path / "terms.tsv").write_text("dog\ttoutou\ndog\tmédor\n", "utf-8")
    (tmp_path / "keep.txt").write_text("boy\n", "utf-8")
    asked = ("--glossary", tmp_path / "terms.tsv", "--protected", tmp_path / "keep.txt")
    done = heedful_cli("translate", toy_run, *asked, *QUICK, stdin=f"{SENTENCE}\n")
    words = done.stdout.split()
    assert words.count("toutou") == 1 and words.count("boy") == 1
    assert "two translations of “dog”" in done.stderr


@pytest.mark.parametrize("reading", ["exact", "text"])
def test_inflected_forms_are_left_alone(translator, toy_run, reading):
    own = type(translator).load(toy_run, device="cpu", precision="fp32", reading=reading)
    lines = ["my boy sees dogs", "my boy sees a dog"]
    plain = own.translate(lines)
    terms = own.translate(lines, glossary={"dog": "toutou", "boys": "x"})
    assert terms[0].text == plain[0].text
    assert terms[1].text.split(" ").count("toutou") == 1


def test_a_term_may_contain_what_would_be_held_back(heedful_cli, toy_run, tmp_path):
    terms = {"{0} dogs": "{0} toutous", "C++17": "C++ 17", "a@b.org": "a@b.fr"}
    lines = "".join(f"{term}\t{put}\n" for term, put in terms.items())
    (tmp_path / "terms.tsv").write_text(lines, "utf-8")
    typed = "".join(f"my boy sees {term} too\n" for term in terms)
    options = ("--glossary", tmp_path / "terms.tsv", *QUICK)
    done = heedful_cli("translate", toy_run, *options, stdin=typed)
    for line, (term, put) in zip(done.stdout.splitlines(), terms.items(), strict=True):
        assert line.count(put) == 1 and term not in line


def test_a_server_has_terms_for_all_requests_and_says_what_it_held(zygote, toy_run, tmp_path):
    (tmp_path / "terms.tsv").write_text("dog\ttoutou\n", "utf-8")
    (tmp_path / "keep.txt").write_text("boy\n", "utf-8")
    files = ("--glossary", tmp_path / "terms.tsv", "--protected", tmp_path / "keep.txt")
    body = {"q": SENTENCE, "source": "en", "target": "fr"}
    with serving(zygote, toy_run, "--precision", "fp32", *files) as server:
        plain = server.client.post("/translate", json=body).json()
        assert set(plain) == {"translatedText"}
        words = plain["translatedText"].split()
        assert words.count("toutou") == 1 and words.count("boy") == 1
        own = {**body, "glossary": {"dog": "médor", "boy": "gars"}, "reading_notes": True}
        answer = server.client.post("/v1/translate", json=own).json()
        (text,) = answer["translations"]
        assert {held["put"] for held in text["reading"]["held"]} == {"médor", "gars"}
        silent = server.client.post("/v1/translate", json=body).json()["translations"][0]
        assert "reading" not in silent
        several = {**own, "q": f"{SENTENCE}. {SENTENCE}."}
        (text,) = server.client.post("/v1/translate", json=several).json()["translations"]
        assert "reading" not in text
        assert all(sentence["reading"]["held"] for sentence in text["sentences"])
        lines = server.client.post("/v1/stream", json=own).text.splitlines()
        (event,) = [event for event in map(json.loads, lines) if event["event"] == "sentence"]
        assert event["reading"]["held"]


def test_a_server_with_bad_terms_does_not_start(heedful_cli, toy_run, tmp_path):
    (tmp_path / "terms.tsv").write_text("dog\n", "utf-8")
    done = heedful_cli("serve", toy_run, "--glossary", tmp_path / "terms.tsv", "--port", 0)
    assert done.returncode == 2 and "line 1 is 'dog'" in done.stderr
    done = heedful_cli("serve", toy_run, "--protected", tmp_path / "none.txt", "--port", 0)
    assert done.returncode == 2 and "none.txt" in done.stderr


def test_a_beginning_stays_as_it_was_written(translator):
    (capitals, number) = translator.translate(
        [f"{SENTENCE.upper()} 👍", "12"], target_prefix=["mon garçon", ""]
    )
    assert capitals.text.startswith("mon garçon ") and capitals.text.endswith(" 👍")
    assert number.text == "12"
