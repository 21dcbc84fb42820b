import pytest
import torch

from heedful.bench import search_profile
from heedful.bench.random_run import make_random_run, random_lines
from heedful.bench.search_profile import profile_search
from heedful.config.load import load_config
from heedful.search.settings import SearchOptions
from heedful.translation.translator import Translator


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = make_random_run(tmp_path_factory.mktemp("run"), load_config("tiny", ()), 100)
    return made.folder.path


@pytest.mark.parametrize(
    ("precision", "family"),
    [("fp32", "transformer"), ("int8", "transformer")],
)
def test_shares_are_of_the_whole_and_the_model_stays_as_it_was(tmp_path, precision, family):
    settings = [f"model.{side}={family}" for side in ("encoder", "decoder")]
    run = make_random_run(tmp_path, load_config("tiny", settings), 100)
    translator = Translator.load(run.folder.path, device="cpu", precision=precision)
    lines, options = random_lines(100, 6, 5), SearchOptions(max_length="4")
    before = [one.tokens for one in translator.translate(lines, options)]
    found = profile_search(translator.model, lambda: translator.translate(lines, options))
    shares = found["profile"]
    assert sum(shares.values()) == pytest.approx(1)
    assert all(share > 0 for share in shares.values())
    assert 0 < found["products alone"]["of a pass"] < 2  # timed apart from the pass
    assert not {"encode", "start", "step", "log_probabilities"} & {*vars(translator.model)}
    assert [one.tokens for one in translator.translate(lines, options)] == before


def test_products_are_made_again_as_often_as_the_search_made_them(folder, monkeypatch):
    translator = Translator.load(folder, device="cpu", precision="fp32")
    called = {}

    def seconds(products, rows):
        called.setdefault(len(products), []).append(rows)
        return float(rows * len(products))

    monkeypatch.setattr(search_profile, "_seconds", seconds)
    options = SearchOptions(beam=2, max_length="4", stop="as-ctranslate2")
    found = profile_search(
        translator.model, lambda: translator.translate(random_lines(100, 6, 5), options)
    )
    layers = len(translator.model.decoder.layers)
    (output,) = {1} & {*called} - {layers}
    # one hypothesis of each of five sentences at first, then two, in four steps and the last
    assert called[output] == called[6 * layers] == [5, 10]
    (tokens,) = called[4 * layers]  # of the encoder
    assert tokens >= 5 * 6
    steps = 5 + 4 * 10
    alone = tokens * (4 * layers + layers) + steps * (6 * layers + 1)
    assert found["products alone"]["seconds"] == alone


def test_a_prepared_product_is_that_of_the_layer(folder):
    translator = Translator.load(folder, device="cpu", precision="int8")
    linear = translator.model.output.linear
    call = search_profile._call(linear, 3)
    call()
    x, out, *_ = call.kept
    assert torch.equal(out, linear(x))


@pytest.mark.parametrize(
    "setting",
    [
        pytest.param("model.encoder=average", marks=pytest.mark.family("pooled")),
        "model.attention.score=additive",
        pytest.param("model.experts.count=4", marks=pytest.mark.family("experts")),
    ],
)
def test_products_of_a_model_that_is_compiled_in_part_are_left_out(tmp_path, setting):
    run = make_random_run(tmp_path, load_config("tiny", [setting]), 100)
    translator = Translator.load(run.folder.path, device="cpu", precision="fp32")
    found = profile_search(
        translator.model,
        lambda: translator.translate(random_lines(100, 6, 2), SearchOptions(max_length="2")),
    )
    assert [*found] == ["profile"]
