import pytest

from heedful.experiments.plan import RATES, make_plan, write_rates
from heedful.paper.claims.statement import Checked
from heedful.paper.claims.table import CLAIMS
from heedful.paper.claims.trained import compare_pairs
from heedful.paper.claims.training import claim_task, leave_open


@pytest.mark.parametrize(
    ("name", "bleu", "open_because"),
    [
        ("encoders", {"self-attention": 3.0, "sum": 8.0}, "sum has only 8.0 BLEU"),
        ("encoders", {"self-attention": 96.0, "sum": 2.0}, ""),
        ("encoders", {"self-attention": 99.9, "sum": 98.5}, "Every model has 98.5 BLEU or more"),
        ("encoders", {"self-attention": 96.0, "sum": 0.9}, "sum (0.9 BLEU) learned nothing useful"),
        ("heads", {"heads-2": 99.9, "heads-4": 98.5}, ""),
        ("long", {"transformer": 96.0, "recurrent": 0.2}, "with attention (0.2 BLEU) learned noth"),
        ("mask", {"transformer": 96.0, "no-mask": 0.1}, ""),
        ("mask", {"transformer": 3.0, "no-mask": 0.1}, "Transformer has only 3.0 BLEU"),
        (
            "batch-size",
            {"layer-32": 3.0, "layer-128": 60.0, "layer-512": 90.0, "batch-32": 80.0},
            "layer norm, 32 tokens has only 3.0 BLEU",
        ),
        ("scores", {"additive-512": 9.0, "unscaled-512": 60.0}, "additive, d_k 512 has only 9.0"),
        (
            "cost",
            {f"{model}-{seed}": 60.0 for model in ("transformer", "recurrent") for seed in (1, 2)}
            | {"transformer-3": 60.0, "recurrent-3": 2.0},
            "recurrent with attention, seed 3 has only 2.0 BLEU",
        ),
    ],
)
def test_models_that_cannot_be_told_apart_decide_nothing(name, bleu, open_because):
    checked = leave_open(CLAIMS[name], Checked(False, "It has 4.", "Found.", ()), bleu)
    assert checked.holds is (None if open_because else False)
    assert open_because in checked.sentence
    assert (open_because or "It has 4.") in checked.headline


RISES = [
    claim for claim in CLAIMS.values() if getattr(claim.measure, "func", None) is compare_pairs
]


@pytest.mark.parametrize("claim", RISES, ids=lambda claim: claim.name)
def test_a_model_whose_last_rise_is_needed_is_validated_after_three_quarters(
    claim, corpus, tmp_path
):
    rates = {system.name: 20_000.0 for system in claim.systems}
    write_rates(tmp_path / RATES, rates, 1)
    task = claim_task(claim, corpus, tmp_path, 1.0)
    plan = make_plan(task, 45.0 * len(claim.systems), 1, lambda _: None)
    for system in plan.systems:
        assert system.seconds < 30  # without a setting, there are 10 seconds between validations
        settings = dict(line.split("=", 1) for line in system.settings)
        every = int(settings["train.validate_steps"])
        assert 3 * every == pytest.approx(0.75 * system.steps, rel=0.05)
