import pytest

from heedful.training.schedule import learning_rate


@pytest.mark.parametrize(
    ("step", "d_model", "expected"),
    [
        # d^-0.5 * min(step^-0.5, step * 4000^-1.5), computed by hand
        (1, 512, 1.746928107421711e-07),
        (4000, 512, 6.987712429686843e-04),
        (100_000, 512, 1.397542485937369e-04),
        (1, 1024, 1.2352647110032733e-07),
        (4000, 1024, 4.941058844013093e-04),
        (100_000, 1024, 9.882117688026186e-05),
    ],
)
def test_the_rate_is_equation_3(step, d_model, expected):
    assert learning_rate(step, d_model, 4000) == pytest.approx(expected, rel=1e-12)


def test_the_peak_is_at_the_end_of_warmup():
    rates = [learning_rate(step, 512, 40) for step in range(1, 200)]
    assert rates.index(max(rates)) + 1 == 40


def test_the_factor_multiplies_all_of_it():
    assert learning_rate(7, 64, 10, 2.5) == pytest.approx(2.5 * learning_rate(7, 64, 10))
