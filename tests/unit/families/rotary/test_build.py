"""Rotary positions from settings."""

import pytest

from heedful.config.load import load_config
from heedful.errors import SettingError
from heedful.families.rotary.config import RotarySettings
from heedful.families.rotary.rotation import RotaryPositions
from heedful.model.embedding import NoPositions
from heedful.model.graphed import can_record
from heedful.model.known_layers import is_known
from heedful.model.packed import why_not_packed
from heedful.model.weights import parameter_count
from tests.support.models import small

CHOSEN = "model.positions=rotary"


def test_self_attention_turns_and_attention_to_the_source_does_not():
    model = small(positions="rotary", rotary={"base": 99.0}, encoder_heads=4)
    turning = {n: (p.d_k, p.base) for n, p in model.named_modules() if type(p) is RotaryPositions}
    assert turning == {
        **{f"encoder.layers.{n}.self_attention.rotation": (4, 99.0) for n in (0, 1)},
        **{f"decoder.layers.{n}.self_attention.rotation": (8, 99.0) for n in (0, 1)},
    }
    assert isinstance(model.source_positions, NoPositions)
    assert parameter_count(model) == parameter_count(small(positions="none"))


def test_recorded_graphs_packed_rows_and_compiled_layers_have_it():
    model = small(positions="rotary")
    assert can_record(model) and why_not_packed(model) == ""
    assert is_known(model.decoder) and is_known(model.encoder)
    [*_, last] = model.decoder.layers
    last.self_attention.rotation = RotaryPositions(8, 7.0)
    assert not is_known(model.decoder)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["model.d_k=5", "model.d_v=4"], "`model.d_k` must be even if `model.positions` is rotary"),
        (["model.d_k=5", "model.d_v=4"], "but heads are 5 wide."),
        (["model.attention.score=additive"], "`model.attention.score` must be scaled or unscaled"),
        (["model.rotary.base=1"], "model.rotary.base"),
        (["model.position_offset=1"], "`model.position_offset` applies only if"),
    ],
    ids=str,
)
def test_what_does_not_go_together_is_refused(settings, words):
    with pytest.raises(SettingError) as caught:
        load_config("tiny", [CHOSEN, *settings])
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "width"),
    [
        (["model.heads=64"], "1 wide."),
        (["model.encoder_heads=64"], "1 wide."),
        (["model.d_model=45", "model.encoder_heads=9", "model.decoder_heads=5"], "5 and 9 wide."),
    ],
    ids=str,
)
def test_odd_heads_of_both_sides_are_refused_in_one_sentence(settings, width):
    with pytest.raises(SettingError) as caught:
        load_config("tiny", [CHOSEN, *settings])
    assert str(caught.value) == (
        "`model.d_k` must be even if `model.positions` is rotary, which rotates pairs of numbers, "
        f"but heads are {width}"
    )


def test_its_table_acts_with_these_positions_alone():
    load_config("tiny", [CHOSEN, "model.rotary.base=500"])
    with pytest.raises(SettingError, match=r"`model.rotary.base` applies only if"):
        load_config("tiny", ["model.rotary.base=500"])


def test_a_base_outside_its_range_is_refused():
    with pytest.raises(SettingError, match="base"):
        RotarySettings(base=2e12)
