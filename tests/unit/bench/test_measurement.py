import json

from heedful.bench.measurement import SpeedMeasurement, SpeedReport


def _measurement(who: str, seconds: tuple[float, ...], **facts: object) -> SpeedMeasurement:
    return SpeedMeasurement(who, "bf16", seconds, {"tokens": 300}, 6e9, 10.0, 5_000_000, facts)


def test_the_median_counts():
    one = _measurement("heedful", (9.0, 1.0, 2.0))
    assert (one.median, one.gflops, one.share) == (2.0, 3.0, 0.3)
    assert one.per_second("tokens") == 150.0
    assert json.loads(json.dumps(one.to_dict()))["seconds"]["all"] == [9.0, 1.0, 2.0]


def test_a_report_compares_and_notes():
    ours, theirs = _measurement("heedful", (2.0,)), _measurement("toy", (3.0,), bleu=30.125)
    machine = {"product_gflops": {"bf16": 10.0}, "threads": 1, "device": "cpu"}
    report = SpeedReport({"pairs": 1200}, machine, (ours, theirs), ("nobody else.",))
    facts, products, head, first, second, *rest = report.lines()
    assert facts == "pairs 1,200"
    assert products == "products here: bf16 10 GFLOP/s; 1 threads on cpu"
    assert head.endswith("heedful is")
    assert first.split()[:3] == ["heedful", "bf16", "150.0"]
    assert second.endswith("1.50 times as fast")
    assert rest == ["toy: bleu 30.12", "note: nobody else."]
    alone = SpeedReport({}, {}, (_measurement("a stage", (1.0,)),), compared=False)
    assert "times as fast" not in "\n".join(alone.lines())


def test_the_first_system_is_compared_with_the_others_whoever_it_is():
    report = SpeedReport({}, {}, (_measurement("toy", (3.0,)), _measurement("model", (6.0,))))
    _, _, head, _, second = report.lines()
    assert head.endswith("toy is")
    assert second.endswith("2.00 times as fast")
