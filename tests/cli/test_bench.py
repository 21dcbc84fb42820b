"""`heedful bench`, on toy shapes."""

import json

import pytest


def test_a_training_step_is_measured_in_a_process_of_its_own(heedful_cli):
    alone = ("--only", "heedful", "--threads", 1)
    shape = ("--batch-tokens", 200, "--vocabulary", 300, "--set", "model.dropout=0.0")
    done = heedful_cli(
        "bench", "train", "tiny", *shape, "--steps", 2, "--json", "--profile", *alone
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    ours = report["measurements"][0]
    assert (ours["who"], len(ours["seconds"]["all"])) == ("heedful", 2)
    assert ours["counts"] == {"source tokens": 200, "target tokens": 200, "tokens": 400}
    assert 0 < ours["share"] < 1
    assert 50e6 < ours["memory"] < 4e9
    assert 5 < ours["loss"] < 8
    assert ours["versions"].keys() == {"heedful", "torch"}
    assert abs(sum(ours["profile"].values()) - 1) < 1e-6
    assert report["machine"]["product_gflops"].keys() == {"fp32", "bf16"}


@pytest.mark.soak
def test_a_search_with_random_weights_is_as_long_as_asked(heedful_cli):
    shape = ("--recipe", "tiny", "--vocabulary", 300, "--lines", 6, "--tokens", 5, "--batch", 4)
    often = ("--repeats", 2, "--threads", 1, "--only", "heedful", "--precision", "fp32")
    done = heedful_cli("bench", "translate", *shape, *often)
    assert done.returncode == 0, done.stderr
    facts, _, head, row, *rest = done.stdout.splitlines()
    assert "lines 6" in facts
    assert "run random weights" in facts
    assert head.split()[:3] == ["precision", "sentences/s", "tokens/s"]
    assert row.startswith("heedful")
    sentences, tokens = (float(cell.replace(",", "")) for cell in row.split()[2:4])
    assert abs(tokens / sentences - 5) < 0.3
    assert "heedful: lines equal to the first 1" in rest


@pytest.mark.soak
def test_the_stages_from_text_to_batches_are_measured(heedful_cli, tmp_path):
    for language in ("en", "fr"):
        text = "".join(f"{language} {number} the big red dog\n" for number in range(200))
        (tmp_path / f"text.{language}").write_text(text, encoding="utf-8")
    files = ("--source", tmp_path / "text.en", "--target", tmp_path / "text.fr")
    small = ("--set", "data.vocabulary_size=60", "--repeats", 2, "--threads", 1)
    done = heedful_cli("bench", "data", "tiny", *files, *small, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [len(one["seconds"]["all"]) for one in report["measurements"]] == [1, 2, 2, 2]
    assert all(one["counts"] == {"lines": 200} for one in report["measurements"])


REHEARSAL = ("bench", "device", "--device", "cpu", "--size", "tiny", "--threads", 1)


def test_a_part_of_a_visit_to_a_device_is_rehearsed(heedful_cli, tmp_path):
    done = heedful_cli(*REHEARSAL, "--out", tmp_path, "--part", "rates")
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "device-rates.json").read_text(encoding="utf-8"))
    (measured,) = record["measurements"]["entries"]
    assert measured["product_gflops"].keys() == {"fp32", "bf16"}
    assert min(measured["product_gflops"].values()) > 0
    assert measured["copy_gb_per_second"] > 0
    assert done.stdout.startswith("rates: cpu, ")
    assert done.stdout.splitlines()[-1].startswith("No step with all")


@pytest.mark.soak
def test_a_whole_visit_to_a_device_is_rehearsed(heedful_cli, tmp_path):
    done = heedful_cli(*REHEARSAL, "--out", tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    parts = [record["measurements"] for record in json.loads(done.stdout)]
    assert {f"device-{part['part']}.json" for part in parts} == {
        path.name for path in tmp_path.iterdir()
    }
    assert not [part for part in parts if "failed" in part]
    entries = [entry for part in parts for entry in part["entries"]]
    failed = [entry for entry in entries if "failed" in entry]
    assert {entry["failed"].split(" ", 1)[1] for entry in failed} <= {
        "is not installed; `make peers` installs it."
    }
    assert not [entry for entry in failed if entry["who"] == "heedful"]


def test_what_cannot_be_measured_is_said(heedful_cli, tmp_path):
    cases = {
        ("train", "smal"): "recipe",
        ("train", "--peers", tmp_path / "nowhere"): "must be a folder",
        ("train", "--precision", "half"): "fp32",
        ("translate", "--input", tmp_path / "text"): "need a RUN",
        ("translate", tmp_path): "needs a text to translate",
        ("data", "--source", tmp_path / "text"): "must be given together",
        ("device", "--out", tmp_path, "--part", "wings"): "a part must be one of correct, rates",
        ("device", "--out", tmp_path, "--size", "huge"): "'full' or 'tiny'",
    }
    for arguments, message in cases.items():
        done = heedful_cli("bench", *arguments)
        assert done.returncode == 2, done.stderr
        assert message in done.stderr
        assert "Traceback" not in done.stderr


def test_settings_of_a_random_model_are_refused_for_a_run(heedful_cli, trained):
    for option, value in (("--set", "model.dropout=0.0"), ("--vocabulary", 300)):
        done = heedful_cli("bench", "translate", trained, option, value)
        assert done.returncode == 2
        assert f"{option} changes a random model, but RUN is a trained model" in done.stderr


def test_references_are_checked_before_anything_is_measured(heedful_cli, trained, text, tmp_path):
    short = tmp_path / "short.fr"
    short.write_text("un\ndeux\n", encoding="utf-8")
    words = ("bench", "translate", trained, "--input", text / "valid.en", "--reference")
    for reference, message in ((short, "must have a reference for each"), (tmp_path / "x", "x")):
        done = heedful_cli(*words, reference)
        assert done.returncode == 2 and message in done.stderr, done.stderr
        assert "round 1" not in done.stderr
