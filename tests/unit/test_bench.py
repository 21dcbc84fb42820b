"""The measuring of speed: what is counted, who is asked, and what is told."""

import json
import sys
from pathlib import Path

import pytest

from heedful.config.load import load_config
from heedful.data.batch import Collator
from heedful.errors import MeasurementFailed
from heedful.evaluation.cost import Work
from heedful.workflow.bench.contenders import Contender, Field, find_field, in_turns
from heedful.workflow.bench.measurement import Measurement, Report
from heedful.workflow.bench.process import ask, repeated
from heedful.workflow.bench.random_run import make_random_run, random_lines
from heedful.workflow.bench.step import OneBatch
from heedful.workflow.bench.work import (
    flops_of,
    search_work,
    shape_of,
    spread_lengths,
    synthetic_pairs,
    training_work,
)

# A toolkit that speaks the protocol and takes a second, or two in fp32, for everything.
TOY = """
import json, sys
request = json.load(sys.stdin)
if request["task"] == "variants":
    names = {"slow": "fp32", "quick": "bf16", "broken": "bf16"}
    answer = {"variants": [{"name": n, "precision": p} for n, p in names.items()]}
elif request["variant"] == "broken":
    sys.exit("it does not go")
else:
    print("a library says hello")
    seconds = 2.0 if request["variant"] == "slow" else 1.0
    answer = {"seconds": [seconds] * request["steps"], "memory": 1000, "loss": 1.0}
print(json.dumps(answer))
"""


@pytest.fixture
def peers(tmp_path: Path) -> Path:
    """A folder with a toy toolkit and one that is not installed."""
    for name in ("toy", "absent"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "bench.py").write_text(TOY, encoding="utf-8")
    programs = tmp_path / "toy" / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "python").symlink_to(sys.executable)
    return tmp_path


def test_others_get_the_environment_as_the_user_has_it(monkeypatch):
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")
    monkeypatch.setenv("USER_CHOICE", "stays")
    monkeypatch.setenv("HEEDFUL_ENVIRONMENT", "OMP_WAIT_POLICY")
    tell = "import json, os; names = {'OMP_WAIT_POLICY', 'USER_CHOICE'} & {*os.environ}; "
    command = (sys.executable, "-c", tell + "print(json.dumps({'names': sorted(names)}))")
    assert ask(command, {}, foreign=True)["names"] == ["USER_CHOICE"]
    assert ask(command, {})["names"] == ["OMP_WAIT_POLICY", "USER_CHOICE"]


# What is counted.


def test_lengths_lie_around_their_mean():
    lengths = spread_lengths(25, 80)
    assert (min(lengths), max(lengths), sum(lengths)) == (20, 30, 2000)
    assert spread_lengths(1, 3) == [1, 1, 1]


def test_a_batch_has_the_asked_tokens_of_the_vocabulary():
    sources, targets = synthetic_pairs(100, 25, 20, 2000)
    assert len(sources) == len(targets) == 80
    assert sum(len(row) + 1 for row in sources) == 2000
    assert sum(len(row) + 1 for row in targets) == 1600
    assert {id_ for row in sources + targets for id_ in row} <= set(range(4, 100))
    assert synthetic_pairs(100, 25, 20, 2000) == (sources, targets)


def test_work_without_padding_is_that_of_a_batch_of_equal_lengths():
    assert training_work([7, 7, 7], [5, 5, 5]) == Work.of_batch(3, 7, 5, 15)
    assert training_work([7, 3], [5, 2]) == Work(10, 7, 7, 58, 29, 41)


def test_work_of_a_search_counts_every_step_of_every_hypothesis():
    steps = [(source, step) for source, out in ((4, 3), (6, 2)) for step in range(1, out + 1)]
    work = search_work([4, 6], [3, 2], beam=2)
    assert work.target == work.predicted == 2 * len(steps)
    assert work.target_target == 2 * sum(step for _, step in steps)
    assert work.target_source == 2 * sum(source for source, _ in steps)
    assert (work.source, work.source_source) == (10, 16 + 36)


def test_operations_are_those_of_the_paper_s_model():
    base = load_config("paper-base")
    batch = training_work([25] * 80, [25] * 80)
    # reference: 4,300 tokens a second where 800 GFLOP/s of products are the only cost
    assert 800e9 / (flops_of(base, 37_000).training(batch) / 4000) == pytest.approx(4300, rel=0.05)
    assert shape_of(base, 37_001)["vocabulary"] == 37_008


def test_one_batch_holds_every_pair_once():
    sources, targets = [[5] * n for n in (3, 9, 1, 6)], [[6] * n for n in (2, 8, 2, 7)]
    collator = Collator(0, 2, 3)
    whole = OneBatch(sources, targets, collator, None)
    (batch,) = whole.epoch(0)
    assert batch.tolist() == [2, 0, 3, 1]
    assert whole.collate(whole.largest()).source_tokens == 19 + 4
    parts = OneBatch(sources, targets, collator, 20)
    (cut,) = parts.cut(parts.epoch(3)[0], 1)
    assert [part.tolist() for part in cut] == [[2, 0], [3, 1]]


def test_random_weights_never_end_a_translation(tmp_path):
    from heedful.workflow.translator import Translator

    make_random_run(tmp_path, load_config("tiny"), 300)
    lines = random_lines(300, 10, 6)
    assert sum(len(line.split()) + 1 for line in lines) == 60
    translator = Translator.load(tmp_path, device="cpu", precision="fp32", threads=1)
    for beam in (1, 4):
        found = translator.translate(lines, beam=beam, max_length="7")
        assert [len(translation.tokens) for translation in found] == [7] * 6


# Who is asked.


def test_a_process_is_asked_and_its_last_line_is_the_answer():
    command = [sys.executable, "-c", TOY]
    asked = {"task": "train", "variant": "quick", "steps": 2}
    assert ask(command, asked)["seconds"] == [1.0, 1.0]
    with pytest.raises(MeasurementFailed, match="exit code 1: it does not go"):
        ask(command, {**asked, "variant": "broken"})
    with pytest.raises(MeasurementFailed, match="must answer with a JSON object"):
        ask([sys.executable, "-c", "print('nothing of use')"], {})


def test_work_is_timed_as_often_as_asked():
    done = []
    seconds = repeated(lambda: done.append(1), 4)
    assert len(seconds) == len(done) == 4
    assert min(seconds) >= 0


def test_peers_that_are_installed_take_part(peers):
    field = find_field("train", "bf16", peers, (), forced=False)
    assert [one.title for one in field.contenders] == [
        "heedful",
        "toy slow",
        "toy quick",
        "toy broken",
    ]
    assert field.notes == ("absent is not installed; `make peers` does it.",)
    forced = find_field("train", "fp32", peers, ("toy",), forced=True)
    assert [one.title for one in forced.contenders] == ["toy slow"]
    assert forced.notes == ()
    one = find_field("train", "bf16", peers, ("toy quick", "absent fast"), forced=False)
    assert [each.title for each in one.contenders] == ["toy quick"]
    assert len(one.notes) == 1
    assert find_field("train", "fp32", None, (), forced=True).contenders[0].title == "heedful"


def test_turns_are_added_up_and_a_failure_is_told(peers):
    command = (sys.executable, str(peers / "toy" / "bench.py"))
    several = [Contender("toy", command, name, "bf16") for name in ("quick", "broken")]
    told = []
    request = {"task": "train", "steps": 2, "device": "cpu", "threads": 1}
    turns = in_turns(Field(tuple(several), ()), request, 2, told.append)
    ((contender, answer),) = turns.answers
    assert (contender.variant, answer["seconds"]) == ("quick", [1.0] * 4)
    assert [note.endswith("it does not go") for note in turns.notes] == [True]
    assert told == [
        "round 1 of 2: toy quick",
        "round 1 of 2: toy broken",
        "round 2 of 2: toy quick",
    ]
    assert min(turns.rates.values()) > 0


# What is told.


def _measurement(who: str, seconds: tuple[float, ...], **facts: object) -> Measurement:
    return Measurement(who, "bf16", seconds, {"tokens": 300}, 6e9, 10.0, 5_000_000, facts)


def test_the_median_counts():
    one = _measurement("heedful", (9.0, 1.0, 2.0))
    assert (one.median, one.gflops, one.share) == (2.0, 3.0, 0.3)
    assert one.per_second("tokens") == 150.0
    assert json.loads(json.dumps(one.to_dict()))["seconds"]["all"] == [9.0, 1.0, 2.0]


def test_a_report_compares_and_notes():
    ours, theirs = _measurement("heedful", (2.0,)), _measurement("toy", (3.0,), bleu=30.125)
    machine = {"product_gflops": {"bf16": 10.0}, "threads": 1, "device": "cpu"}
    report = Report({"pairs": 1200}, machine, (ours, theirs), ("nobody else.",))
    facts, products, head, first, second, *rest = report.lines()
    assert facts == "pairs 1,200"
    assert products == "products here: bf16 10 GFLOP/s; 1 threads on cpu"
    assert head.endswith("heedful is")
    assert first.split()[:3] == ["heedful", "bf16", "150.0"]
    assert second.endswith("1.50 times as fast")
    assert rest == ["toy: bleu 30.12", "note: nobody else."]
    alone = Report({}, {}, (_measurement("a stage", (1.0,)),), compared=False)
    assert "times as fast" not in "\n".join(alone.lines())
