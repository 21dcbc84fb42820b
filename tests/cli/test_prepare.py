"""`heedful data prepare`, and training from what it made."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

import pytest

from heedful.data.toy_grammar.corpus import sample_pairs
from tests.support.commands import QUICK, refused, train_arguments, write_text

HERE = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
DATA = tuple(setting for setting in QUICK if setting.startswith("data."))
BATCH = tuple(setting for setting in QUICK if setting.startswith("train.batch_tokens"))


def files(text):
    return ["--source", text / "train.en", "--target", text / "train.fr"]


def prepare_arguments(text, out, *settings):
    chosen = [part for setting in (*DATA, *settings) for part in ("--set", setting)]
    return ["data", "prepare", "tiny", *files(text), "--out", out, *chosen]


def train_from(data, out, *settings):
    chosen = [part for setting in (*BATCH, *settings) for part in ("--set", setting)]
    common = ["--device", "cpu", "--precision", "fp32", "--set", "train.checkpoint_steps=2"]
    return ["train", "tiny", "--data", data, "--out", out, *common, *chosen]


def content(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_was_dropped_is_shown_and_kept_with_examples(heedful_cli, text, tmp_path):
    folder = tmp_path / "text"
    folder.mkdir()
    for language, more in (("en", ["да", "a unicorn", "A  UNICORN"]), ("fr", ["da", "le", "un"])):
        lines = (text / f"train.{language}").read_text("utf-8").splitlines()
        lines = [*lines[:600], *lines[:300], *more]
        (folder / f"train.{language}").write_text("".join(f"{x}\n" for x in lines), "utf-8")
    (tmp_path / "test.en").write_text("\na unicorn\n", "utf-8")
    rules = ("data.drop_duplicates=true", "data.min_script_share=0.6")
    command = prepare_arguments(folder, tmp_path / "dir", *rules)
    done = heedful_cli(*command, "--exclude", tmp_path / "test.en")
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "dir" / "data" / "report.json").read_text("utf-8"))
    dropped = {entry["rule"]: entry["dropped"] for entry in report["rules"]}
    assert dropped["overlap"] == 2
    assert dropped["script"] == 1
    assert dropped["duplicate"] >= 300
    assert report["kept"] + sum(dropped.values()) == report["pairs"] == 903
    examples = {entry["rule"]: entry["examples"] for entry in report["rules"]}
    assert examples["script"] == [{"line": 901, "source": "да", "target": "da"}]
    assert [example["line"] for example in examples["overlap"]] == [902, 903]
    shown = done.stdout.splitlines()
    assert shown[0].split() == ["kept", str(report["kept"]), f"{report['kept'] / 903:.2%}"]
    assert [line.split()[0] for line in shown[1:5]] == ["empty", "overlap", "near", "script"]
    assert "overlap, for example" in shown
    assert "    A  UNICORN" in shown
    assert "making subwords" in done.stderr


def test_prepared_text_trains_to_the_same_bits_as_raw_text(heedful_cli, text, tmp_path):
    raw, from_data, prepared = tmp_path / "raw", tmp_path / "data", tmp_path / "deep" / "dir"
    lines = (text / "train.fr").read_text("utf-8").splitlines()[:3]
    (tmp_path / "test.fr").write_text("\n".join(lines), "utf-8")
    exclude = ("--exclude", tmp_path / "test.fr")
    done = heedful_cli(*prepare_arguments(text, prepared), *exclude)
    assert done.returncode == 0, done.stderr

    steps = ("train.steps=4", "train.checkpoint_steps=2", "train.precision=fp32")
    done = heedful_cli(*train_arguments(text, raw, *steps, validate=False), *exclude)
    assert done.returncode == 0, done.stderr
    kept, _, dropped = done.stderr.partition(" pairs kept, ")
    number = int(dropped.partition(" dropped")[0])
    assert number >= 3
    assert int(kept.replace(",", "")) + number == 1_500
    assert f"({number} overlap)" in done.stderr

    from_data.mkdir()
    for last in (2, 4):  # in two sittings
        done = heedful_cli(*train_from(prepared, from_data, f"train.steps={last}"), "--resume")
        assert done.returncode == 0, done.stderr
    assert "continuing from step 2" in done.stderr
    checkpoint = "checkpoints/step-00000004/model.safetensors"
    assert (raw / checkpoint).read_bytes() == (from_data / checkpoint).read_bytes()
    assert content(raw / "data") == content(prepared / "data")
    assert not (from_data / "data").exists()
    configs = [json.loads((run / "config.json").read_text()) for run in (raw, from_data)]
    assert configs[0]["settings"]["data"] == configs[1]["settings"]["data"]
    digest = configs[1]["corpus"].pop("prepared")[0].pop("digest")
    assert digest == json.loads((prepared / "prepared.json").read_text("utf-8"))["digest"]
    assert configs[0]["corpus"] == configs[1]["corpus"]


def test_what_cannot_be_ends_with_2_and_one_paragraph(heedful_cli, text, tmp_path):
    (tmp_path / "train.en").write_bytes(b"a\nb\nc\n")
    (tmp_path / "train.fr").write_bytes(b"a\nb\n")
    done = heedful_cli(*prepare_arguments(tmp_path, tmp_path / "out"))
    refused(done, "train.en has 3", "train.fr has 2")
    assert not (tmp_path / "out").exists()
    refused(heedful_cli(*prepare_arguments(text, text)), "new or empty folder", "train.en")
    refused(heedful_cli("train", "tiny", "--data", text, "--dry-run"), "holds no prepared.json")
    done = heedful_cli("train", "tiny", "--data", text, *files(text), "--dry-run")
    refused(done, "one or the other")


def test_torch_is_not_needed(text, tmp_path):
    program = "import sys\nsys.modules['torch'] = None\nfrom heedful.cli.main import main\nmain()\n"
    command = prepare_arguments(text, tmp_path / "dir")
    subprocess.run([sys.executable, "-c", program, *map(str, command)], check=True, env=HERE)


def start(arguments):
    # A job in the background is born deaf to Ctrl-C, and so are its children. It gives way, so that
    # whoever sends the signal is quicker.
    program = (
        "import os, signal\n"
        "os.nice(10)\n"
        "from heedful.cli.main import main\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "main()\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        encoding="utf-8",
        env=HERE,
    )


def shards(out):
    return list((out / ".data.shards").glob("*.safetensors"))


def signaled_after_a_shard(arguments, out, send, number):
    """Start the command, send a signal after one more shard, and wait for the end."""
    before = out.with_name("before")
    out.mkdir(exist_ok=True)
    shutil.copytree(out, before)
    for _ in range(10):  # on a busy machine the work may be done before the signal comes
        known = len(shards(out))
        process = start(arguments)
        while process.poll() is None and len(shards(out)) == known:
            time.sleep(0.001)
        if process.poll() is None:
            send(process.pid, number)
        _, errors = process.communicate(timeout=240)
        assert "Traceback" not in errors
        if not (out / "data").exists():
            break
        shutil.rmtree(out)
        shutil.copytree(before, out)
    shutil.rmtree(before)
    assert not (out / "data").exists()
    return process.returncode, errors


@pytest.mark.soak
def test_a_killed_preparation_goes_on_to_the_same_bytes(heedful_cli, tmp_path):
    write_text(tmp_path, sample_pairs(2_000, seed=9) * 26, "train")  # five shards and a bit
    quickly = ("data.subwords=character", "data.max_length=200")
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    done = heedful_cli(*prepare_arguments(tmp_path, whole, *quickly), "--processes", 1)
    assert done.returncode == 0, done.stderr
    command = [*prepare_arguments(tmp_path, killed, *quickly), "--processes", 2]
    status, _ = signaled_after_a_shard(command, killed, os.killpg, signal.SIGKILL)
    assert status == -signal.SIGKILL
    assert json.loads((killed / "prepared.json").read_text("utf-8"))["complete"] is False
    refused(heedful_cli("train", "tiny", "--data", killed, "--dry-run"), "was interrupted")
    finished = {path: path.stat().st_mtime_ns for path in shards(killed)}
    assert finished

    status, _ = signaled_after_a_shard(command, killed, os.killpg, signal.SIGINT)
    assert status == -signal.SIGINT
    again = {path: path.stat().st_mtime_ns for path in shards(killed)}
    assert finished.items() <= again.items()  # none was made twice

    done = heedful_cli(*command)
    assert done.returncode == 0, done.stderr
    assert "learning" not in done.stderr
    assert content(killed) == content(whole)


def test_a_full_disk_is_said_and_the_work_goes_on_when_there_is_room(text, tmp_path):
    out = tmp_path / "dir"
    command = [sys.executable, "-m", "heedful", *map(str, prepare_arguments(text, out))]

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (8_000, 8_000))

    def run(limit=None):
        return subprocess.run(
            command, check=False, capture_output=True, encoding="utf-8", env=HERE, preexec_fn=limit
        )

    refused(run(limit), "cannot write to", "File too large", "Free some space", code=1)
    done = run()
    assert done.returncode == 0, done.stderr
    assert {path.name for path in out.iterdir()} == {
        *("prepared.json", "tokenizer.json", "tokenizer.model", "data")
    }
