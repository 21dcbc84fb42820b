import json
from dataclasses import asdict

import pytest

from heedful.bench.random_run import make_random_run
from heedful.config.schema import RunConfig
from heedful.errors import RunFolderError, SettingError
from heedful.experiments.measured import (
    MeasuredSystem,
    _after,
    _attention_use,
    _curve,
    _read,
    _translate,
    at_cost,
)
from heedful.experiments.plan import PlannedSystem
from heedful.experiments.system import TableSystem
from heedful.translation.translator import Translator


@pytest.mark.parametrize(
    ("kind", "cost", "bleu"),
    [
        ("seconds", 200.0, 10.0),
        ("seconds", 300.0, 15.0),
        ("seconds", 100.0, 5.0),
        ("flops", 2e11, 20.0),
    ],
)
def test_bleu_is_read_off_the_curve(make, kind, cost, bleu):
    assert at_cost(make("one").curve, kind, cost) == pytest.approx(bleu)


def test_it_is_read_as_it_was_written(make):
    one = make("one")
    assert MeasuredSystem.of(json.loads(json.dumps(asdict(one)))) == one


@pytest.mark.parametrize("content", ["", "[]", "null", '{"curve": [{"step": 1}]}'])
def test_damaged_scores_are_refused_by_their_file(tmp_path, content):
    file = tmp_path / "measured" / "base.json"
    file.parent.mkdir()
    file.write_text(content, encoding="utf-8")
    with pytest.raises(RunFolderError, match=r"base\.json must contain the scores of a training"):
        _read(tmp_path, "base")


def test_a_log_of_an_older_version_is_refused(tmp_path):
    run = tmp_path / "runs" / "base"
    run.mkdir(parents=True)
    line = {"step": 8, "valid_loss": 2.0, "bleu": 10.0}
    planned = PlannedSystem("base", (), "text/encoded-1", 8, 500.0, 1_000, 5)
    for counted in ({"flops": 7e9}, {}):
        (run / "log.jsonl").write_text(json.dumps(line | counted) + "\n", encoding="utf-8")
        if counted:
            (point,) = _curve(run, planned)
            assert (point.step, point.seconds, point.flops, point.bleu) == (8, 16.0, 7e9, 10.0)
        else:
            with pytest.raises(RunFolderError, match=r"base must have a log with operation counts"):
                _curve(run, planned)


def test_a_curve_begins_with_that_of_the_training_it_went_on_from(make):
    first = make("one").curve
    whole = _after(first, first)
    assert whole[: len(first)] == first
    assert (whole[-1].step, whole[-1].seconds) == (2 * first[-1].step, 2 * first[-1].seconds)
    for kind in ("seconds", "flops"):
        spent = getattr(first[-1], kind)
        assert at_cost(whole, kind, spent) == at_cost(first, kind, spent)


@pytest.mark.family("recurrent")
def test_an_ensemble_translates_without_the_penalty_of_one_models_attention(corpus, tmp_path):
    changed = {
        "model.encoder": "recurrent",
        "model.decoder": "recurrent",
        "model.d_model": 16,
        "model.encoder_layers": 1,
        "model.decoder_layers": 1,
        "search.coverage_penalty": 0.2,
        "data.vocabulary_size": 50,
    }
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
        make_random_run(folder, RunConfig().with_settings(changed), 50)
    short = corpus._replace(folder=tmp_path)
    for language in (corpus.source, corpus.target):
        short.file("test", language).write_text("w1 w2\nw3\n", "utf-8")
    translator = Translator.load(folders, device="cpu", precision="fp32", threads=1)
    system = TableSystem("both", "Both", members=("one", "two"))
    assert len(_translate(translator, system, "test", short, tmp_path)) == 2
    with pytest.raises(SettingError, match="coverage penalty needs a recurrent decoder"):
        _translate(translator, system._replace(members=()), "test", short, tmp_path)


def test_the_last_use_of_attention_is_read_from_the_log(tmp_path):
    uses = [{"nats_of_uniform": 0.1}, {"nats_of_uniform": 1.1}]
    lines = [
        {"step": n, "loss": 1.0, "health": {"attention": use}} for n, use in enumerate(uses, 1)
    ]
    log = tmp_path / "log.jsonl"
    log.write_text(
        "".join(f"{json.dumps(line)}\n" for line in [*lines, {"step": 9, "loss": 1.0}]), "utf-8"
    )
    assert _attention_use(tmp_path) == uses[-1]
    log.write_text(json.dumps({"step": 1, "loss": 1.0}), "utf-8")
    assert _attention_use(tmp_path) is None
