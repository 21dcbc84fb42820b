"""Alignments where attention says nothing about words: refused, and never made up."""

import pytest

from heedful.bench.random_run import make_random_run
from heedful.config.load import load_config
from heedful.errors import SettingError
from heedful.serve.limits import HttpError
from heedful.serve.models import ModelLoader, ModelSpec, ServedModel
from heedful.serve.routes_v1 import _require
from heedful.translation.aligner import Aligner
from heedful.translation.translator import Translator

pytestmark = pytest.mark.family("pooled", "recurrent")
POOLED = ["model.encoder=average", "model.decoder=recurrent", "model.recurrent.start=mean"]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pooled")
    make_random_run(folder, load_config("tiny", POOLED), 20)
    return ModelLoader(device="cpu", precision="fp32", threads=1).open(
        ModelSpec((folder,), ()), "pooled"
    )


@pytest.mark.parametrize(
    "options", [{"alignments": True}, {"replace_unknown": True}, {"replace_unknown": {"a": "b"}}]
)
def test_one_vector_for_all_words_gives_no_alignment(served: ServedModel, options):
    translator = served.translator
    assert isinstance(translator, Translator) and isinstance(translator.aligner, Aligner)
    assert translator.translate("w1 w2", max_length=2).text
    for attempt in (
        lambda: translator.translate("w1 w2", max_length=2, **options),
        lambda: translator.align("w1 w2", "w3"),
    ):
        with pytest.raises(SettingError, match="the same for all source words") as caught:
            attempt()
        assert "the replacement of unknown words" in str(caught.value)
        assert "`model.encoder` is average" in str(caught.value)


def test_its_maps_can_be_looked_at(served: ServedModel):
    cross = served.translator.attend("w1 w2 w3", "w4").cross
    assert cross.shape == (1, 1, 2, 4)
    assert abs(cross - 0.25).max() < 1e-6


def test_coverage_of_equal_attention_is_refused(served: ServedModel):
    with pytest.raises(SettingError, match="the same attention to every source position"):
        served.translator.translate("w1 w2", coverage_penalty=0.2)
    with pytest.raises(SettingError, match=r"coverage_penalty` applies only if `model.encoder`"):
        load_config("tiny", [*POOLED, "search.coverage_penalty=0.2"])


def test_a_server_says_so(served: ServedModel):
    assert not served.no_attention and "coverage_penalty" not in served.facts
    assert served.no_alignment.endswith("is the same for all words (`model.encoder` is average)")
    with pytest.raises(HttpError, match="need a model whose `alignments` is true"):
        _require("alignments need", "alignments", served.no_alignment)


def test_members_of_an_ensemble_need_as_many_heads(tmp_path):
    folders = [tmp_path / name for name in ("two", "four")]
    for folder, heads in zip(folders, (2, 4), strict=True):
        folder.mkdir()
        make_random_run(folder, load_config("tiny", [f"model.heads={heads}"]), 20)
    alike, others = (
        Translator.load(runs, device="cpu", precision="fp32", threads=1)
        for runs in ([folders[0]] * 2, folders)
    )
    assert alike.align("w1 w2", "w3 w4") is not None
    with pytest.raises(SettingError, match="the same number of decoder layers and heads"):
        others.align("w1 w2", "w3 w4")
