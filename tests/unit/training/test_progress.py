import pytest

from heedful.config.train import TrainConfig
from heedful.training.progress import Progress
from heedful.training.state import Clock


class StoppedClock(Clock):
    """A clock of a run that was resumed after 1,000 seconds, 100 seconds ago."""

    earlier = 1000.0
    seconds = 1100.0

    def __init__(self) -> None:
        pass


@pytest.mark.parametrize(
    ("settings", "share", "remaining"),
    [
        # 100 steps took 1,000 seconds; since then, 200 steps took 100 seconds
        ({"steps": 900}, 300 / 900, 300.0),
        ({"steps": 900, "minutes": 30}, 1100 / 1800, 300.0),
        ({"steps": 90_000, "minutes": 30}, 1100 / 1800, 700.0),
        ({"steps": 90_000, "minutes": 10}, 1.0, 0.0),
        ({"steps": 300}, 1.0, 0.0),
    ],
)
def test_the_end_is_expected_at_the_speed_of_this_process(settings, share, remaining) -> None:
    progress = Progress(TrainConfig(**settings), StoppedClock(), began_at=100)
    assert progress.share(300) == pytest.approx(share)
    assert progress.remaining(300) == pytest.approx(remaining)


def test_the_step_at_the_end_of_the_minutes_follows_from_the_same_speed() -> None:
    progress = Progress(TrainConfig(minutes=30), StoppedClock(), began_at=100)
    assert progress.step_at_end_of_minutes(300) == pytest.approx(300 + 2 * 700)
