"""Attention, candidates and the beam of a real run, on pages and in pictures."""

import base64
import json
import math
import re
import shutil
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from matplotlib.image import imread

from heedful.analysis.attend import LONGEST, attend
from heedful.analysis.attention_files import AttentionSelection, sheets
from heedful.errors import HeedfulError, SettingError, TextError
from heedful.translation.translator import Translator
from heedful.visualise.record import ExplorerRecord
from tests.support.commands import refused

SENTENCE = "the big red dog"
KINDS = ("encoder", "decoder", "cross")
WITHOUT = """
import sys
for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
    del sys.modules[name]
sys.modules["matplotlib"] = None
from heedful.cli.main import main
main()
"""


@pytest.fixture(scope="module")
def translator(trained):
    return Translator.load(trained, device="cpu", precision="fp32")


@pytest.fixture(scope="module")
def record(translator):
    return attend(translator, SENTENCE, name="one")


def words(svg):
    root = ElementTree.parse(svg).getroot()
    return ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]


def test_every_file_is_written_and_the_probabilities_are_printed(heedful_cli, trained, tmp_path):
    outs = [tmp_path / f"dog{ending}" for ending in (".html", ".pdf", ".png", ".svg", ".json")]
    options = [part for out in outs for part in ("--out", out)]
    options += ("--max-length", 4, "--measures", "--weights", "last")
    done = heedful_cli("attend", trained, SENTENCE, *options)
    assert done.returncode == 0, done.stderr
    assert sorted(tmp_path.iterdir()) == sorted(outs)
    shown = json.loads(outs[4].read_text())
    (model,) = shown["models"]
    assert shown["title"] == SENTENCE
    assert model["name"] == "run (step 24)"
    lines = done.stdout.splitlines()
    assert lines[0] == f"run (step 24): {model['text']}   score {model['score']:.3f}"
    assert lines[1].split()[0] == model["target"][0]
    assert len([line for line in lines if line.startswith("  encoder")]) == 2 * 4
    assert lines[-5:] == [f"wrote {out}" for out in outs]
    assert len(re.findall(rb"/Type /Page\b", outs[1].read_bytes())) == 6
    assert imread(outs[2]).shape[1] > 500
    found = words(outs[3])
    layers = [
        f"{kind}, layer {n}" for kind in ("encoder attention", "decoder attention") for n in (1, 2)
    ]
    assert [one for one in found if "layer" in one][:4] == layers
    assert [one for one in found if one.startswith(("mean", "head"))][:5] == [
        "mean",
        *(f"head {n}" for n in (1, 2, 3, 4)),
    ]
    page = outs[0].read_text()
    assert SENTENCE in page
    assert model["cross"]["weights"] in page


def test_the_document_holds_what_the_model_computes(heedful_cli, trained, translator, tmp_path):
    out = tmp_path / "dog.json"
    done = heedful_cli("attend", trained, SENTENCE, "--out", out, "--precision", "fp32")
    assert done.returncode == 0, done.stderr
    (model,) = json.loads(out.read_text())["models"]
    attention = translator.attend(SENTENCE)
    assert model["source"] == list(attention.source_tokens)
    assert model["target"][: len(attention.target_tokens)] == model["target"]
    packed = model["cross"]
    shape = [packed[name] for name in ("layers", "heads", "queries", "keys")]
    codes = np.frombuffer(base64.b64decode(packed["weights"]), dtype=np.uint8).reshape(shape)
    size = len(model["target"])
    np.testing.assert_allclose((codes / 255) ** 2, attention.cross[:, :, :size], atol=0.005)


def test_rows_sum_to_one_and_the_decoder_never_looks_ahead(record):
    for kind in KINDS:
        np.testing.assert_allclose(getattr(record, kind).sum(axis=-1), 1.0, atol=1e-5)
    assert not np.triu(record.decoder, 1).any()
    assert record.start == "<s>"


def test_the_steps_are_those_of_the_translation(record, translator):
    found = translator.translate([SENTENCE])[0]
    assert (record.text, record.score) == (found.text, found.score)
    ended = record.target[-1] == "</s>"
    assert record.target[: len(found.tokens)] == found.tokens
    assert len(record.target) == len(found.tokens) + ended
    chosen = []
    for token, step in zip(record.target, record.steps, strict=True):
        assert 10 <= len(step.candidates) <= 11
        probabilities = [probability for _, probability in step.candidates]
        assert probabilities == sorted(probabilities, reverse=True)
        assert sum(probabilities) <= 1.0 + 1e-5
        chosen.append(dict(reversed(step.candidates))[token])
    assert sum(map(math.log, chosen)) == pytest.approx(found.log_probability, abs=1e-3)


def test_the_beam_ends_in_the_translation(record):
    best = [(s, n) for s, nodes in enumerate(record.beam) for n in nodes if n.fate == "best"]
    ((step, node),) = best
    place = record.beam[step].index(node)
    path = []
    while place is not None:
        path.append(record.beam[step][place].token)
        place, step = record.beam[step][place].parent, step - 1
    assert tuple(reversed(path)) == record.target
    assert node.score == pytest.approx(record.score)


def test_a_given_translation_is_forced(translator):
    target = "le gros chien"
    shown = attend(translator, SENTENCE, target)
    assert shown.name == "run"
    assert shown.text == target
    assert shown.target[-1] == "</s>"
    assert shown.beam == ()
    (each,) = translator.score([SENTENCE], [target])
    for token, step, expected in zip(shown.target, shown.steps, each, strict=True):
        assert math.log(dict(reversed(step.candidates))[token]) == pytest.approx(expected, abs=1e-3)


def test_a_given_translation_is_read_as_score_reads_it(trained):
    text = Translator.load(trained, device="cpu", precision="fp32", reading="text")
    composed, decomposed = "le bébé", "le be\u0301be\u0301"
    expected, read = (attend(text, SENTENCE, target) for target in (composed, decomposed))
    assert read.target == expected.target and read.text == composed
    assert read.score == pytest.approx(expected.score)
    (scored,) = text.score([SENTENCE], [decomposed])
    assert len(scored) == len(read.target)


def test_two_checkpoints_stand_side_by_side(heedful_cli, trained, tmp_path):
    options = ("--weights", "step-8", "--beside-weights", "step-24", "--target", "le chien")
    out = tmp_path / "two.json"
    done = heedful_cli("attend", trained, SENTENCE, *options, "--out", out)
    assert done.returncode == 0, done.stderr
    names = [model["name"] for model in json.loads(out.read_text())["models"]]
    assert names == ["run (step 8)", "run (step 24)"]
    other = tmp_path / "other"
    shutil.copytree(trained, other)
    picture = tmp_path / "two.svg"
    choice = ("--kind", "cross", "--layer", -1, "--head", 2, "--numbers", "--weights", "last")
    choice += ("--beside-weights", "last")
    done = heedful_cli("attend", trained, SENTENCE, "--beside", other, "--out", picture, *choice)
    assert done.returncode == 0, done.stderr
    titles = [one for one in words(picture) if "layer" in one]
    assert titles == [f"{name} (step 24): cross attention, layer 2" for name in ("run", "other")]
    assert [one for one in words(picture) if one.startswith(("mean", "head"))] == ["head 2"] * 2


def test_a_line_comes_from_standard_input(heedful_cli, trained):
    done = heedful_cli("attend", trained, "-", stdin=f"{SENTENCE}\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout == heedful_cli("attend", trained, SENTENCE).stdout
    done = heedful_cli("attend", trained, "-", stdin="one\n\ntwo\n")
    refused(done, "must be one line, but has 2")
    refused(heedful_cli("attend", trained, "-", stdin=""), "must have words")


def test_a_single_unknown_subword_is_warned_of_once(heedful_cli, trained):
    sentence = "the big red dog and the small cat sleep and the old man sees the house 😀"
    done = heedful_cli("attend", trained, sentence)
    (line,) = done.stderr.splitlines()
    assert line.startswith("heedful: warning: ") and "(“😀”) are unknown to this model" in line


def test_views_and_choices_lay_out_sheets(record):
    both = ExplorerRecord("", (record, record))
    assert len(sheets(ExplorerRecord("", (record,)), AttentionSelection())) == 6
    assert len(sheets(both, AttentionSelection(kinds=("cross",), layers=(2, -1)))) == 2
    (mean,) = sheets(
        ExplorerRecord("", (record,)), AttentionSelection(kinds=("encoder",), view="mean")
    )
    assert [name for name, _ in mean.panels] == ["layer 1", "layer 2"]
    np.testing.assert_allclose(mean.panels[1][1], record.encoder[1].mean(axis=0))
    encoder, decoder, cross = sheets(
        ExplorerRecord("", (record,)), AttentionSelection(view="rollout")
    )
    for sheet in (encoder, decoder):
        np.testing.assert_allclose(sheet.panels[0][1].sum(axis=1), 1.0, atol=1e-5)
    # two layers hand on three quarters of what a state was before to the source
    np.testing.assert_allclose(cross.panels[0][1].sum(axis=1), 0.75, atol=1e-5)
    assert decoder.columns == (record.start, *record.target[:-1])
    assert decoder.rows == record.target


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (("--layer", 3), ("--layer must be from 1 to 2", "but is 3")),
        (("--layer", 0), ("--layer", "but is 0")),
        (("--head", -5), ("--head must be from 1 to 4", "but is -5")),
        (("--kind", "both"), ("--kind", "encoder, decoder, cross", "'both'")),
        (("--view", "flow"), ("--view", "heads, mean, rollout", "'flow'")),
        (("--view", "mean", "--head", 1), ("--head", "--view mean")),
        (("--view", "rollout", "--layer", 1), ("--layer", "--view rollout")),
        (("--target", " "), ("the given translation must have words",)),
        (("--target", "a\nb"), ("the given translation must be one line",)),
        (("--weights", "step-7"), ("step-7", "step-24")),
        (
            ("--weights", "last", "--beside-weights", "step-24"),
            ("two different models", "run (step 24)"),
        ),
        (("--length-penalty", "long"), ("long",)),
        (("--target", "le chien", "--beam", "3"), ("--beam", "--target there is no search")),
    ],
)
def test_what_cannot_be_shown_is_refused_before_anything_is_written(
    heedful_cli, trained, tmp_path, options, parts
):
    out = tmp_path / "a.svg"
    refused(heedful_cli("attend", trained, SENTENCE, "--out", out, *options), *parts)
    assert not list(tmp_path.iterdir())


def test_bad_sentences_runs_and_files_are_refused(heedful_cli, trained, text, tmp_path):
    refused(heedful_cli("attend", trained, "  "), "the sentence must have words")
    refused(heedful_cli("attend", tmp_path / "no", SENTENCE), "run folder", "does not exist")
    refused(heedful_cli("attend", text, SENTENCE), "holds no config.json")
    done = heedful_cli("attend", trained, "dog " * 299 + "dog")
    refused(done, f"at most {LONGEST} subwords", "300")
    for options in (["caf\udce9 dog"], [SENTENCE, "--target", "caf\udce9"]):
        done = heedful_cli("attend", trained, *options, "--reading", "text")
        refused(done, "must be text", "at position 3")
    out = tmp_path / "a.gif"
    refused(heedful_cli("attend", trained, SENTENCE, "--out", out), ".html", ".svg", "a.gif")
    out = tmp_path / "missing" / "a.html"
    refused(heedful_cli("attend", trained, SENTENCE, "--out", out), "an existing folder", code=1)
    out = tmp_path / "a.html"
    done = heedful_cli("attend", trained, SENTENCE, "--out", out, "--layer", 1)
    refused(done, "no --out is a picture")
    for options in (("--view", "mean"), ("--numbers",)):
        done = heedful_cli("attend", trained, SENTENCE, "--measures", *options)
        refused(done, "no --out is a picture")
    done = heedful_cli("attend", trained, SENTENCE, "--target-language", "de")
    assert done.returncode == 2
    assert "--target-language" in done.stderr
    assert not list(tmp_path.iterdir())


def test_without_matplotlib_pages_are_written_and_pictures_refused(heedful_cli, trained, tmp_path):
    out = tmp_path / "a.html"
    done = heedful_cli("-c", WITHOUT, "attend", trained, SENTENCE, "--out", out)
    assert done.returncode == 0, done.stderr
    assert out.exists()
    done = heedful_cli("-c", WITHOUT, "attend", trained, SENTENCE, "--out", tmp_path / "a.png")
    refused(done, "pip install 'heedful[plot]'")


def test_several_models_or_one_without_attention_are_refused(trained):
    with pytest.raises(SettingError, match="got an ensemble of 2"):
        attend(Translator.load([trained, trained], device="cpu"), SENTENCE)
    with pytest.raises(TextError, match="must be one line"):
        attend(Translator.load(trained, device="cpu"), "one\ntwo")


def test_weights_that_have_diverged_are_refused(trained):
    broken = Translator.load(trained, device="cpu", precision="fp32")
    with torch.no_grad():
        for one in broken.models[0].parameters():
            one.fill_(math.nan)
    with pytest.raises(HeedfulError, match="these weights have diverged"):
        attend(broken, SENTENCE)
    with pytest.raises(HeedfulError, match="these weights have diverged"):
        attend(broken, SENTENCE, "le chien")


def test_two_hundred_subwords_are_shown(heedful_cli, trained, tmp_path):
    out = tmp_path / "long.html"
    tags = ("--beam", 2, "--max-length", 200)
    done = heedful_cli("attend", trained, "the dog " * 99 + "the dog", "--out", out, *tags)
    assert done.returncode == 0, done.stderr
    assert re.search(r"wrote .*long\.html", done.stdout)
    assert 0.1e6 < out.stat().st_size < 4e6
