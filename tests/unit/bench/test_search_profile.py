from collections import Counter, defaultdict

import pytest

from heedful.bench.random_run import make_random_run, random_lines
from heedful.bench.search_profile import profile_search
from heedful.config.load import load_config
from heedful.model.native.product import NativeLinear
from heedful.search.options import SearchOptions
from heedful.translation.translator import Translator


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = make_random_run(tmp_path_factory.mktemp("run"), load_config("tiny", ()), 100)
    return made.folder.path


@pytest.mark.parametrize(
    ("precision", "family"),
    [("fp32", "transformer"), ("int8", "transformer"), ("fp32", "recurrent")],
)
def test_shares_are_of_the_whole_and_the_model_stays_as_it_was(tmp_path, precision, family):
    settings = [f"model.{side}={family}" for side in ("encoder", "decoder")]
    run = make_random_run(tmp_path, load_config("tiny", settings), 100)
    translator = Translator.load(run.folder.path, precision=precision)
    lines, options = random_lines(100, 6, 5), SearchOptions(max_length="4")
    before = [one.tokens for one in translator.translate(lines, options)]
    found = profile_search(translator.model, lambda: translator.translate(lines, options))
    shares = found["profile"]
    assert sum(shares.values()) == pytest.approx(1)
    assert all(share > 0 for share in shares.values())
    assert 0 < found["products alone"]["of a pass"] < 1
    assert not {"encode", "start", "step", "log_probabilities"} & {*vars(translator.model)}
    assert [one.tokens for one in translator.translate(lines, options)] == before


def test_products_are_made_again_with_the_rows_of_the_search(folder, monkeypatch):
    translator = Translator.load(folder, precision="fp32")
    seen = defaultdict(Counter)
    plain = NativeLinear.forward

    def count(linear, x, relu=False):
        seen[linear][len(x)] += 1
        return plain(linear, x, relu)

    monkeypatch.setattr(NativeLinear, "forward", count)
    options = SearchOptions(beam=2, max_length="4", stop="as-ctranslate2")
    profile_search(translator.model, lambda: translator.translate(random_lines(100, 6, 5), options))
    layer = translator.model.decoder.layers[0]
    # one hypothesis of each of five sentences at first, then two; the median of three counts
    of_a_step = {5: 3, 10: 3}
    assert seen[translator.model.output.linear] == of_a_step
    assert seen[layer.feed_forward.linear1] == seen[layer.cross_attention.q_proj] == of_a_step
    sources = translator.model.encoder.layers[0].feed_forward.linear1
    ((tokens, times),) = seen[sources].items()
    assert tokens >= 5 * 6 and times == 3
    assert seen[layer.cross_attention.kv_proj][tokens] == times
