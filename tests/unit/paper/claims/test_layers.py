import re
from functools import cache

import numpy as np
import pytest
import torch

from heedful.paper.claims import layers
from heedful.paper.claims.table import CLAIMS


@cache
def gradients(depth, changed, compute=layers._gradients):
    return compute(depth, dict(changed))


@pytest.fixture
def each_gradient_once(monkeypatch):
    """Stacks of equal settings have equal gradients: compute them once, for two draws."""
    monkeypatch.setattr(layers, "_SEEDS", (1, 2))
    monkeypatch.setattr(
        layers, "_gradients", lambda depth, changed: gradients(depth, tuple(changed.items()))
    )


@pytest.fixture
def short_timings(monkeypatch):
    monkeypatch.setattr(layers, "_ROUNDS", 3)
    monkeypatch.setattr(layers, "_LEAST", 0.0)
    monkeypatch.setattr(layers, "_LENGTHS", (16, 32, 64, 128))
    monkeypatch.setattr(layers, "_POSITIONS", 1024)


def curves(checked):
    return {curve.name: curve.values for curve in checked.panels[0].curves}


def test_only_batch_norm_depends_on_other_sentences(monkeypatch):
    checked = CLAIMS["batch-norm"].check()
    assert checked.holds
    most = max(curves(checked)["layer norm"])
    assert most < 1e-6
    said = f"by at most {most:.0e}" if most else "not at all"
    assert f"with batch norm, and {said} with layer norm." in checked.sentence
    least = min(curves(checked)["batch norm"])
    assert checked.headline == (
        "With batch norm, the other sentences in a batch change a sentence's states by at least "
        f"{least:.3g}; with layer norm, {said}."
    )
    monkeypatch.setattr(layers, "PlainBatchNorm", torch.nn.LayerNorm)
    assert not CLAIMS["batch-norm"].check().holds


@pytest.mark.parametrize(
    ("apart", "said"), [(0.0, "not at all"), (1e-7, "by at most 1e-07"), (2e-6, "by at most 2e-06")]
)
def test_how_much_layer_norm_depends_on_others_is_said(monkeypatch, apart, said):
    class Shifted(torch.nn.Module):
        def __init__(self, _width):
            super().__init__()

        def forward(self, x):
            return torch.full_like(x, apart * (len(x) > 1), dtype=torch.float64)

    monkeypatch.setattr(torch.nn, "LayerNorm", Shifted)
    assert f"and {said} with layer norm." in CLAIMS["batch-norm"].check().sentence


@pytest.mark.usefixtures("each_gradient_once")
def test_gradients_vanish_without_residuals_and_norms():
    checked = CLAIMS["gradients"].check()
    assert checked.holds is None  # norms alone are enough
    found = curves(checked)
    assert found["residuals and norms"][-1] > 0.01 * found["residuals and norms"][0]
    assert found["neither"][-1] < 1e-6 * found["neither"][0]
    assert len(found["norms alone"]) == len(checked.panels[0].sizes) == 6
    assert (
        "The gradient also stays alive with norms alone, so residual connections may not "
        "be needed." in checked.sentence
    )
    assert "With residuals alone" not in checked.sentence
    low, high = re.search(r"factor of (\S+) to (\S+) with residuals and", checked.sentence).groups()
    assert float(low) < float(high)  # draws differ
    assert checked.headline.startswith("With norms alone, from 1 to 32 layers, the gradient at")
    assert checked.headline.endswith(
        " in 2 draws). A gradient with a factor between 0.01 and 100 counts as alive, so residual "
        "connections may not be needed."
    )


@pytest.mark.usefixtures("each_gradient_once")
def test_norms_and_residuals_that_are_both_needed_decide(monkeypatch):
    monkeypatch.setitem(layers.STACKS, "norms alone", layers.STACKS["neither"])
    checked = CLAIMS["gradients"].check()
    assert checked.holds is True
    assert checked.headline.startswith("With residuals and norms, ")
    assert checked.headline.endswith(
        " A gradient with a factor between 0.01 and 100 counts as alive."
    )


@pytest.mark.usefixtures("each_gradient_once")
@pytest.mark.parametrize(
    "both", [{"norm_kind": "none"}, {"norm_kind": "none", "residuals": "false"}]
)
def test_stacks_that_lack_a_part_that_is_needed_do_not_keep_gradients(monkeypatch, both):
    monkeypatch.setitem(layers.STACKS, "residuals and norms", both)
    assert CLAIMS["gradients"].check().holds is False


@pytest.mark.usefixtures("short_timings")
def test_additive_scores_take_longer_and_hold_more():
    checked = CLAIMS["dot-product"].check()
    for panel in checked.panels:
        found = {curve.name: curve.values for curve in panel.curves}
        assert found["additive"][-1] > found["dot product"][-1] > 0
    assert [panel.axis for panel in checked.panels] == ["positions", "positions", "d_k", "d_k"]
    assert all(curve.margins for curve in checked.panels[0].curves)  # times have intervals


@pytest.mark.usefixtures("short_timings")
@pytest.mark.parametrize(
    ("ratios", "noise", "holds", "headline"),
    [
        (
            [40, 30, 50, 60],
            0.01,
            True,
            "Where the ratio is smallest, additive attention takes 30.0 times as long as dot "
            "products (29.3 to 30.8).",
        ),
        (
            [40, 1.5, 50, 60],
            0.01,
            False,
            "Where the ratio is smallest, additive attention takes 1.5 times as long as dot "
            "products (1.5 to 1.5).",
        ),
        (
            [3, 4, 5, 6],
            [0.01, 0.5, 0.01, 0.01],
            None,
            "At another size, additive attention takes 4.0 times as long as dot products "
            "(1.2 to 13.9).",
        ),
    ],
)
def test_the_ratio_that_decides_is_shown(monkeypatch, ratios, noise, holds, headline):
    def timed(functions):
        rounds = np.exp(np.outer([-1, 0, 1], np.full(4, noise)))  # (rounds, sizes)
        times = np.stack((np.ones_like(rounds), np.array(ratios) * rounds), axis=2)
        return times.reshape(3, -1)[:, : len(functions)]

    monkeypatch.setattr(layers, "_in_turn", timed)
    checked = CLAIMS["dot-product"].check()
    assert (checked.holds, checked.headline) == (holds, headline)


@pytest.mark.usefixtures("short_timings")
def test_only_the_products_of_recurrence_wait_longer_in_longer_sequences():
    checked = CLAIMS["parallel"].check()
    assert checked.holds
    found = curves(checked)
    assert found["self-attention"] == (4.0, 4.0, 4.0, 4.0)
    assert found["convolution"] == (1.0, 1.0, 1.0, 1.0)
    assert found["recurrent"][-1] >= 1024
    assert all(min(curve.margins) > 0 for curve in checked.panels[1].curves)
    assert "It is unchanged in self-attention and unchanged in a convolution." in checked.sentence
    assert "times as large in self-attention" not in checked.sentence
    assert ", recurrent " in checked.sentence
    assert checked.headline.endswith("products is 64 times as large in a recurrent layer.")
