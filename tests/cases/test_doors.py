"""One line is read in different ways by the command line, Python, the server and CTranslate2."""

import json

import pytest

from heedful.analysis.attend import attend
from heedful.exchange.convert import WriteOptions, export_model
from heedful.exchange.ctranslate2.translator import ExportedTranslator
from heedful.translation.translator import Translator
from tests.support.serving import serving

QUICK = ("--device", "cpu", "--precision", "fp32", "--threads", "1")
PLAIN = "my boy sees a dog"
LINES = [PLAIN, PLAIN.upper(), f"{PLAIN} 👍", f"  👍 {PLAIN}", "my boy {{x}} sees a dog", "12", ""]


def test_command_python_and_server_answer_alike(heedful_cli, plain_server, toy_run, translator):
    expected = [result.text for result in translator.translate(LINES)]
    typed = "".join(f"{line}\n" for line in LINES)
    done = heedful_cli("translate", toy_run, *QUICK, stdin=typed)
    assert done.stdout.split("\n") == [*expected, ""]
    body = {"q": LINES, "split": False, "source": "en", "target": "fr"}
    answer = plain_server.client.post("/v1/translate", json=body).json()
    assert [text["text"] for text in answer["translations"]] == expected


def test_every_door_can_read_exactly(heedful_cli, zygote, toy_run):
    exact = Translator.load(toy_run, device="cpu", precision="fp32", threads=1, reading="exact")
    expected = [result.text for result in exact.translate(LINES)]
    typed = "".join(f"{line}\n" for line in LINES)
    asked = ("--reading", "exact", "--format", "jsonl")
    done = heedful_cli("translate", toy_run, *QUICK, *asked, stdin=typed)
    entries = [json.loads(line) for line in done.stdout.splitlines()]
    assert [entry["text"] for entry in entries] == expected
    assert not any("reading" in entry for entry in entries)
    with serving(zygote, toy_run, "--precision", "fp32", "--reading", "exact") as server:
        body = {"q": LINES, "split": False, "source": "en", "target": "fr"}
        answer = server.client.post("/v1/translate", json=body).json()
        assert [text["text"] for text in answer["translations"]] == expected


def test_an_exported_model_reads_as_its_run_and_puts_what_stood_inside_at_the_end(
    heedful_cli, toy_run, tmp_path
):
    folder = tmp_path / "exported"
    export_model(toy_run, "ctranslate2", folder, options=WriteOptions("", 64), sentences=[PLAIN])
    exported = ExportedTranslator.load(folder, device="cpu")
    (plain,) = exported.translate([PLAIN])
    upper, behind, before, inside, number = exported.translate(LINES[1:-1])
    assert upper.text == plain.text.upper()
    assert behind.text == f"{plain.text} 👍" and before.text == f"  👍 {plain.text}"
    assert inside.text == f"{plain.text} {{{{x}}}}"
    assert inside.reading is not None and inside.reading.held[0].where == "end"
    assert number.text == "12"
    (term,) = exported.translate([PLAIN], glossary={"dog": "toutou"})
    assert term.text.split(" ").count("toutou") == 1
    done = heedful_cli("translate", folder, "--engine", "ctranslate2", stdin=f"{LINES[4]}\n")
    assert done.stdout == f"{inside.text}\n" and "no alignment shows" in done.stderr
    exact = ExportedTranslator.load(folder, device="cpu", reading="exact")
    assert exact.translate([LINES[2]])[0].reading is None


def test_an_attended_line_is_the_one_that_the_model_reads(translator):
    shown = attend(translator, PLAIN.upper())
    assert shown.source == attend(translator, PLAIN).source


@pytest.mark.parametrize("reading", ["exact", "text"])
def test_scores_are_of_characters_alone(heedful_cli, toy_run, tmp_path, reading):
    (tmp_path / "s.en").write_text(f"{PLAIN}\n\ufeff{PLAIN}\n{PLAIN.upper()}\n", "utf-8")
    (tmp_path / "t.fr").write_text("le chien\n" * 3, "utf-8")
    files = ("--source", tmp_path / "s.en", "--target", tmp_path / "t.fr")
    done = heedful_cli("score", toy_run, *files, *QUICK, "--reading", reading)
    plain, _, capitals = map(float, done.stdout.splitlines())
    assert capitals != plain
    (tmp_path / "s.en").write_text(f"{PLAIN}\nmy \ufeffboy sees a dog\n{PLAIN}\n", "utf-8")
    done = heedful_cli("score", toy_run, *files, *QUICK, "--reading", reading)
    plain, marked, _ = map(float, done.stdout.splitlines())
    assert (plain == marked) is (reading == "text")
