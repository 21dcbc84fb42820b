"""`heedful translate --engine ctranslate2`, in a process where torch cannot be imported."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from heedful.bench.random_run import make_random_run, random_lines
from heedful.config.schema import RunConfig
from heedful.exchange.convert import export_model
from heedful.exchange.formats import WriteOptions
from heedful.runs.checkpoint import load_checkpoint, save_checkpoint
from heedful.tokenization.special_symbols import END

SOURCE = Path(__file__).parents[2] / "src"
WITHOUT_TORCH = """
import json, sys
sys.modules["torch"] = None
from heedful.cli.main import main
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["heedful", "translate", *arguments]
    try:
        main()
    except SystemExit as end:
        print("==", end.code, file=sys.stderr, flush=True)
"""
LINES = [*random_lines(61, 7, 2), "", *random_lines(61, 5, 2, seed=2)]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A run, and the folder that it was exported to."""
    folder = tmp_path_factory.mktemp("engine")
    small = {
        "model.d_model": 16,
        "model.d_ff": 24,
        "model.heads": 2,
        "search.max_length": "input+3",
    }
    layers = {"model.encoder_layers": 2, "model.decoder_layers": 1}
    (folder / "run").mkdir()
    make_random_run(folder / "run", RunConfig().with_settings(small | layers), 61)
    options = WriteOptions("", 20)
    export_model(
        folder / "run", "ctranslate2", folder / "ct2", options=options, sentences=LINES[:2]
    )
    return folder


def run(*commands, code):
    """Run commands one after the other in a process without torch; returns what they write."""
    words = json.dumps([[*map(str, command)] for command in commands])
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, words],
        input="".join(f"{line}\n" for line in LINES),
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1", "COLUMNS": "200"},
        timeout=240,
        check=False,
    )
    *errors, last = done.stderr.split(f"== {code}\n")
    assert len(errors) == len(commands) and not last, done.stderr
    return done.stdout.splitlines(), errors


def translate(*arguments):
    return run(arguments, code=0)[0]


def refused(*commands):
    return run(*commands, code=2)[1]


def engine(folders, *arguments):
    return translate(folders / "ct2", "--engine", "ctranslate2", *arguments)


def test_it_translates_as_torch_does(folders, heedful_cli):
    options = ["--beam", 1, "--format", "jsonl"]
    found = [json.loads(line) for line in engine(folders, *options)]
    text = "".join(f"{line}\n" for line in LINES)
    done = heedful_cli(
        "translate", folders / "run", "--device", "cpu", "--precision", "fp32", *options, stdin=text
    )
    ours = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["tokens"] for one in found] == [one["tokens"] for one in ours]
    assert found[2]["text"] == ""
    for mine, other in zip(found, ours, strict=True):
        assert mine["score"] == pytest.approx(other["score"], abs=1e-4)


@pytest.mark.soak
def test_a_model_that_would_say_nothing_says_what_it_must(tmp_path, heedful_cli):
    settings = {"model.d_model": 16, "model.d_ff": 24, "model.heads": 2, "model.output_bias": True}
    (tmp_path / "run").mkdir()
    run = make_random_run(tmp_path / "run", RunConfig().with_settings(settings), 61)
    weights = dict(load_checkpoint(run.folder.checkpoint(1)).model)
    weights["output.bias"][END] = 30.0
    save_checkpoint(run.folder.checkpoint(2), weights, None, {"step": 2})
    export_model(tmp_path / "run", "ctranslate2", tmp_path / "ct2", options=WriteOptions("", 20))
    text = "".join(f"{line}\n" for line in LINES)
    for asked, length in (((), 0), (("--min-length", 5), 5)):
        found = [
            translate(tmp_path / "ct2", "--engine", "ctranslate2", "--format", "jsonl", *asked),
            heedful_cli(
                "translate", tmp_path / "run", "--format", "jsonl", *asked, stdin=text
            ).stdout.splitlines(),
        ]
        lengths = [[len(json.loads(line)["tokens"]) for line in lines] for lines in found]
        assert lengths == [[length if line else 0 for line in LINES]] * 2


def test_its_options_are_those_of_torch(folders):
    best = engine(folders, "--n-best", 3, "--length-penalty", "power:1", "--no-repeat-ngram", 2)
    numbered = [line.split(" ||| ") for line in best]
    assert {int(number) for number, _, _ in numbered} == {0, 1, 2, 3, 4}
    scores = [float(score) for number, _, score in numbered if number == "0"]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)
    for _, text, _ in numbered:
        pairs = list(zip(text.split(), text.split()[1:], strict=False))
        assert len(set(pairs)) == len(pairs)


def test_a_translation_begins_as_it_is_told(folders, tmp_path):
    (tmp_path / "begin.txt").write_text("w3 w5\n\n\nw7\n\n", encoding="utf-8")
    found = engine(folders, "--target-prefix", tmp_path / "begin.txt")
    assert found[0].startswith("w3 w5")
    assert found[3].startswith("w7")


def test_no_limit_can_be_beyond_the_positions(folders):
    assert all(len(line.split()) <= 2 for line in engine(folders, "--max-length", 2))
    (message,) = refused((folders / "ct2", "--engine", "ctranslate2", "--max-length", 20))
    assert "at most 19" in message


def test_what_it_cannot_do_is_refused_in_one_sentence(folders):
    run, exported = folders / "run", folders / "ct2"
    by_engine = ("--engine", "ctranslate2")
    options, two, not_exported, without_torch, unknown = refused(
        (exported, *by_engine, "--sample", "--alignments", "--weights", "last"),
        (exported, *by_engine, exported),
        (run, *by_engine),
        (run,),
        (exported, "--engine", "bolt"),
    )
    assert "--sample, --alignments, --weights" in options
    assert "one exported folder" in two
    assert "export the run first" in not_exported
    assert "needs torch" in without_torch
    assert "--engine" in unknown


def test_plain_ctranslate2_runs_the_folder(folders):
    script = """
import sys
sys.modules["torch"] = None
import ctranslate2
translator = ctranslate2.Translator(sys.argv[1])
print(*translator.translate_batch([sys.argv[2].split()], max_decoding_length=5)[0].hypotheses[0])
"""
    command = [sys.executable, "-c", script, str(folders / "ct2"), LINES[0]]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True, timeout=240)
    assert done.stdout.split()
    assert all(token.startswith("w") for token in done.stdout.split())
