"""Checks of a training: what is sampled, logged, said."""

from heedful.data.batching import Collator
from heedful.training.health.registry import (
    KEY,
    HealthWarnings,
    describe_all,
    measure_all,
    take_sample,
)
from tests.support.models import small

FIGURES = {"nats_of_uniform": 0.0, "nats_of_other_source": 0.0}
STUCK = {"step": 300, KEY: {"attention": FIGURES}}


def test_a_sample_is_spread_over_the_text():
    ids = [[4 + index % 6] * (index % 9 + 1) for index in range(1000)]
    sample = take_sample(small().eval(), Collator(0, 2, 3), ids, ids)
    assert sum(len(batch.source) for batch in sample.batches) == 128
    assert measure_all(sample)["attention"].keys() >= {"entropy", "first", "last", "diagonal"}


def test_nothing_is_measured_of_one_sentence():
    sample = take_sample(small().eval(), Collator(0, 2, 3), [[4, 5]], [[5]])
    assert measure_all(sample) == {}


def test_a_warning_comes_once_and_not_early():
    said = []
    warnings = HealthWarnings(said.append)
    warnings.warn(STUCK, 0.1, past_warmup=True)
    warnings.warn(STUCK, 0.5, past_warmup=False)
    warnings.warn(STUCK | {"step": 299}, 0.5, past_warmup=True)
    assert not said
    for _ in range(2):
        warnings.warn(STUCK, 0.5, past_warmup=True)
    warnings.warn({"step": 400}, 0.6, past_warmup=True)
    (text,) = said
    assert text.startswith("warning: attention is not used")


def test_figures_that_a_log_has_wrongly_are_left_out():
    assert "0.00 nats" in describe_all(STUCK)["attention"]
    wrong = (None, [], {"attention": 3}, {"attention": {}}, {"attention": {"nats_of_uniform": "x"}})
    for value in wrong:
        assert describe_all({KEY: value}) == {}
