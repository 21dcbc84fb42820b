"""White space in a line, through every door of a trained model."""

import json

import pytest

from heedful.analysis.attend import attend
from heedful.exchange.convert import WriteOptions, export_model
from heedful.exchange.ctranslate2.translator import ExportedTranslator
from heedful.translation.translator import Translator
from tests.support.serving import serving

CLEAN = "she sees the small house"
OUTER = [f"{CLEAN} ", f"  {CLEAN}", f"\t{CLEAN}\u3000", f"\u00a0{CLEAN}\u202f ", "   "]
INNER = [
    CLEAN.replace(" ", "  ", 2),
    CLEAN.replace(" ", "\u00a0"),
    CLEAN.replace(" ", "\u202f", 1),
    CLEAN.replace(" ", " \u3000", 1),
]
COLUMNS = [CLEAN.replace(" ", "\t", 1), CLEAN.replace(" ", "    ", 1)]
LINES = [CLEAN, *OUTER, *INNER, *COLUMNS]
QUICK = ("--device", "cpu", "--precision", "fp32")


@pytest.fixture(scope="module")
def translator(trained):
    return Translator.load(trained, device="cpu", precision="fp32")


def test_all_doors_answer_alike(heedful_cli, zygote, trained, translator, tmp_path):
    words = translator.translate(CLEAN).text
    assert words == words.strip() != ""
    expected = [line.replace(line.strip(), words) if line.strip() else line for line in LINES]
    assert [found.text for found in translator.translate(LINES)] == expected
    typed = "".join(f"{line}\n" for line in LINES)
    done = heedful_cli("translate", trained, *QUICK, stdin=typed)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split("\n") == [*expected, ""]
    with serving(zygote, trained, "--precision", "fp32") as server:
        ways = {"source": "en", "target": "fr"}
        layout = LINES[: -len(COLUMNS)]  # between columns of a text a server keeps the blanks
        answer = server.client.post("/translate", json={"q": layout, **ways}).json()
        assert answer == {"translatedText": expected[: len(layout)]}
        body = {"q": LINES, "split": False, **ways}
        answer = server.client.post("/v1/translate", json=body).json()
        assert [found["text"] for found in answer["translations"]] == expected


def test_an_exported_model_reads_the_same(heedful_cli, trained, tmp_path):
    folder = tmp_path / "exported"
    export_model(trained, "ctranslate2", folder, options=WriteOptions("", 64), sentences=[CLEAN])
    exported = ExportedTranslator.load(folder, device="cpu")
    (clean,) = exported.translate([CLEAN])
    expected = [line.replace(line.strip(), clean.text) if line.strip() else line for line in LINES]
    assert [found.text for found in exported.translate(LINES)] == expected
    typed = "".join(f"{line}\n" for line in LINES)
    done = heedful_cli("translate", folder, "--engine", "ctranslate2", stdin=typed)
    assert done.stdout.split("\n") == [*expected, ""]


def test_pairs_are_scored_and_aligned_by_their_words(heedful_cli, trained, translator, tmp_path):
    target = "elle voit la petite maison"
    dirty = target.replace(" ", "  ", 1)
    (tmp_path / "s.en").write_text("".join(f"{line}\n" for line in [CLEAN, *OUTER[:4], *INNER]))
    (tmp_path / "t.fr").write_text(f"{target}\n {dirty}\t\n" + f"{target}\n" * 7)
    files = ("--source", tmp_path / "s.en", "--target", tmp_path / "t.fr")
    done = heedful_cli("score", trained, *files, *QUICK, "--alignments", "--format", "jsonl")
    assert done.returncode == 0, done.stderr
    clean, *others = [json.loads(line) for line in done.stdout.splitlines()]
    assert clean["source_words"] == CLEAN.split(" ")
    for entry in others:
        assert entry["log_probability"] == pytest.approx(clean["log_probability"], abs=1e-4)
        for name in ("tokens", "alignment", "source_words", "target_words"):
            assert entry[name] == clean[name]
    assert sum(translator.score(OUTER[3], target)) == pytest.approx(
        clean["log_probability"], abs=1e-4
    )
    # a no-break space is another text, which a model may have learned to write
    assert translator.score(CLEAN, "dix\u00a0%") != translator.score(CLEAN, "dix %")


def test_options_of_a_line_see_its_words_alone(translator):
    options = {"alignments": True, "n_best": 2, "beam": 2, "probabilities": True}
    clean = translator.translate(CLEAN, target_prefix="la petite", **options)
    dirty = translator.translate(f"\t{INNER[1]} ", target_prefix=" la  petite\t", **options)
    assert dirty.text == f"\t{clean.text} "
    assert [other.text for other in dirty.alternatives] == [
        f"\t{other.text} " for other in clean.alternatives
    ]
    assert (dirty.tokens, dirty.score, dirty.log_probabilities, dirty.alignment) == (
        clean.tokens,
        clean.score,
        clean.log_probabilities,
        clean.alignment,
    )
    assert translator.attend(OUTER[2]).source_tokens == translator.attend(CLEAN).source_tokens
    seen, shown = (attend(translator, line, line, name="run") for line in (CLEAN, OUTER[3]))
    assert (seen.source, seen.target, seen.score) == (shown.source, shown.target, shown.score)
