import torch

from heedful.families.convolution import Convolution
from heedful.model.embedding import SINUSOIDS
from heedful.paper.claims import exact
from heedful.paper.claims.table import CLAIMS


def test_a_convolution_is_one_map_for_each_relative_position():
    checked = CLAIMS["convolution"].check()
    assert checked.holds
    assert checked.panels[0].sizes == (1, 3, 5, 9)
    most = max(checked.panels[0].curves[0].values)
    assert most < 1e-12
    limit = float(checked.headline.removesuffix(".").split()[-1])
    assert most <= limit <= 1.1 * most  # rounded up
    assert checked.sentence.endswith(f" within {limit:.1e}.")
    assert checked.headline.startswith("A convolution and a sum of linear maps, one for each ")


def test_a_convolution_that_also_squares_would_not_be(monkeypatch):
    class Squared(Convolution):
        def forward(self, x, places=None):
            return super().forward(x, places) ** 2

    monkeypatch.setattr(exact, "Convolution", Squared)
    assert not CLAIMS["convolution"].check().holds


def test_a_later_position_is_a_rotation_of_an_earlier_one(monkeypatch):
    checked = CLAIMS["shift"].check()
    assert checked.holds
    assert checked.headline.startswith("The rotated encoding of pos and the encoding of pos + k ")
    assert "differs from the exact encodings by at most 3.0e-8." in checked.sentence
    # learned positions have no such map
    table = torch.randn(1024, 64)
    monkeypatch.setitem(SINUSOIDS, "interleaved", lambda *_: table)
    checked = CLAIMS["shift"].check()
    assert not checked.holds
    assert checked.headline.startswith("A model's table differs from the exact encodings by up to")
