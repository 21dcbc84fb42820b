"""Training text that repeats held-out text is reported, and dropped on demand."""

import json

import pytest

from tests.support.commands import QUICK, refused, train_arguments, write_text

LONG = ("the cat sees one two three four five six seven", "le chat voit un deux trois quatre cinq")
FEW = ("data.vocabulary_size=300", "train.steps=2", "train.validate_steps=2")


@pytest.fixture(scope="module")
def leaking(grammar, tmp_path_factory):
    """Text of which lines 401 and 402 stand in the validation text, whose second line is empty."""
    folder = tmp_path_factory.mktemp("text")
    pairs, held_out = grammar
    own = [pair for pair in pairs if pair[0] != held_out[0][0]][:400]
    first = (held_out[0][0], held_out[0][1])
    longer = (f"Well, {LONG[0].upper()}!", f"bien, {LONG[1]} jours")
    write_text(folder, [*own, first, longer], "train")
    write_text(folder, [first, ("", ""), LONG], "valid")
    return folder


def excluding(text):
    return [part for side in ("en", "fr") for part in ("--exclude", text / f"valid.{side}")]


def warnings(done):
    assert done.returncode == 0, done.stderr
    text = done.stderr + done.stdout
    return [line for line in text.splitlines() if "validation pairs: " in line]


def expected(message):
    assert "repeats 2 of 2 validation pairs" in message
    assert "1 training pair has at least 90%" in message
    assert "402 ~ 3" in message and "401 = 1" in message
    return message


def test_a_training_warns_before_its_first_step_and_again_when_resumed(
    heedful_cli, leaking, tmp_path
):
    command = train_arguments(leaking, tmp_path / "run", *FEW)
    for more in (["--dry-run"], [], ["--resume", "--set", "train.steps=3"]):
        (message,) = warnings(heedful_cli(*command, *more))
        expected(message)


def test_what_is_excluded_is_dropped_and_not_warned_of(heedful_cli, leaking, tmp_path):
    command = train_arguments(leaking, tmp_path / "run", *FEW)
    done = heedful_cli(*command, *excluding(leaking))
    assert warnings(done) == []
    report = json.loads((tmp_path / "run/data/report.json").read_text("utf-8"))
    dropped = {rule["rule"]: rule for rule in report["rules"]}
    assert dropped["near"]["dropped"] == 1
    assert dropped["near"]["examples"][0]["line"] == 402
    assert dropped["overlap"]["dropped"] >= 1
    assert report["notes"] == []


def test_a_preparation_warns_and_remembers_what_it_compared(heedful_cli, leaking, tmp_path):
    settings = [setting for setting in (*QUICK, *FEW) if setting.startswith("data.")]
    text = ["--source", leaking / "train.en", "--target", leaking / "train.fr"]
    valid = ["--valid-source", leaking / "valid.en", "--valid-target", leaking / "valid.fr"]
    command = ["data", "prepare", "tiny", *text, "--out", tmp_path / "data"]
    command += [part for setting in settings for part in ("--set", setting)]
    messages = {*warnings(heedful_cli(*command, *valid))}
    assert messages >= {*warnings(heedful_cli(*command, *valid))}  # read from what is there
    for message in messages:
        expected(message)
    notes = json.loads((tmp_path / "data/data/report.json").read_text("utf-8"))["notes"]
    assert [expected(note) for note in notes]
    refused(heedful_cli(*command), "--valid-source", "--valid-target")
    refused(
        heedful_cli(*command, *valid[:2]),
        "--valid-source and --valid-target must be given together",
    )
    (tmp_path / "empty").write_text("\n\n\n")
    empty = [*valid[:2], "--valid-target", tmp_path / "empty"]
    refused(heedful_cli(*command, *empty), "must have a pair with text on both sides")
    (tmp_path / "short").write_text("one\n")
    refused(heedful_cli(*command, *valid[:2], "--valid-target", tmp_path / "short"), "3", "1")
    # training from ids repeats what was found, or says that nothing was compared
    run = ["train", "tiny", "--data", tmp_path / "data"]
    run += [part for setting in FEW[1:] for part in ("--set", setting)]
    for more in (["--dry-run"], [], ["--resume"]):
        (message,) = warnings(heedful_cli(*run, *valid, "--out", tmp_path / "run", *more))
        expected(message)
    same = ["--valid-source", leaking / "train.en", "--valid-target", leaking / "train.fr"]
    done = heedful_cli(*run, *same, "--dry-run")
    assert done.returncode == 0, done.stderr
    (message,) = [line for line in done.stdout.splitlines() if "not compared" in line]
    assert "with this validation text; `heedful data prepare` with --valid-source" in message


def test_pairs_in_memory_are_compared_too(heedful_cli, tmp_path):
    program = (
        "import heedful\n"
        "pairs = [(f'the dog {n}', f'le chien {n}') for n in range(200)]\n"
        "heedful.train('tiny', out='run', pairs=pairs, valid_pairs=[('', ''), pairs[7]],\n"
        "    settings=['data.vocabulary_size=60', 'train.steps=1', 'train.validate_steps=1',\n"
        "        'data.source_language=en', 'data.target_language=fr'])\n"
    )
    (message,) = warnings(heedful_cli("-c", program, cwd=tmp_path))
    assert (
        "1 training pair has a line that equals a validation line (1 of them on both sides)"
        in message
    )
    assert "8 = 2" in message
