from dataclasses import replace

import pytest
from benchmarks.operations import count_again

from heedful.errors import RunFolderError
from heedful.experiments.plan import Plan, write_rates
from heedful.experiments.run import train_all
from heedful.experiments.system import TableSystem
from heedful.experiments.task import TableTask
from heedful.runs.lock import only_writer

COMMON = (
    *("data.vocabulary_size=300", "model.d_model=32", "model.d_ff=32", "model.heads=2"),
    *("model.encoder_layers=1", "model.decoder_layers=1", "train.batch_tokens=512"),
    "search.max_length=input+5",  # samples of a model that has learned little seldom end
)
# Target tokens a second, by which a quarter of 20 s are enough steps: the least that trainings get
# where a busy machine spends the rest.
RATE = 3_200.0
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


def run(corpus, out, budget=20.0, systems=SYSTEMS, common=COMMON, **options):
    out.mkdir(exist_ok=True)
    if not (out / "rates.json").exists():
        write_rates(out / "rates.json", {"one": RATE, "two": RATE}, 1)
    options = {"threads": 1} | options
    task = TableTask("tiny", common, systems, corpus, out, "time")
    return train_all(task, budget, say=lambda _: None, **options)


def test_every_system_is_trained_and_scored(trained):
    _, (one, two, more, both) = trained
    assert one.steps == two.steps > more.steps > 0
    assert one.parameters == two.parameters == both.parameters // 2
    assert both.steps == one.steps + two.steps
    assert one.curve[-1].flops == one.flops > 1e9
    assert one.curve[0].perplexity > one.curve[-1].perplexity == one.perplexity
    assert one.seconds == pytest.approx(one.steps * 512 / RATE)
    assert more.flops > one.flops  # the weights that it went on from are counted
    for system in (one, two, more, both):
        low, high = system.interval
        assert low <= system.bleu <= high


def test_what_is_there_is_not_made_again(corpus, trained):
    out, first = trained
    kept = {path: path.stat().st_mtime_ns for path in out.rglob("*.json")}
    assert run(corpus, out) == first
    assert kept == {path: path.stat().st_mtime_ns for path in kept}


def test_operations_are_counted_again_by_the_plan_alone(corpus, trained, tmp_path):
    out, first = trained
    plan = Plan.read(out / "plan.json")
    most = first[0].curve[-1].flops
    wrong = [
        # half as many operations in each training, except those that depend on its samples
        replace(
            system,
            flops=1.0,
            curve=tuple(
                replace(point, flops=max(point.flops / 2, point.flops - most / 2))
                for point in system.curve
            ),
        )
        for system in first
    ]
    counted = count_again(wrong, plan, SYSTEMS, corpus, tmp_path)
    for before, after in zip(first, counted, strict=True):
        assert after == before
    unknown = [first[0], replace(first[2], flops=0.0)]
    assert count_again(unknown, plan, SYSTEMS, corpus, tmp_path) == unknown
    other = [replace(first[0], target_tokens=7)]
    with pytest.raises(SystemExit, match="One was trained on 7 target tokens, but by its plan"):
        count_again(other, plan, SYSTEMS, corpus, tmp_path)


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
    with pytest.raises(RunFolderError, match=r"differs in --budget"):
        run(corpus, out, budget=21.0)
    with pytest.raises(RunFolderError, match=r"differs in the systems"):
        run(corpus, out, systems=SYSTEMS[:1])
    with pytest.raises(RunFolderError, match=r"differs in --threads"):
        run(corpus, out, threads=2)
    with pytest.raises(RunFolderError, match=r"differs in --vocabulary or the models"):
        run(corpus, out, common=(*COMMON, "model.dropout=0.3"))


def test_a_plan_makes_the_same_run_again(corpus, trained, tmp_path):
    out, first = trained
    only = SYSTEMS[:1]
    plan = Plan.read(out / "plan.json")
    # there the text was the third of three
    systems = (replace(plan.systems[0], data="text/encoded-3"),)
    replace(plan, systems=systems, left_out=()).write(tmp_path / "plan.json")
    for _ in range(2):  # then it goes on
        again = run(corpus, tmp_path / "out", 1.0, only, plan=tmp_path / "plan.json", threads=0)
    assert (again[0].steps, again[0].curve, again[0].bleu) == (
        *(first[0].steps, first[0].curve, first[0].bleu),
    )
    with pytest.raises(RunFolderError, match=r"must be a plan of .* differs in the systems"):
        run(corpus, tmp_path / "out", plan=tmp_path / "plan.json")


def test_only_one_process_writes_into_a_folder(corpus, trained):
    out, _ = trained
    with only_writer(out, "test"), pytest.raises(RunFolderError, match="one writer at a time"):
        run(corpus, out)
