"""Other families than the Transformer are trained, stopped and continued on a GPU."""

import pytest

from tests.gpu.runs import ended_well, on_gpu, perplexities, translated


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize(
    "family",
    [
        pytest.param(name, marks=pytest.mark.family(name))
        for name in ("recurrent", "convs2s", "bytenet")
    ],
)
def test_other_families_train_stop_and_translate(heedful_cli, text, tmp_path, family, precision):
    few = ("model.convs2s.encoder_layers=2x(64,3)", "model.convs2s.decoder_layers=2x(64,3)")
    more = (
        *(few if family == "convs2s" else ()),
        f"model.encoder={family}",
        f"model.decoder={family}",
        f"train.precision={precision}",
        "train.ema_decay=0.9",
    )
    out = tmp_path / "run"
    first = heedful_cli(*on_gpu(text, out, *more, "train.steps=50"))
    ended_well(first)
    ended_well(heedful_cli(*on_gpu(text, out, *more), "--resume"))
    assert "Warning" not in first.stderr
    assert perplexities(out)[-1] < perplexities(out)[0]
    lines = translated(heedful_cli, out, text, "cuda")
    assert len(lines) == len((text / "valid.en").read_text(encoding="utf-8").splitlines())
