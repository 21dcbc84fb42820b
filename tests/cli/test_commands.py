"""Each command as a user meets it."""

import json
import signal
import subprocess
import sys
from importlib.metadata import version

import pytest
import torch

from heedful.config.recipes import describe, recipe_names
from heedful.kernels.loss import softmax_kind
from heedful.kernels.native.product import kernels_kind
from heedful.search.beam import beam_search
from heedful.search.greedy import greedy_search
from heedful.search.rules import AllowedTokens
from heedful.search.scoring import pair_log_probabilities
from heedful.search.settings import SearchOptions
from heedful.translation.translator import Translator
from tests.support.commands import train_arguments


def test_a_run_folder_holds_what_was_promised(trained):
    names = {path.name for path in trained.iterdir()}
    assert names == {
        "config.json",
        "tokenizer.json",
        "tokenizer.model",
        "log.jsonl",
        "checkpoints",
        "best.json",
        "data",
    }
    steps = sorted(path.name for path in (trained / "checkpoints").iterdir())
    assert steps[-1] == "step-00000024"
    files = {path.name for path in (trained / "checkpoints" / steps[-1]).iterdir()}
    assert files == {"model.safetensors", "training.safetensors", "state.json"}
    config = json.loads((trained / "config.json").read_text())
    assert config["settings"]["data"]["source_language"] == "en"
    assert config["choices"] == {
        "device": "cpu",
        "precision": "fp32",
        "threads": 1,
        "micro_batch_tokens": 4608,
        "ranks": 1,
        "torch": torch.__version__,
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "batches": 2,
        "loss": softmax_kind(torch.device("cpu")),
        "kernels": kernels_kind(torch.device("cpu")),
    }
    lines = [json.loads(line) for line in (trained / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if "bleu" in line] == [12, 24]


def test_translate_keeps_order_and_empty_lines(heedful_cli, trained):
    lines = ["the dog sleeps", "", "a cat", "   ", "the big cat"]
    done = heedful_cli("translate", trained, stdin="\n".join(lines) + "\n")
    assert done.returncode == 0, done.stderr
    found = done.stdout.split("\n")
    assert len(found) == 6
    assert (found[1], found[3], found[5]) == ("", "   ", "")
    alone = heedful_cli("translate", trained, stdin="a cat")
    assert alone.stdout == found[2] + "\n"


def test_n_best_scores_and_json(heedful_cli, trained):
    done = heedful_cli(
        "translate", trained, "--n-best", 3, "--format", "jsonl", stdin="the dog\na cat\n"
    )
    entries = [json.loads(line) for line in done.stdout.splitlines()]
    assert [entry["line"] for entry in entries] == [0, 1]
    for entry in entries:
        scores = [entry["score"], *(other["score"] for other in entry["alternatives"])]
        assert len(scores) == 3
        assert scores == sorted(scores, reverse=True)
    moses = heedful_cli("translate", trained, "--n-best", 2, stdin="the dog\n").stdout.splitlines()
    assert [line.split(" ||| ")[0] for line in moses] == ["0", "0"]
    scored = heedful_cli("translate", trained, "--scores", stdin="the dog\n").stdout
    assert float(scored.split("\t")[0]) == pytest.approx(entries[0]["score"], abs=1e-5)


def test_score_agrees_with_the_search(heedful_cli, trained, tmp_path):
    translator = Translator.load(trained, precision="fp32")
    sources = ["the dog sleeps", "the red cat", "a cat"]
    ids = translator.tokenizer.encode_source(sources)
    found = beam_search(
        translator.model,
        translator.collator.source(ids),
        [9, 9, 9],
        SearchOptions(length_penalty="gnmt:0.6"),
    )
    targets = [best.tokens for (best,) in found]
    forced = pair_log_probabilities(translator.model, translator.collator, ids, targets)
    for (best,), each in zip(found, forced, strict=True):
        assert list(best.log_probabilities) == pytest.approx(
            each[: len(best.log_probabilities)], abs=1e-4
        )
        if best.ended:
            penalty = ((5 + len(each)) / 6) ** 0.6
            assert best.score == pytest.approx(sum(each) / penalty, abs=1e-4)

    (tmp_path / "s.en").write_text("".join(line + "\n" for line in sources))
    (tmp_path / "t.fr").write_text("le chien dort\nle chat rouge\nun chat\n")
    files = ("--source", tmp_path / "s.en", "--target", tmp_path / "t.fr", "--precision", "fp32")
    expected = translator.score(sources, ["le chien dort", "le chat rouge", "un chat"])
    plain = heedful_cli("score", trained, *files).stdout.splitlines()
    entries = heedful_cli("score", trained, *files, "--format", "jsonl").stdout.splitlines()
    for each, number, line in zip(expected, plain, entries, strict=True):
        assert float(number) == pytest.approx(sum(each), abs=1e-4)
        entry = json.loads(line)
        assert entry["log_probabilities"] == pytest.approx(each, abs=1e-4)
        assert entry["log_probability"] == pytest.approx(sum(each), abs=1e-4)
        assert len(entry["tokens"]) == len(each)
        assert entry["tokens"][-1] == "</s>"


def test_output_is_flushed_when_input_pauses(trained, tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "heedful", "translate", str(trained)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    try:
        for sentence in ("the dog", "a cat"):
            process.stdin.write(sentence + "\n")
            process.stdin.flush()
            assert process.stdout.readline().endswith("\n")
    finally:
        process.stdin.close()
        assert process.wait(60) == 0
        process.stdout.close()


def test_a_beam_of_one_is_greedy(heedful_cli, trained):
    translator = Translator.load(trained, precision="fp32")
    ids = translator.tokenizer.encode_source(["the dog sleeps"])
    (greedy,) = greedy_search(
        translator.model,
        translator.collator.source(ids),
        [len(ids[0]) + 10],
        SearchOptions(length_penalty="gnmt:0.6"),
        rules=[AllowedTokens(forbidden=(0, 2))],
    )
    options = ("--beam", 1, "--precision", "fp32")
    done = heedful_cli("translate", trained, *options, stdin="the dog sleeps\n")
    assert done.stdout == translator.tokenizer.decode(greedy.tokens) + "\n"


def test_ctrl_c_ends_it_quietly_while_input_is_open(trained):
    # A job in the background is born deaf to Ctrl-C, and so are its children.
    program = (
        "import signal, sys\n"
        "from heedful.cli.main import main\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "main()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, "translate", str(trained)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    try:
        process.stdin.write("the dog\n")
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == -signal.SIGINT
        errors = process.stderr.read()
        assert "Fatal" not in errors
        assert "Traceback" not in errors
    finally:
        process.kill()
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()
        process.wait()


def test_wrong_options_touch_no_output(heedful_cli, trained, tmp_path):
    (tmp_path / "text").write_text("the dog\n")
    files = ("--input", tmp_path / "text", "--output", tmp_path / "text")
    same = heedful_cli("translate", trained, *files)
    assert same.returncode == 2
    assert "must not be the same file as --input" in same.stderr
    (tmp_path / "good").write_text("kept\n")
    files = ("--input", tmp_path / "text", "--output", tmp_path / "good")
    assert heedful_cli("translate", trained, *files, "--length-penalty", "1").returncode == 2
    assert heedful_cli("translate", trained, *files, "--device", "gpu").returncode == 2
    assert (tmp_path / "text").read_text() == "the dog\n"
    assert (tmp_path / "good").read_text() == "kept\n"


def test_files_in_and_out(heedful_cli, trained, tmp_path):
    (tmp_path / "in.txt").write_text("the dog\n" * 3)
    done = heedful_cli(
        "translate", trained, "--input", tmp_path / "in.txt", "--output", tmp_path / "out.txt"
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert len((tmp_path / "out.txt").read_text().splitlines()) == 3


def test_average_then_translate_uses_it(heedful_cli, trained, tmp_path):
    import shutil

    run = tmp_path / "run"
    shutil.copytree(trained, run)
    more = heedful_cli("average", run, "--last", 99)
    assert "averaged 3 checkpoints (99 requested, but there are no more)" in more.stdout
    done = heedful_cli("average", run, "--last", 2)
    assert done.returncode == 0
    assert "averaged 2 checkpoints, steps 16, 24" in done.stdout
    default = heedful_cli("translate", run, stdin="the dog\n")
    named = heedful_cli("translate", run, "--weights", "average", stdin="the dog\n")
    assert default.stdout == named.stdout
    info = json.loads(heedful_cli("info", run, "--json").stdout)
    assert info["weights"]["average"]["of_steps"] == [16, 24]
    shutil.rmtree(run / "data")
    shutil.rmtree(run / "checkpoints")
    assert heedful_cli("translate", run, stdin="the dog\n").stdout == default.stdout


def test_info_says_what_a_run_is(heedful_cli, trained):
    info = json.loads(heedful_cli("info", trained, "--json").stdout)
    assert info["recipe"] == "tiny"
    assert info["step"] == 24
    assert info["languages"] == ["en", "fr"]
    assert info["parameters"] > 10_000
    assert len(info["weights"]["step-24"]["sha256"]) == 64
    text = heedful_cli("info", trained).stdout
    assert "recipe: tiny" in text


def test_info_says_what_the_machine_is(heedful_cli):
    info = json.loads(heedful_cli("info", "--json").stdout)
    assert info["machine"]["cores"] >= 1
    assert info["packages"]["torch"]
    assert "plot" in info["extras"]


def test_the_version_is_the_installed_one(heedful_cli):
    assert heedful_cli("--version").stdout == f"heedful {version('heedful')}\n"


def test_recipes_are_listed_with_what_they_are(heedful_cli):
    lines = heedful_cli("train", "--recipes").stdout.splitlines()
    assert [line.split()[0] for line in lines] == recipe_names()
    assert all(
        line.endswith(f"  {describe(name)}")
        for name, line in zip(recipe_names(), lines, strict=True)
    )
    assert "--recipes" in heedful_cli("train", "--help").stdout


@pytest.mark.parametrize("group", [(), ("data",), ("parse",), ("hub",), ("bench",), ("paper",)])
def test_the_help_of_a_group_cuts_no_command_short(heedful_cli, group):
    shown = heedful_cli(*group, "--help").stdout
    assert "Commands:" in shown
    assert "..." not in shown.partition("Commands:")[2]
    assert max(map(len, shown.splitlines())) <= 80


def test_the_help_fills_its_lines_and_names_values(heedful_cli):
    shown = heedful_cli("translate", "--help").stdout
    assert "Output is written\n  whenever input pauses" in shown
    shown = heedful_cli("train", "--help").stdout
    assert "--source FILE" in shown
    assert "list[" not in shown
    assert "[default: default]" not in shown


def test_settings_can_be_printed_and_read_back(heedful_cli, text, tmp_path):
    printed = heedful_cli("train", "small", "--print-config", "--set", "model.dropout=0.25")
    assert printed.returncode == 0
    (tmp_path / "mine.toml").write_text(printed.stdout)
    again = heedful_cli("train", tmp_path / "mine.toml", "--print-config")
    assert again.stdout == printed.stdout
    assert "dropout = 0.25" in again.stdout


def test_a_dry_run_writes_nothing(heedful_cli, text, tmp_path):
    files = ("--source", text / "train.en", "--target", text / "train.fr")
    done = heedful_cli("train", "tiny", *files, "--dry-run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1,500 pairs" in done.stdout
    assert "nothing was written" in done.stdout
    assert list(tmp_path.iterdir()) == []
    held_out = ("--valid-source", text / "valid.en", "--valid-target", text / "valid.fr")
    done = heedful_cli(
        "train", "tiny", *files, *held_out, "--out", "new", "--dry-run", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "validation  40 pairs" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_plans_a_training_on_gpus(heedful_cli, text, tmp_path):
    files = ("--source", text / "train.en", "--target", text / "train.fr")
    devices = ("--device-rate", 1000, "--device-count", 4, "--device-bandwidth", 10)
    done = heedful_cli("train", "tiny", *files, "--dry-run", *devices)
    assert done.returncode == 0, done.stderr
    plan = done.stdout.splitlines()[-4:-1]
    assert [line[:12].strip() for line in plan] == ["memory", "one device", "4 devices"]
    assert all("computed" in line for line in plan)
    assert "This is a lower bound, because several GPUs train with padding" in plan[-1]
    steps = [line for line in done.stdout.splitlines() if line.startswith("steps ")]
    assert steps[0].startswith("steps       one device, without padding")
    assert steps[1].startswith("steps       4 devices, with padding")
    for wrong, message in (
        (("--dry-run", *devices[2:]), "--device-rate is needed"),
        (devices, "--device-rate needs --dry-run"),
        (("--dry-run", *devices[:4]), "needs --device-bandwidth"),
    ):
        refused = heedful_cli("train", "tiny", *files, "--out", tmp_path / "run", *wrong)
        assert refused.returncode == 2
        assert message in refused.stderr


def test_a_dry_run_says_why_a_planned_gpu_needs_padding(heedful_cli, text):
    files = ("--source", text / "train.en", "--target", text / "train.fr", "--dry-run")
    settings = ("--set", "model.positions=relative-buckets", "--device-rate", 1000)
    done = heedful_cli("train", "tiny", *files, *settings)
    assert done.returncode == 0, done.stderr
    (steps,) = [line for line in done.stdout.splitlines() if line.startswith("steps ")]
    assert "with padding" in steps
    assert "RelativeBuckets is added to the scores" in steps


def test_compressed_and_several_files_train_like_plain_ones(heedful_cli, text, tmp_path):
    import gzip
    import lzma

    for language, opener, ending in (("en", gzip.open, "gz"), ("fr", lzma.open, "xz")):
        lines = (text / f"train.{language}").read_bytes().splitlines(keepends=True)
        for number, part in enumerate((lines[:700], lines[700:])):
            with opener(tmp_path / f"part{number}.{language}.{ending}", "wb") as file:
                file.write(b"".join(part))
    weights = []
    for out, source, target in (
        ("plain", text / "train.en", text / "train.fr"),
        ("packed", tmp_path / "part*.en.gz", tmp_path / "part*.fr.xz"),
    ):
        arguments = ("--source", source, "--target", target, "--set", "train.steps=2")
        arguments += ("--set", "train.batch_tokens=256", "--set", "data.vocabulary_size=400")
        done = heedful_cli("train", "tiny", *arguments, "--out", tmp_path / out)
        assert done.returncode == 0, done.stderr
        checkpoint = tmp_path / out / "checkpoints" / "step-00000002"
        weights.append((checkpoint / "model.safetensors").read_bytes())
    assert weights[0] == weights[1]


def test_a_run_that_has_ended_can_be_given_more_steps(heedful_cli, text, tmp_path):
    out = tmp_path / "run"
    first = heedful_cli(*train_arguments(text, out, "train.steps=4", validate=False))
    assert first.returncode == 0, first.stderr
    more = train_arguments(text, out, "train.steps=6", validate=False)
    done = heedful_cli(*more, "--resume")
    assert done.returncode == 0, done.stderr
    assert "continuing from step 4" in done.stderr
    assert (out / "checkpoints" / "step-00000006").is_dir()
