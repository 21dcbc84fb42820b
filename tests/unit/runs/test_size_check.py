from pathlib import Path

import pytest

from heedful.config.model import ModelConfig
from heedful.errors import RunFolderError
from heedful.families.build import build_model
from heedful.runs.size_check import check_sizes

MODEL = ModelConfig(d_model=16, d_ff=32, heads=2, encoder_layers=1, decoder_layers=1)
ROWS = (40, 40)
SHAPES = {
    name: tuple(weights.shape)
    for name, weights in build_model(MODEL, *ROWS, max_length=10).named_parameters()
}


def check(
    model: ModelConfig, rows: tuple[int, int] = ROWS, shapes: dict[str, tuple[int, ...]] = SHAPES
) -> None:
    check_sizes(
        model, rows, shapes, lambda: build_model(model, *rows, max_length=10), Path("config.json")
    )


def test_settings_that_fit_pass():
    check(MODEL)
    check(MODEL.model_copy(update={"d_ff": 24}))


@pytest.mark.family("recurrent")
def test_the_width_of_blocks_that_are_not_there_passes():
    recurrent = ModelConfig(
        d_model=16, encoder="recurrent", decoder="recurrent", encoder_layers=1, decoder_layers=1
    )
    weights = build_model(recurrent, *ROWS, max_length=10).named_parameters()
    check(recurrent, shapes={name: tuple(each.shape) for name, each in weights})


@pytest.mark.parametrize(
    ("changed", "rows", "told"),
    [
        ({"d_model": 1 << 40, "d_ff": 1 << 40}, ROWS, "`model.d_model` is 1,099,511,627,776 and"),
        ({"decoder_layers": 10**6}, ROWS, "`model.decoder_layers` is 1,000,000"),
        ({}, (40, 10**9), "the vocabulary has 1,000,000,000 rows"),
    ],
)
def test_sizes_beyond_the_weights_are_refused_before_anything_is_built(changed, rows, told):
    with pytest.raises(RunFolderError) as refusal:
        check(MODEL.model_copy(update=changed), rows)
    assert f"config.json must describe the weights next to it, but {told}" in str(refusal.value)
    assert str(refusal.value).endswith("copy the run folder again.")


def test_weights_far_beyond_the_settings_are_refused_before_they_are_read():
    large = SHAPES | {"vast": (1 << 20, 64)}
    with pytest.raises(RunFolderError, match=r"but describes a model with .* weights, and 67,1"):
        check(MODEL, shapes=large)
