"""Trials for the systems of Table 2: those listed, those chosen, and what the page states."""

import pytest
from benchmarks import tuning
from benchmarks.report import measurements_of, read
from benchmarks.tuning import RATES, body, chosen, commands, steps_in, trials, warmup

from heedful.config.load import load_config
from heedful.experiments.record import Record
from heedful.paper.table2 import RECIPE

SYSTEMS = ("gnmt", "big")


def trial(choice, perplexity, attends=True, system="gnmt", kind="approaches"):
    """A trial as the record has it."""
    attention = {"first": 0.25, "diagonal": 0.5, "nats_of_uniform": 0.34 if attends else 0.0}
    return {
        **{"system": system, "kind": kind, "choice": choice, "steps": 320, "minutes": 1.5},
        **{"perplexity": perplexity, "bleu": 8.25, "attention": attention, "attends": attends},
        "commit": "abc1234",
    }


def record_of(*rows):
    known = {f"{row['kind']}, {row['system']}, {row['choice']}": row for row in rows}
    return Record("def5678", "a machine", {"trials": known})


def rates_of(system, perplexities, attends=True):
    """All trials of the learning rates of a system."""
    pairs = zip(RATES, perplexities, strict=True)
    return [trial(rate, number, attends, system, "rates") for rate, number in pairs]


@pytest.fixture(autouse=True)
def plan(monkeypatch):
    """A plan of Table 2, whatever the record has."""
    settings = ["train.learning_rate=1.5e-3", "train.learning_rate=6e-3", "train.warmup=300"]
    systems = [
        {"name": name, "tokens_per_second": 2048.0, "batch_tokens": 1024, "settings": settings}
        for name in SYSTEMS
    ]
    table2 = {"plan": {"systems": systems}}
    monkeypatch.setattr(tuning, "measurements_of", {"table2": table2}.__getitem__)


def config_of(tried):
    return load_config(RECIPE, tried.settings)


def test_the_rates_of_a_system_differ_in_their_rate_alone():
    of_big = [tried for tried in trials("rates") if tried.system == "big"]
    assert [tried.choice for tried in of_big] == [*RATES]
    configs = [config_of(tried) for tried in of_big]
    assert [config.train.learning_rate for config in configs] == [7.5e-4, 1.5e-3, 3e-3, 6e-3]
    assert len({config.model for config in configs}) == 1
    assert "gnmt-rl" not in {tried.system for tried in trials("rates")}


def test_approaches_have_the_rates_of_the_record():
    for tried in trials("approaches"):
        train = config_of(tried).train
        assert train.learning_rate == (1.5e-3 if tried.choice == "half the rate" else 3e-3)
        assert (train.guided_attention > 0) == ("guided" in tried.choice)


def test_fewer_layers_are_fewer_than_all():
    layers = {
        (tried.system, tried.choice): config_of(tried).model.encoder_layers
        for tried in trials("approaches")
    }
    for system in ("gnmt", "moe"):
        assert layers[system, "fewer layers"] < layers[system, "without"]
        assert layers[system, "fewer layers, guided"] == layers[system, "fewer layers"]


def test_the_recorded_trials_are_those_that_are_listed():
    listed = {tried.key for kind in ("approaches", "rates") for tried in trials(kind)}
    assert listed == {*measurements_of("tuning")["trials"]}


def test_a_trial_that_attends_is_chosen_before_a_lower_perplexity():
    idle, attending = trial("without", 50.0, attends=False), trial("guided attention", 80.0)
    assert chosen([idle, attending]) is attending
    assert chosen([idle, trial("half the rate", 60.0, attends=False)]) is idle


def test_fewer_layers_are_chosen_only_if_nothing_else_attends():
    deep, shallow = trial("guided attention", 80.0), trial("fewer layers, guided", 70.0)
    assert chosen([shallow, deep]) is deep
    assert chosen([shallow, trial("without", 50.0, attends=False)]) is shallow


def test_the_lowest_perplexity_is_chosen_among_equals():
    rows = rates_of("gnmt", (9.0, 8.0, 7.0, 7.5))
    assert chosen(rows)["choice"] == "3e-3"


def test_steps_take_the_time_at_the_recorded_speed():
    assert steps_in("gnmt", 90.0) == 180
    assert steps_in("gnmt", 0.1) == 4, "there are four validations"
    with pytest.raises(ValueError, match="unpack"):
        steps_in("unknown", 90.0)


def test_the_warm_up_is_an_eighth_and_never_nothing():
    assert [warmup(steps) for steps in (318, 905, 5)] == [39, 113, 1]


def test_the_commands_repeat_every_trial():
    rows = (trial("without", 9.0), *rates_of("big", (9.0, 8.0, 7.0, 6.0)))
    assert commands(dict(enumerate(rows))) == [
        "python -m benchmarks.tuning approaches --minutes 1.5",
        "python -m benchmarks.tuning rates --minutes 1.5",
    ]
    record = read("tuning")
    assert record.commands == commands(record.measurements["trials"])


def test_the_page_names_steps_and_best_rates():
    rows = [trial("without", 50.0), *rates_of("gnmt", (9.0, 8.0, 7.0, 7.5))]
    page = body(record_of(*rows))
    assert "takes in 1.5 minutes on one thread" in page
    assert "| GNMT | 5 | 7.5 | 320 | 40 | 300 | 3e-3 | 6e-3 |" in page
    assert "| GNMT | **3e-3** | 7.0 | 8.2 | 25% | 0.50 | 0.34 |" in page
    assert "| GNMT | without | 50.0 | 8.2 | 25% | 0.50 | 0.34 |" in page, "not all tried"
    assert page.count("| **") == 1
    assert "edge" not in page and "perplexity alone" not in page
    assert "Commits of the trials: abc1234." in page
    assert "Not all rates were tried for ByteNet, Deep-Att + PosUnk, ConvS2S, MoE" in page


def test_the_page_names_best_rates_at_an_edge():
    rows = [*rates_of("gnmt", (9.0, 8.0, 7.0, 6.0)), *rates_of("big", (5.0, 8.0, 7.0, 7.5))]
    page = body(record_of(*rows))
    assert "of 2 of 2 systems is at an edge" in page
    assert "the highest for GNMT; the lowest for Transformer (big)." in page


def test_the_page_names_systems_that_never_attend():
    idle = rates_of("big", (8.0, 5.0, 7.0, 7.5), attends=False)
    page = body(record_of(*rates_of("gnmt", (9.0, 8.0, 7.0, 7.5)), *idle))
    assert "the attention of Transformer (big) is still unused when" in page


def test_a_model_without_attention_has_empty_cells():
    rows = [row | {"attention": None} for row in rates_of("big", (9.0, 8.0, 7.0, 7.5))]
    assert "| Transformer (big) | **3e-3** | 7.0 | 8.2 |  |  |  |" in body(record_of(*rows))
