from pathlib import Path

import pytest

from heedful.bench.random_run import make_random_run
from heedful.config.schema import RunConfig
from heedful.errors import ArgumentError, SettingError
from heedful.search.options import SearchOptions
from heedful.translation.translator import Translator

SMALL = {
    "model.d_model": 16,
    "model.d_ff": 32,
    "model.heads": 2,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "data.vocabulary_size": 50,
}


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    folder: Path = tmp_path_factory.mktemp("run")
    make_random_run(folder, RunConfig().with_settings(SMALL), 50)
    return Translator.load(folder, device="cpu", precision="fp32", threads=1)


def test_options_of_the_search_come_whole_or_as_keywords(translator: Translator) -> None:
    options = SearchOptions(beam=2, max_length="5", n_best=2, stop="when-beam-finished")
    whole = translator.translate(["w1 w2", "w3"], options)
    keywords = translator.translate(
        ["w1 w2", "w3"], beam=2, max_length=5, n_best=2, stop="when-beam-finished"
    )
    assert whole == keywords
    assert all(len(one.alternatives) == 1 for one in whole)
    with pytest.raises(ArgumentError, match="`options` must hold all options of the search"):
        translator.translate("w1", options, beam=3)


def test_an_unknown_stopping_rule_is_refused(translator: Translator) -> None:
    with pytest.raises(SettingError, match="stop must be when-none-can-win or"):
        translator.translate("w1", stop="soon")
