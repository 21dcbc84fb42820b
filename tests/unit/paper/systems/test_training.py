import pytest

from heedful.errors import RunFolderError
from heedful.paper.systems.plan import Plan, PlannedSystem
from heedful.paper.systems.system import TableSystem
from heedful.paper.systems.training import train_all

COMMON = (
    *("data.vocabulary_size=300", "model.d_model=32", "model.d_ff=32", "model.heads=2"),
    "train.batch_tokens=512",
)
SYSTEMS = (
    TableSystem("one", "One"),
    TableSystem("two", "Two", ("train.seed=2",)),
    TableSystem("rl", "One + RL", ("train.objective=reward",), after="one", slowdown=4.0),
    TableSystem("both", "Both", members=("one", "two")),
)


@pytest.fixture(scope="module")
def trained(corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp("table")
    return out, run(corpus, out)


def run(corpus, out, budget=16.0, systems=SYSTEMS):
    rates = [PlannedSystem(name, (), "", 1, 2_000.0, 1, 1) for name in ("one", "two")]
    Plan("tiny", "", 1.0, "time", 1, tuple(rates)).write(out / "earlier.json")
    return train_all(
        *("tiny", COMMON, systems, corpus, out, budget, "time"),
        plan=out / "earlier.json",
        threads=1,
        say=lambda _: None,
    )


def test_every_system_is_trained_and_scored(trained):
    _, (one, two, more, both) = trained
    assert one.steps == two.steps > more.steps > 0
    assert one.parameters == two.parameters == both.parameters // 2
    assert both.steps == one.steps + two.steps
    assert one.curve[-1].flops == one.flops > 1e9
    assert one.curve[0].perplexity > one.curve[-1].perplexity == one.perplexity
    assert one.seconds == pytest.approx(one.steps * 512 / 2_000)
    assert more.flops > one.flops  # the weights that it went on from are counted
    for system in (one, two, more, both):
        low, high = system.interval
        assert low <= system.bleu <= high


def test_what_is_there_is_not_made_again(corpus, trained):
    out, first = trained
    kept = {path: path.stat().st_mtime_ns for path in out.rglob("*.json")}
    kept.pop(out / "earlier.json")
    assert run(corpus, out) == first
    assert kept == {path: path.stat().st_mtime_ns for path in kept}


def test_a_killed_run_goes_on(corpus, trained, tmp_path):
    out, first = trained
    # as if the process had ended after the training of the second system
    for name in ("two", "both"):
        (out / "measured" / f"{name}.json").rename(tmp_path / f"{name}.json")
    again = run(corpus, out)
    assert [one.bleu for one in again] == [one.bleu for one in first]
    for one, other in zip(again, first, strict=True):
        assert one.curve == other.curve


def test_a_folder_of_something_else_is_refused(corpus, trained):
    out, _ = trained
    with pytest.raises(RunFolderError, match=r"something else \(--budget\)"):
        run(corpus, out, budget=17.0)
    with pytest.raises(RunFolderError, match=r"something else \(the systems\)"):
        run(corpus, out, systems=SYSTEMS[:1])
