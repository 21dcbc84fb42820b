"""Mistakes on the command line: the answer says what must hold, what was given and what to do."""

import pytest
import typer.main

from heedful.cli.main import app
from heedful.settings.foreign_names import OPTIONS, SETTINGS
from tests.support.commands import refused


def find_command(path):
    command = typer.main.get_command(app)
    for name in path.split():
        command = command.commands[name]
    return command


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("compare runs/a", "two runs are needed, but got only one"),
        ("compare", "two runs are needed, but got none"),
        ("average", "RUN is needed: a run folder"),
        (
            "evaluate --hypothesis x",
            "--reference is needed: file of reference translations; may be repeated",
        ),
        ("evaluate --comet", "--comet needs MODEL_OR_FILE: score with this COMET model too"),
        ("score r --source", "--source needs FILE: source text"),
        ("serve r --host", "--host needs a value: "),
        ("translate r --scores=3", "--scores takes no value"),
        ("translate r --beam -2", "--beam must be at least 1, but got -2"),
        ("translate r --n-best few", "--n-best must be a whole number, but got 'few'"),
        ("serve r --port 70000", "--port must be at most 65,535, but got 70000"),
        ("compare a b --sentences 2.5", "--sentences must be a whole number, but got 2.5"),
        (
            "evaluate --hypothesis h --reference r --test coin",
            "--test must be 'randomization' or 'bootstrap', but got 'coin'",
        ),
        ("translate r --top-p 0.5", "--top-p applies only to sampling; add --sample"),
        ("parse draw a --output a.png", "--output must end in .svg, or in .txt for text"),
        ("paper heads r", "SENTENCE or --grammar must be given, but not both"),
        ("paper scaling r", "the command takes no more arguments, but got: r"),
        ("train tiny --learning_rate 3", "train.learning_rate_factor=VALUE or --set train.learn"),
        ("train tiny --num-train-epochs=3", "No such option: --num-train-epochs; use --set train."),
        ("train tiny --dropout 0.2", "No such option: --dropout; use --set model.dropout=VALUE"),
        ("train tiny --attention-dropout 0.2", "use --set model.attention.dropout=VALUE"),
        ("train tiny --fp16", "No such option: --fp16; use --set train.precision=bf16"),
        ("train tiny -src x", "No such option: -src; use --source"),
        ("data prepare tiny --vocab_size 9", "use --set data.vocabulary_size=VALUE"),
        ("parse train tiny --max-epoch 3", "use --set train.steps=VALUE"),
        ("translate r --num_beams 3", "No such option: --num_beams; use --beam"),
        ("translate -model r", "-model; use the argument RUN, as in `heedful translate RUN`"),
        ("export r --out d", "--out; use the argument DIR, as in `heedful export RUN DIR`"),
        ("export r --output_dir d", "use the argument DIR, as in `heedful export RUN DIR`"),
        ("compare --run r", "use the argument RUN, as in `heedful compare RUN RUN`"),
        ("info --run r", "No such option: --run; use the argument RUN, as in `heedful info RUN`"),
        ("evaluate --metrics bleu", "use no option, because every metric is printed"),
        ("translate r --beeam 3", "No such option: --beeam; use --beam"),
        ("evaluate --conf", "No such option: --conf; use --confidence"),
    ],
)
def test_a_mistake_is_answered_in_one_sentence_of_ours(heedful_cli, arguments, message):
    path = [word for word in arguments.split()[:2] if word in ("data", "parse", "paper")]
    name = " ".join(arguments.split()[: len(path) + 1])
    text = refused(heedful_cli(*arguments.split()), message)
    assert text.endswith(f"; `heedful {name} --help` lists the options.")
    assert "Input should" not in text


def test_a_whole_number_may_be_written_with_a_point_in_options_and_settings(heedful_cli):
    refused(
        heedful_cli("translate", "nowhere", "--beam", "2.0"), "the folder nowhere does not exist"
    )
    done = heedful_cli("train", "tiny", "--print-config", "--set", "search.beam=2.0")
    assert "\nbeam = 2\n" in done.stdout, done.stderr


def test_an_unknown_option_that_resembles_nothing_gets_no_suggestion(heedful_cli):
    text = refused(heedful_cli("evaluate", "--xyz", "1"), "No such option: --xyz; `heedful")
    assert "use" not in text


def test_an_unknown_command_is_answered_with_the_nearest(heedful_cli):
    text = refused(heedful_cli("averag"), "No such command 'averag'. Did you mean 'average'")
    assert text.endswith("? `heedful --help` lists the commands.")


@pytest.mark.parametrize("path", OPTIONS)
def test_what_another_toolkit_calls_an_option_names_one_that_is_there(path):
    parameters = find_command(path).params
    options = {option for parameter in parameters for option in parameter.opts}
    arguments = [p.metavar for p in parameters if p.param_type_name == "argument"]
    if path == "train":
        assert options.isdisjoint(f"--{name}" for name in SETTINGS)
    for name, ours in OPTIONS[path].items():
        assert f"--{name}" not in options
        for meant in ours:
            named = meant in options or any(meant in metavar for metavar in arguments)
            assert named or meant.startswith("no option, because")


def test_a_sentence_in_place_of_a_run_is_told_how_to_be_translated(heedful_cli, trained, tmp_path):
    file = tmp_path / "text.en"
    file.write_text("the dog\n", encoding="utf-8")
    for arguments in ((trained, "the red dog"), ("the red dog",)):
        done = heedful_cli("translate", *arguments)
        first = trained if len(arguments) == 2 else "RUN"
        refused(
            done,
            "RUN must be a run folder, but 'the red dog' does not exist",
            f"(echo 'the red dog' | heedful translate {first}) or in a file (--input FILE)",
        )
    done = heedful_cli("translate", trained, "two", "red", "dogs")
    refused(done, f"(echo 'two red dogs' | heedful translate {trained})")
    refused(heedful_cli("parse", "predict", trained, "dogs sleep"), "heedful parse predict")
    refused(
        heedful_cli("translate", trained, file), f"{file} is a file; name a text file with --input"
    )
    refused(heedful_cli("translate", tmp_path / "no"), "does not exist; check the path.")
