"""Plugins on the command line: each command asks for them, and a run with one is a run."""

import hashlib
import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.cli.test_ranks import torchrun
from tests.support.commands import refused, resumes_alike, train_arguments, train_run
from tests.support.plugins import SCHEDULE, page_plugin, write_plugin
from tests.support.serving import serving

SETTINGS = (
    "model.encoder=conv",
    "train.precision=fp32",
    "train.steps=6",
    "train.batch_tokens=256",
    "train.checkpoint_steps=3",
    "train.validate_steps=3",
    "search.max_length=5",
    "data.subword_sampling=0.1",  # by processes of its own
)


@pytest.fixture(scope="module")
def conv(tmp_path_factory):
    """The encoder of the how-to page."""
    return write_plugin(tmp_path_factory.mktemp("plugin"), page_plugin("conv.py"), "conv.py")


@pytest.fixture(scope="module")
def run(heedful_cli, text, conv, tmp_path_factory):
    out = tmp_path_factory.mktemp("plugins") / "run"
    return train_run(heedful_cli, text, out, *SETTINGS, options=["--plugin", conv])


def with_plugin(heedful_cli, conv):
    """The command line, with the plugin of the run."""
    return lambda *words, **keywords: heedful_cli(*words, "--plugin", conv, **keywords)


def test_a_resumed_run_has_the_same_bytes(heedful_cli, text, conv, run, tmp_path):
    resumes_alike(with_plugin(heedful_cli, conv), text, run, tmp_path / "again", SETTINGS, 3, 6)


@pytest.mark.parametrize(
    "words",
    [
        ("translate", "RUN"),
        ("score", "RUN", "--source", "TEXT/valid.en", "--target", "TEXT/valid.fr"),
        ("attend", "RUN", "the dog", "--out", "OUT/attention.html"),
        ("info", "RUN"),
        ("average", "RUN"),
        ("compare", "RUN", "RUN"),
        ("data", "show", "RUN"),
        (
            "bench",
            "translate",
            "RUN",
            "--input",
            "TEXT/valid.en",
            "--lines",
            "2",
            "--repeats",
            "1",
            "--precision",
            "fp32",
        ),
    ],
    ids=lambda words: words[0],
)
def test_every_command_asks_for_the_plugin(heedful_cli, text, conv, run, tmp_path, words):
    places = {"RUN": str(run), "TEXT": str(text), "OUT": str(tmp_path)}
    for name, place in places.items():
        words = [word.replace(name, place) for word in words]
    digest = hashlib.sha256(conv.read_bytes()).hexdigest()
    message = refused(heedful_cli(*words, stdin="a dog\n"), "conv.py", digest, "--plugin conv.py")
    assert str(run / "plugins" / "conv.py") in message
    done = heedful_cli(*words, "--plugin", conv, stdin="a dog\n")
    assert done.returncode == 0, done.stderr


def test_what_cannot_carry_it_says_so(heedful_cli, conv, run, tmp_path):
    done = heedful_cli("export", run, tmp_path / "out", "--format", "ctranslate2", "--plugin", conv)
    refused(done, "`model.encoder` is conv")
    done = heedful_cli("translate", run, "--plugin", run / "plugins" / "conv.py", stdin="a\n")
    refused(done, "is the copy in a run folder, which is never executed")


def test_a_changed_plugin_continues_only_inexactly(heedful_cli, text, conv, tmp_path):
    out = tmp_path / "run"
    settings = [*SETTINGS, "train.steps=2"]
    train_run(heedful_cli, text, out, *settings, options=["--plugin", conv])
    changed = write_plugin(tmp_path, f"{conv.read_text()}# changed\n", "conv.py")
    again = [*train_arguments(text, out, *settings), "--resume", "--plugin", changed]
    before = (out / "config.json").read_bytes()
    refused(heedful_cli(*again), "must be used with the plugin conv.py", str(changed))
    refused(heedful_cli(*train_arguments(text, out, *settings), "--resume"), "the plugin conv.py")
    assert (out / "config.json").read_bytes() == before
    assert heedful_cli(*again, "--allow-inexact-resume").returncode == 0
    record = json.loads((out / "config.json").read_text())["plugins"]
    assert record == [
        {"name": "conv.py", "sha256": hashlib.sha256(changed.read_bytes()).hexdigest()}
    ]
    assert (out / "plugins" / "conv.py").read_bytes() == changed.read_bytes()
    refused(heedful_cli("info", out, "--plugin", conv), "--allow-inexact-resume, which records it")
    assert heedful_cli("info", out, "--plugin", changed).returncode == 0


def test_a_link_in_place_of_the_copies_is_not_followed(heedful_cli, text, conv, tmp_path):
    out, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    settings = [*SETTINGS, "train.steps=2"]
    train_run(heedful_cli, text, out, *settings, options=["--plugin", conv])
    shutil.move(out / "plugins", elsewhere)
    (out / "plugins").symlink_to(elsewhere)
    (elsewhere / "conv.py").write_text("mine\n")
    words = [*train_arguments(text, out, *settings), "--resume", "--plugin", conv]
    refused(heedful_cli(*words), "a link to another folder")
    assert (elsewhere / "conv.py").read_text() == "mine\n"


def test_a_settings_file_brings_its_plugin(heedful_cli, text, conv, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(f'base = "tiny"\nplugins = [{str(conv)!r}]\nmodel.encoder = "conv"\n')
    printed = heedful_cli("train", file, "--print-config")
    assert printed.returncode == 0, printed.stderr
    assert f'plugins = ["{conv}"]' in printed.stdout and 'encoder = "conv"' in printed.stdout
    plain = heedful_cli("train", "tiny", "--print-config")
    assert "plugins =" not in plain.stdout


def test_a_part_that_fails_is_named_by_file_and_line(heedful_cli, text, tmp_path):
    bad = write_plugin(tmp_path, SCHEDULE.replace("schedule.peak", "1 / (2 - step)"), "flat.py")
    settings = ("train.schedule=flat", "train.learning_rate=0.1", "train.steps=2")
    done = heedful_cli(*train_arguments(text, tmp_path / "run", *settings), "--plugin", bad)
    refused(done, f"{bad} must run", "its line 4 raises ZeroDivisionError: division by zero")


def test_a_schedule_may_depend_on_the_steps_and_the_validations(heedful_cli, text, tmp_path):
    flat = write_plugin(tmp_path, SCHEDULE, "flat.py")
    settings = ("train.schedule=flat", "train.learning_rate=0.1", "train.precision=fp32")
    settings += ("train.steps=1", "train.batch_tokens=256", "search.max_length=2")
    command = [*train_arguments(text, tmp_path / "run", *settings), "--plugin", flat]
    done = heedful_cli(*command)
    assert done.returncode == 0, done.stderr
    for name, value in (("steps", 2), ("validate_steps", 7)):
        changed = [*command, "--resume", "--set", f"train.{name}={value}"]
        refused(heedful_cli(*changed), f"train.{name} was", f"and is now {value}")


def test_several_plugins_and_what_is_no_plugin(heedful_cli, conv, tmp_path):
    flat = write_plugin(tmp_path, SCHEDULE, "flat.py")
    settings = [f"--set={s}" for s in ("train.schedule=flat", "train.learning_rate=0.1")]
    words = ["train", "tiny", "--print-config", "--plugin", conv, *settings]
    assert 'schedule = "flat"' in heedful_cli(*words, "--plugin", flat).stdout
    refused(heedful_cli(*words), "but got 'flat'")
    refused(
        heedful_cli(*words, "--plugin", tmp_path / "none.py"), "none.py cannot be read: No such"
    )
    refused(heedful_cli(*words, "--plugin", tmp_path), "must be a Python file")
    broken = write_plugin(tmp_path, "def f(:\n", "broken.py")
    refused(heedful_cli(*words, "--plugin", broken), "its line 1 raises SyntaxError")


def test_a_server_loads_it_at_its_start_alone(zygote, heedful_cli, text, conv, run, tmp_path):
    refused(heedful_cli("serve", run, "--port", 0), "--plugin conv.py")
    served = tmp_path / "served"
    served.symlink_to(run)
    with serving(zygote, f"en:fr={served}", "--plugin", conv) as server:
        asked = {"q": "the dog", "source": "en", "target": "fr"}
        before = server.client.post("/translate", json=asked)
        assert before.status_code == 200, before.text
        # a run with another plugin is not loaded by a reload, and its copy neither
        other = write_plugin(tmp_path, f"{conv.read_text()}raise SystemExit\n", "conv.py")
        copied = Path(tmp_path, "other")
        os.system(f"cp -r {run} {copied}")
        content = json.loads((copied / "config.json").read_text())
        content["plugins"][0]["sha256"] = hashlib.sha256(other.read_bytes()).hexdigest()
        (copied / "config.json").write_text(json.dumps(content))
        (copied / "plugins" / "conv.py").write_bytes(other.read_bytes())
        served.unlink()
        served.symlink_to(copied)
        server.signal(signal.SIGHUP)
        server.until(lambda: "must be used with the plugin conv.py" in server.log())
        assert server.client.post("/translate", json=asked).json() == before.json()


def test_each_rank_loads_it(zygote, text, conv, tmp_path):
    out = tmp_path / "run"
    program = ["--no-python", zygote.programs / "heedful"]
    arguments = train_arguments(text, out, *SETTINGS, "train.steps=2")
    process = torchrun(zygote, program, [*arguments, "--plugin", conv])
    _, errors = process.communicate(timeout=500)
    assert process.returncode == 0, errors
    assert "2 ranks" in errors and (out / "plugins" / "conv.py").exists()


def test_metric_objective_and_rule_of_the_page(heedful_cli, text, tmp_path):
    files = [
        write_plugin(tmp_path, page_plugin(name), name)
        for name in ("length.py", "focal.py", "no_repeat.py")
    ]
    options = [word for file in files for word in ("--plugin", file)]
    out = train_run(
        heedful_cli,
        text,
        tmp_path / "run",
        "train.best_by=length",
        "train.objective=focal",
        "search.rules=no-repeat",
        "train.steps=4",
        "train.validate_steps=2",
        options=options,
    )
    content = json.loads((out / "config.json").read_text())
    assert [record["name"] for record in content["plugins"]] == [file.name for file in files]
    assert content["settings"]["search"]["rules"] == "no-repeat"
    lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    assert all(0 <= line["length"] <= 100 for line in lines if "valid_loss" in line)
    assert all("length" in entry for entry in json.loads((out / "best.json").read_text())["best"])
    plotted = heedful_cli("plot", out, *options, "--out", tmp_path / "curves.png")
    assert plotted.returncode == 0 and "right length" in plotted.stdout, plotted.stderr
    done = heedful_cli("translate", out, *options, "--max-length", 9, stdin="the dog\n")
    assert done.returncode == 0, done.stderr
    export = heedful_cli("export", out, tmp_path / "out", "--format", "onnx", *options)
    refused(export, "`search.rules` is no-repeat")
