import torch

from heedful.families.convolution import Convolution
from heedful.model.embedding import SINUSOIDS
from heedful.paper.claims import exact
from heedful.paper.claims.table import CLAIMS


def test_a_convolution_is_one_map_for_each_relative_position():
    checked = CLAIMS["convolution"].check()
    assert checked.holds
    assert checked.panels[0].sizes == (1, 3, 5, 9)
    assert max(checked.panels[0].curves[0].values) < 1e-12


def test_a_convolution_that_also_squares_would_not_be(monkeypatch):
    class Squared(Convolution):
        def forward(self, x, places=None):
            return super().forward(x, places) ** 2

    monkeypatch.setattr(exact, "Convolution", Squared)
    assert not CLAIMS["convolution"].check().holds


def test_a_later_position_is_a_rotation_of_an_earlier_one(monkeypatch):
    assert CLAIMS["shift"].check().holds
    # learned positions have no such map
    table = torch.randn(1024, 64)
    monkeypatch.setitem(SINUSOIDS, "interleaved", lambda *_: table)
    assert not CLAIMS["shift"].check().holds
