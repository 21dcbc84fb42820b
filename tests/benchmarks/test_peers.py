"""Peers compute what heedful computes, or refuse it."""

import pytest
from benchmarks.peers.protocol import only_paper_shape

from heedful.config.load import load_config
from heedful.experiments.work import shape_of
from tests.support.families import texts_are_here

OTHERS = (
    *("model.norm=pre", "model.norm_kind=rms", "model.gated=true", "model.positions=rotary"),
    *("model.positions=shaw", "model.attention.kv_heads=2", "model.attention.window=8"),
    *("model.attention.qk_norm=rms", "model.attention.encoder=fastformer"),
    *("model.experts.count=8", "model.encoder_sharing=1,1,1,1,1,1", "model.d_k=16"),
    "model.causal_mask=false",
)


@pytest.mark.parametrize("recipe", ["tiny", "small", "paper-base", "t2t-base"])
def test_the_papers_models_are_measured(recipe):
    only_paper_shape(shape_of(load_config(recipe), 400))


@pytest.mark.parametrize("setting", [one for one in OTHERS if texts_are_here([one])])
def test_a_model_that_peers_do_not_have_is_refused(setting):
    with pytest.raises(SystemExit, match="the peer measures only"):
        only_paper_shape(shape_of(load_config("paper-base", [setting]), 400))
