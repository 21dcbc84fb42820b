"""An imported CTranslate2 model gives the same probabilities, greedy and beam outputs."""

import json
import lzma
import shutil

import numpy as np
import pytest
from tests.oracles.numpy_ctranslate2 import open_plain

from heedful.errors import ExchangeError
from heedful.exchange.convert import import_model
from heedful.exchange.ctranslate2 import read as ctranslate2
from heedful.exchange.ctranslate2.engine import Engine
from heedful.exchange.formats import ComparedReader, ReadOptions
from heedful.exchange.parity import ReferenceModel, compare
from heedful.search.settings import SearchOptions
from heedful.translation.translator import Translator

OPTIONS = ReadOptions("ar", "en")
PENALTIES = {"beam4_lenpen0": "none", "beam4_lenpen0.6": "power:0.6", "beam4_lenpen1": "power:1"}


@pytest.fixture(scope="module")
def aren(corpora, tmp_path_factory):
    """The folder of the model, unpacked."""
    here, folder = corpora / "fixtures-transformer-aren", tmp_path_factory.mktemp("aren")
    with lzma.open(here / "model.bin.xz") as packed:
        (folder / "model.bin").write_bytes(packed.read())
    for side in ("source", "target"):
        shutil.copy(here / f"{side}_vocabulary.txt", folder)
    return folder


@pytest.fixture(scope="module")
def cases(corpora):
    return json.loads((corpora / "fixtures-transformer-aren/cases.json").read_text())["cases"]


@pytest.fixture(scope="module")
def imported(aren, tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "aren"
    report, notes = import_model("ctranslate2", aren, run, options=OPTIONS)
    assert report.parity.difference < 1e-5
    assert report.round_trips == report.sentences
    assert "spaces" in notes[0]
    return Translator.load(run, device="cpu", precision="fp32", threads=1)


def lines(cases):
    return [" ".join(case["source"]) for case in cases]


def test_each_token_has_the_same_probability(imported, cases):
    greedy = [case["greedy"] for case in cases]
    found = imported.score(lines(cases), [" ".join(one["tokens"]) for one in greedy])
    for mine, one in zip(found, greedy, strict=True):
        np.testing.assert_allclose(mine, one["token_log_probs_incl_eos"], atol=1e-5)


def test_greedy_outputs_are_equal(imported, cases):
    found = imported.translate(lines(cases), beam=1)
    assert [list(one.tokens) for one in found] == [case["greedy"]["tokens"] for case in cases]


@pytest.mark.parametrize("name", PENALTIES)
def test_the_best_of_a_beam_is_equal(imported, cases, name):
    found = imported.translate(lines(cases), beam=4, length_penalty=PENALTIES[name])
    best = [case[name][0] for case in cases]
    assert [list(one.tokens) for one in found] == [one["tokens"] for one in best]
    np.testing.assert_allclose([f.score for f in found], [one["score"] for one in best], atol=1e-5)


@pytest.mark.parametrize("beam", [1, 4])
def test_the_expectations_of_its_own_tests_are_met(imported, corpora, beam):
    text = (corpora / "fixtures-transformer-aren/upstream-cases.json").read_text()
    for case in json.loads(text)["cases"]:
        prefixes = [" ".join(case["prefix"])] if "prefix" in case else None
        found = imported.translate(lines([case]), beam=beam, target_prefix=prefixes)[0]
        assert list(found.tokens) == case["target"]


def test_the_plain_computation_agrees_without_the_library(aren, imported, cases):
    model = ctranslate2.read(aren, OPTIONS)
    plain = open_plain(aren, model)
    assert isinstance(plain, ReferenceModel)
    assert isinstance(ctranslate2, ComparedReader)
    sentences = lines(cases)[:4]
    parity = compare(plain, ctranslate2.open_engine(aren, model), sentences, 1e-5)
    parity.check()
    assert parity.same_outputs >= 3  # greedy on one side


@pytest.mark.parametrize("name", PENALTIES)
def test_the_engine_searches_as_its_library_does(aren, cases, name):
    engine = Engine(aren, threads=1)
    found = engine.search(
        [case["source"] for case in cases],
        [len(case["source"]) + 50 for case in cases],
        SearchOptions(length_penalty=PENALTIES[name]),
    )
    for mine, case in zip(found, cases, strict=True):
        assert [list(one.tokens) for one in mine] == [one["tokens"] for one in case[name]]
        scores = [one["score"] for one in case[name]]
        np.testing.assert_allclose([one.score for one in mine], scores, atol=1e-5)


def test_the_engine_keeps_to_the_limit_of_each_line(aren, cases):
    engine = Engine(aren, threads=1)
    sources = [case["source"] for case in cases[:6]]
    settings = SearchOptions(beam=3, length_penalty="power:1.0")
    free = engine.search(sources, [60] * 6, settings)
    limits = [2, 60, 4, 60, 1, 60]
    kept = engine.search(sources, limits, settings)
    assert kept[1::2] == free[1::2]
    for found, limit in zip(kept[::2], limits[::2], strict=True):
        assert found
        assert all(len(one.tokens) <= limit for one in found)
        assert len({one.tokens for one in found}) == len(found)


def test_forbidden_tokens_are_searched_around(aren, cases):
    source = [cases[0]["source"]]
    settings = SearchOptions(beam=2, length_penalty="none")
    assert "a" in Engine(aren, threads=1).search(source, [60], settings)[0][0].tokens
    found = Engine(aren, forbidden=["a"], threads=1).search(source, [60], settings)
    assert all("a" not in one.tokens for one in found[0])


def test_a_prefix_is_scored_like_all_other_tokens(aren, imported, cases):
    source, prefix = cases[0]["source"], ["a", "t", "s"]
    found = Engine(aren, threads=1).search(
        [source], [60], SearchOptions(length_penalty="none"), [prefix]
    )[0][0]
    ours = imported.translate(
        [" ".join(source)], beam=4, length_penalty="none", target_prefix=[" ".join(prefix)]
    )[0]
    assert found.tokens == ours.tokens
    assert found.log_probability == pytest.approx(ours.log_probability, abs=1e-5)


def test_a_vocabulary_of_another_model_is_refused(aren, tmp_path):
    folder = tmp_path / "other"
    shutil.copytree(aren, folder)
    with (folder / "target_vocabulary.txt").open("a", encoding="utf-8") as file:
        file.write("zz\n")
    with pytest.raises(ExchangeError, match="44 tokens for 43 rows"):
        ctranslate2.read(folder, OPTIONS)
