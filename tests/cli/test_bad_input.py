"""Bad input at every entry: one paragraph, the right exit code, nothing lost."""

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import refused, train_arguments
from tests.support.weights import overflow, spoil


def pair_files(folder, source, target):
    (folder / "s.en").write_bytes(source)
    (folder / "t.fr").write_bytes(target)
    return ["train", "tiny", "--source", folder / "s.en", "--target", folder / "t.fr"]


ONE_STEP = ("--set", "train.steps=1", "--set", "train.batch_tokens=256")


def test_a_model_beyond_the_memory_is_refused_before_it_is_built(heedful_cli, text, tmp_path):
    vast = (
        "model.attention.encoder=convolution",
        "model.attention.window=1000000",
        "model.d_model=8192",
    )
    for more in ([], ["--dry-run"]):
        done = heedful_cli(*train_arguments(text, tmp_path / "run", *vast), *more)
        refused(done, "must fit into the memory of this machine", "make the model smaller")


WITHOUT_ROOM = """
import resource, sys
from pathlib import Path
import torch
from heedful.cli.main import main
size = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
room = int(sys.argv.pop(1)) << 20
resource.setrlimit(resource.RLIMIT_AS, (size + room, size + room))
main()
"""


# Without room a file cannot be mapped; four mebibytes are too few for the stack of a thread.
@pytest.mark.parametrize("room", [0, 4])
def test_too_little_address_space_is_said_without_a_traceback(heedful_cli, trained, room):
    done = heedful_cli("-c", WITHOUT_ROOM, room, "translate", trained, stdin="the dog\n")
    refused(done, "does not have enough memory for this", "ulimit -v", code=1)


@pytest.mark.parametrize("mebibytes", [450, 870])
def test_too_little_address_space_for_torch_is_refused_before_it_is_loaded(trained, mebibytes):
    limited = ["bash", "-c", f'ulimit -v {mebibytes << 10}; exec "$@"', "bash"]

    def run(*arguments):
        return subprocess.run(
            [*limited, sys.executable, "-m", "heedful", *map(str, arguments)],
            capture_output=True,
            text=True,
            input="the dog\n",
            check=False,
        )

    refused(run("translate", trained), "ulimit -v", "900000 KiB", f"{mebibytes << 10}", code=1)
    assert run("translate", "--help").returncode == run("evaluate", "--help").returncode == 0


@pytest.mark.parametrize(
    ("source", "target", "parts"),
    [
        (b"a\nb\nc\n", b"a\nb\n", ("s.en", "t.fr", "3", "2")),
        (b"a\nb\xffc\n", b"a\nb\n", ("s.en", "line 2", "byte", "ff")),
        (b"a\nb\x00c\n", b"a\nb\n", ("s.en", "line 2", "NUL")),
        (b"", b"", ("empty",)),
        (b"\n\n", b"\n\n", ("empty",)),
    ],
)
def test_text_that_cannot_be_used(heedful_cli, tmp_path, source, target, parts):
    out = tmp_path / "run"
    refused(heedful_cli(*pair_files(tmp_path, source, target), "--out", out), *parts)


def test_files_that_are_not_there(heedful_cli, text, tmp_path):
    files = ("--source", tmp_path / "no.en", "--target", text / "train.fr")
    refused(heedful_cli("train", "tiny", *files, "--out", tmp_path / "x"), "no.en", "must exist")
    refused(heedful_cli("translate", tmp_path / "no"), "run folder", "does not exist")
    refused(heedful_cli("info", text), "holds no config.json")
    refused(
        heedful_cli("evaluate", "--hypothesis", tmp_path / "h", "--reference", tmp_path / "r"), "h"
    )


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_held_out_text_is_looked_at_before_anything_is_done(heedful_cli, text, tmp_path, dry):
    files = ("--source", text / "train.en", "--target", text / "train.fr")
    source, target = text / "valid.en", text / "train.fr"
    for held_out, parts in (
        (("--valid-source", source), ("--valid-target",)),
        (("--valid-source", tmp_path / "no.en", "--valid-target", target), ("no.en", "must exist")),
        (("--valid-source", source, "--valid-target", target), ("valid.en", "40", "1,500")),
    ):
        done = heedful_cli("train", "tiny", *files, *held_out, "--out", tmp_path / "run", *dry)
        assert done.stdout == ""
        refused(done, *parts)
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_refuses_what_training_refuses(heedful_cli, text, tmp_path):
    files = ("--source", text / "train.en", "--target", text / "train.fr", "--dry-run")
    small = ("--set", "data.vocabulary_size=400")
    for more, *parts in (
        (("--set", "data.vocabulary_size=20"), "data.vocabulary_size must be at least"),
        (
            ("--exclude", text / "train.en", *small),
            "must pass the filter rules",
            "an excluded text (--exclude)",
        ),
        (("--set", "data.vocabulary_size=3"), "must be more than 4", "a few hundred"),
        (("--out", text / "train.en", "--resume"), "train.en is not a folder"),
        (("--out", tmp_path / "gone", "--resume"), "gone does not exist"),
        (("--resume",), "--resume needs --out"),
    ):
        refused(heedful_cli("train", "tiny", *files, *more), *parts)
    assert list(tmp_path.iterdir()) == []


def test_resuming_needs_a_folder_that_is_there(heedful_cli, text, tmp_path):
    command = train_arguments(text, tmp_path / "typo", "train.steps=1", validate=False)
    refused(heedful_cli(*command, "--resume"), "typo does not exist", "leave --resume out")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "typo").mkdir()
    done = heedful_cli(*command, "--resume")
    assert done.returncode == 0, done.stderr


def test_a_dry_run_says_that_the_folder_is_taken(heedful_cli, text, trained):
    files = ("--source", text / "train.en", "--target", text / "train.fr")
    for more, part in (((), "must be a new or empty folder"), (("--resume",), "settings")):
        done = heedful_cli("train", "tiny", *files, "--out", trained, "--dry-run", *more)
        refused(done, part)


@pytest.mark.parametrize("there", [False, True])
def test_after_a_wrong_setting_the_same_folder_can_be_named_again(
    heedful_cli, text, tmp_path, there
):
    out = tmp_path / "run"
    if there:
        out.mkdir()
    wrong = train_arguments(text, out, "data.vocabulary_size=20", "train.steps=1")
    refused(heedful_cli(*wrong), "data.vocabulary_size must be at least")
    assert out.exists() == there and not (there and list(out.iterdir()))
    done = heedful_cli(*train_arguments(text, out, "train.steps=1"))
    assert done.returncode == 0, done.stderr


def test_a_place_where_no_translations_can_be_written(heedful_cli, trained, tmp_path):
    for output, part in ((tmp_path, "is a folder"), (tmp_path / "no" / "o", "no does not exist")):
        done = heedful_cli("translate", trained, "--output", output, stdin="a dog\n")
        assert done.returncode == 2
        assert "--output must be" in done.stderr
        assert part in " ".join(done.stderr.split())


def test_what_typer_refuses_is_worded_like_everything_else(heedful_cli, trained):
    for words, part in (
        (("translate", trained, "--beam", "x"), "`heedful translate --help` lists"),
        (("translate", trained, "--foo"), "No such option: --foo"),
        (("nope",), "No such command 'nope'"),
        (("translate", trained, "--threads", 100_000), "threads must be from 0"),
    ):
        done = heedful_cli(*words)
        assert len(done.stderr.splitlines()) == 1
        refused(done, part)


def test_a_number_of_threads_that_would_crash_is_refused(heedful_cli, text, tmp_path):
    command = train_arguments(text, tmp_path / "run", "train.threads=100000", validate=False)
    refused(heedful_cli(*command), "threads must be from 0", "but is 100,000")
    assert list(tmp_path.iterdir()) == []
    done = heedful_cli("info", env={"OMP_NUM_THREADS": "100000"})
    refused(done, "OMP_NUM_THREADS must be from 0")


def test_when_the_reader_has_gone_a_command_ends_as_the_system_has_it(zygote):
    for words in ("--help", "info"):
        line = f"set -o pipefail; {zygote.programs}/heedful {words} | true"
        done = subprocess.run(["bash", "-c", line], capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (141, b"")


def test_an_interrupted_import_leaves_no_traceback():
    program = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "sys.argv[1:] = ['info']; from heedful.__main__ import main; main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-X", "importtime", "-c", program],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")},
        encoding="utf-8",
    )
    for line in process.stderr:
        if line.split("|")[-1].strip() == "numpy":
            process.send_signal(signal.SIGINT)
            break
    _, errors = process.communicate(timeout=240)
    assert process.returncode == -signal.SIGINT
    assert "Traceback" not in errors


def test_an_import_that_hides_the_interruption_leaves_no_traceback():
    program = """
import signal, sys

class Stubborn:
    def find_spec(self, name, path=None, target=None):
        if name != "numpy":
            return None
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            hidden = True
        raise RecursionError

sys.meta_path.insert(0, Stubborn())
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv[1:] = ["info"]
from heedful.__main__ import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        check=False,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")},
    )
    assert done.returncode == -signal.SIGINT
    assert "Traceback" not in done.stderr


def test_an_output_is_replaced_when_it_is_complete(heedful_cli, trained, tmp_path):
    old, source = tmp_path / "old.fr", tmp_path / "source.en"
    old.write_text("old\n")
    old.chmod(0o640)
    (tmp_path / "link.fr").symlink_to(old)
    source.write_bytes(b"the dog\n" * 40 + b"\xff\n")
    options = ("--max-length", 2, "--beam", 1)
    done = heedful_cli("translate", trained, "--input", source, "--output", old, *options)
    refused(done, "line 41")
    assert old.read_text() == "old\n"
    source.write_bytes(b"the dog\n")
    for output in (tmp_path / "link.fr", "/dev/stdout"):
        done = heedful_cli("translate", trained, "--input", source, "--output", output, *options)
        assert done.returncode == 0, done.stderr
    assert old.read_text() == done.stdout != "old\n"
    assert old.stat().st_mode & 0o777 == 0o640
    assert {path.name for path in tmp_path.iterdir()} == {"old.fr", "link.fr", "source.en"}
    assert (tmp_path / "link.fr").is_symlink()


def test_a_run_without_checkpoints_says_so(heedful_cli, trained, tmp_path):
    half = tmp_path / "half"
    shutil.copytree(trained, half, ignore=shutil.ignore_patterns("step-*", "average"))
    message = refused(heedful_cli("translate", half, stdin="a dog\n"), "half", "train first")
    assert "--weights" not in message


@pytest.mark.parametrize(
    ("setting", "parts"),
    [
        ("train.stepz=5", ("train.stepz", "did you mean", "train.steps")),
        ("train.device=tpu", ("train.device",)),
        ("train.device=cuda:77", ("cuda:77", "must exist")),
        ("search.length_penalty=0.6", ("gnmt:ALPHA",)),
        ("nonsense", ("nonsense",)),
    ],
)
def test_settings_that_cannot_be(heedful_cli, text, tmp_path, setting, parts):
    files = ("--source", text / "train.en", "--target", text / "train.fr")
    out = tmp_path / "run"
    refused(heedful_cli("train", "tiny", *files, "--out", out, "--set", setting), *parts)
    assert not out.exists()


def test_a_recipe_that_is_not_there(heedful_cli, text):
    files = ("--source", text / "train.en", "--target", text / "train.fr")
    refused(heedful_cli("train", "paper-bse", *files, "--out", "x"), "paper-base")


def test_windows_line_ends_and_a_byte_order_mark_are_taken_off(heedful_cli, text, tmp_path):
    results = []
    for name, ending, mark in (("unix", b"\n", b""), ("windows", b"\r\n", b"\xef\xbb\xbf")):
        folder = tmp_path / name
        folder.mkdir()
        sides = []
        for language in ("en", "fr"):
            lines = (text / f"train.{language}").read_bytes().splitlines()
            sides.append(mark + b"".join(line + ending for line in lines))
        command = [*pair_files(folder, *sides), "--out", folder / "run", *ONE_STEP]
        done = heedful_cli(*command)
        assert done.returncode == 0, done.stderr
        checkpoint = folder / "run" / "checkpoints" / "step-00000001"
        results.append((checkpoint / "model.safetensors").read_bytes())
    assert results[0] == results[1]


def test_a_line_of_a_megabyte_is_dropped_and_counted(heedful_cli, text, tmp_path):
    source = (text / "train.en").read_bytes() + b"dog " * 250_000 + b"\n"
    target = (text / "train.fr").read_bytes() + b"chien\n"
    command = [*pair_files(tmp_path, source, target), "--out", tmp_path / "run", *ONE_STEP]
    done = heedful_cli(*command)
    assert done.returncode == 0, done.stderr
    assert "1,500 pairs kept, 1 dropped (1 too long)" in done.stderr


def test_a_line_of_a_megabyte_is_cut_with_a_warning_when_translating(heedful_cli, trained):
    lines = "the dog\n" + "the dog " * 125_000 + "\na cat\n"
    done = heedful_cli("translate", trained, "--max-length", "5", stdin=lines)
    assert done.returncode == 0, done.stderr
    assert "line 2 has" in done.stderr
    assert "was cut to the first 1,024 (search.max_source_length)" in done.stderr
    assert len(done.stdout.splitlines()) == 3


def test_broken_lines_on_stdin_come_after_what_was_good(trained):
    # From nothing: what the zygote hands on is UTF-8 throughout.
    done = subprocess.run(
        [sys.executable, "-m", "heedful", "translate", str(trained)],
        input=b"the dog\na \xff cat\n",
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    assert b"stdin" in done.stderr
    assert b"line 2" in done.stderr
    assert b"Traceback" not in done.stderr
    assert done.stdout.count(b"\n") == 1


def test_an_existing_run_is_not_overwritten(heedful_cli, text, trained):
    before = (trained / "log.jsonl").read_bytes()
    refused(heedful_cli(*train_arguments(text, trained)), "new or empty folder", "--resume")
    assert (trained / "log.jsonl").read_bytes() == before


def test_resuming_something_else_is_refused(heedful_cli, text, trained, tmp_path):
    other = train_arguments(text, trained, "train.precision=fp32", "model.dropout=0.3")
    refused(heedful_cli(*other, "--resume"), "model.dropout was 0.1 and is now 0.3")
    shorter = tmp_path / "text"
    shorter.mkdir()
    for file in text.iterdir():
        lines = file.read_text().splitlines(keepends=True)
        (shorter / file.name).write_text("".join(lines[:-1]))
    command = train_arguments(shorter, trained, "train.precision=fp32")
    refused(heedful_cli(*command, "--resume"), "left out or changed")


@pytest.fixture
def copy(trained, tmp_path):
    run = tmp_path / "copy"
    shutil.copytree(trained, run)
    return run


def last_model(run):
    return run / "checkpoints" / "step-00000024" / "model.safetensors"


def test_damaged_weights_are_refused_by_every_command(heedful_cli, text, copy):
    content = bytearray(last_model(copy).read_bytes())
    content[len(content) // 2] ^= 16
    last_model(copy).write_bytes(content)
    command = ("translate", copy, "--weights", "last")
    refused(heedful_cli(*command, stdin="a\n"), "model.safetensors", "SHA-256")
    resume = heedful_cli(*train_arguments(text, copy, "train.precision=fp32"), "--resume")
    refused(resume, "model.safetensors", "continue from the previous checkpoint")
    shutil.rmtree(last_model(copy).parent)
    resume = heedful_cli(*train_arguments(text, copy, "train.precision=fp32"), "--resume")
    assert resume.returncode == 0, resume.stderr
    assert last_model(copy).is_file()


def test_weights_of_another_recipe_are_refused(heedful_cli, copy):
    config = json.loads((copy / "config.json").read_text())
    config["settings"]["model"]["d_model"] = 32
    config["settings"]["model"]["decoder_layers"] = 1
    (copy / "config.json").write_text(json.dumps(config))
    done = heedful_cli("translate", copy, "--weights", "last", stdin="a\n")
    refused(done, "model.d_model was 64 and is now 32", "model.decoder_layers was 2 and is now 1")


@pytest.mark.parametrize(
    ("table", "name", "value"),
    [("choices", "precision", "fp8"), ("choices", "ranks", {}), ("corpus", "source", [1])],
)
def test_choices_and_files_of_a_run_are_checked(heedful_cli, text, copy, table, name, value):
    config = json.loads((copy / "config.json").read_text())
    config[table][name] = value
    (copy / "config.json").write_text(json.dumps(config))
    resume = (*train_arguments(text, copy, "train.precision=fp32"), "--resume")
    for command in (("info", copy), ("translate", copy), ("compare", copy, copy), resume):
        done = heedful_cli(*command, stdin="the dog\n")
        refused(done, str(copy / "config.json"), f"`{table}.{name}")
        assert done.stdout == ""


def test_a_pickle_is_never_opened(heedful_cli, copy):
    class Hostile:
        def __reduce__(self):
            return (os.system, (f"touch {copy}/executed",))

    for name in ("model.safetensors", "training.safetensors", "state.json"):
        (last_model(copy).parent / name).write_bytes(pickle.dumps(Hostile()))
    refused(heedful_cli("translate", copy, "--weights", "last", stdin="a\n"), "state.json")
    for name in ("tokenizer.json", "config.json"):
        (copy / name).write_bytes(pickle.dumps(Hostile()))
        refused(heedful_cli("translate", copy, stdin="a\n"), name)
    assert not (copy / "executed").exists()


@pytest.fixture
def pair(tmp_path):
    (tmp_path / "s").write_text("the dog sees a cat\n")
    (tmp_path / "t").write_text("le chien voit un chat\n")
    return ("--source", tmp_path / "s", "--target", tmp_path / "t")


def test_weights_that_are_no_numbers_are_refused_by_every_command(heedful_cli, text, copy, pair):
    name = spoil(last_model(copy).parent)
    damaged = ("step-00000024/model.safetensors", f"{name} holds NaN", "diverged")
    parts = (*damaged, "use other weights")
    last = ("--weights", "last")
    for command in (
        ("translate", copy, *last, "--precision", "int8"),
        ("score", copy, *last, *pair),
        ("attend", copy, "the dog", *last),
        ("average", copy),
        ("serve", copy, *last, "--port", 0),
        (*train_arguments(text, copy, "train.precision=fp32"), "--resume"),
        (*train_arguments(text, copy.with_name("more")), "--finetune-from", copy),
    ):
        more = ("--finetune-weights", "last") if "--finetune-from" in command else ()
        done = heedful_cli(*command, *more, stdin="the dog\n")
        refused(done, *parts)
        assert done.stdout == ""
    assert not (copy / "average").exists()
    assert "parameters" in heedful_cli("info", copy).stdout


@pytest.mark.parametrize("native", ["", "0"])
def test_weights_whose_products_overflow_are_said_to_have_diverged(heedful_cli, copy, pair, native):
    overflow(last_model(copy).parent)
    last, env = ("--weights", "last"), {"HEEDFUL_NATIVE": native}
    for more in (("fp32", "--beam", 1), ("int8",), ("int8", "--sample"), ("bf16", "--n-best", 2)):
        command = ("translate", copy, *last, "--precision", *more)
        done = heedful_cli(*command, stdin="the dog\n", env=env)
        refused(done, "the score of line 1 is not finite", "diverged", code=1)
        assert done.stdout == ""
    done = heedful_cli("score", copy, *last, *pair, env=env)
    refused(done, "the score of “the dog sees a cat” is nan", "diverged", code=1)
    assert done.stdout == ""


def test_pairs_that_are_too_long_to_score_are_refused(heedful_cli, trained, tmp_path):
    (tmp_path / "s").write_text("the dog\n" + "the dog " * 2000 + "\n")
    (tmp_path / "t").write_text("le chien\nle chien\n")
    files = ("--source", tmp_path / "s", "--target", tmp_path / "t")
    refused(heedful_cli("score", trained, *files), "pair 2 has", "search.max_source_length")


@pytest.mark.usefixtures("compiled")
def test_resuming_elsewhere_is_refused_unless_inexact(heedful_cli, text, copy):
    config = json.loads((copy / "config.json").read_text())
    del config["choices"]["batches"]  # as before batches were mixed in length
    del config["choices"]["loss"]  # as before there were compiled functions for it
    config["choices"]["torch"] = "2.0.0"
    (copy / "config.json").write_text(json.dumps(config))
    command = [*train_arguments(text, copy, "train.precision=fp32", "train.steps=25"), "--resume"]
    refused(
        heedful_cli(*command),
        *("torch was 2.0.0", "batches was 1", "loss was plain and is now compiled"),
        "--allow-inexact-resume",
    )
    done = heedful_cli(*command, "--allow-inexact-resume")
    assert done.returncode == 0, done.stderr
    assert "continuing from step 24" in done.stderr


def test_resuming_with_other_validation_text_is_refused(heedful_cli, text, copy, tmp_path):
    command = train_arguments(text, copy, "train.precision=fp32", validate=False)
    refused(heedful_cli(*command, "--resume"), "left out or changed")
    changed = shutil.copytree(text, tmp_path / "changed")
    lines = (changed / "valid.fr").read_text()
    (changed / "valid.fr").write_text(lines.replace("le ", "la "))
    command = train_arguments(changed, copy, "train.precision=fp32")
    refused(heedful_cli(*command, "--resume"), "valid.fr has changed since")


def test_patience_needs_something_to_wait_for(heedful_cli, text, tmp_path):
    command = train_arguments(text, tmp_path / "run", "train.patience=2", validate=False)
    refused(heedful_cli(*command), "train.patience", "--valid-source")


def test_a_foreign_folder_is_not_resumed_into(heedful_cli, text, tmp_path):
    (tmp_path / "photos.zip").write_text("x")
    command = [*train_arguments(text, tmp_path, validate=False), "--resume"]
    refused(heedful_cli(*command), "photos.zip")


def test_weights_that_are_not_there_are_listed(heedful_cli, trained):
    done = heedful_cli("translate", trained, "--weights", "step-7", stdin="a\n")
    refused(done, "step-7 is not among", "last", "step-24")


@pytest.mark.parametrize(
    "options",
    [("--length-penalty", "0.6"), ("--max-length", "0"), ("--device", "cuda:9")],
)
def test_search_options_that_cannot_be(heedful_cli, trained, options):
    refused(heedful_cli("translate", trained, *options, stdin="a\n"))


@pytest.mark.parametrize(
    "arguments",
    [
        ("translate",),
        ("train", "tiny"),
        ("translate", "x", "--precision", "fp8"),
    ],
)
def test_commands_that_are_wrong_end_with_2(heedful_cli, arguments):
    done = heedful_cli(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_full_disk_loses_no_checkpoint(heedful_cli, text, tmp_path):
    """A limit on the size of files stops the second kind of file, as a full disk would."""
    out, few = tmp_path / "run", ("train.batch_tokens=256", "train.checkpoint_steps=4")
    done = heedful_cli(*train_arguments(text, out, *few, "train.steps=4", validate=False))
    assert done.returncode == 0, done.stderr
    good = (out / "checkpoints" / "step-00000004" / "model.safetensors").read_bytes()

    limited = (
        "import resource\n"
        "from heedful.cli.main import main\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({len(good) + 1000}, {len(good) + 1000}))\n"
        "main()\n"
    )
    more = [*train_arguments(text, out, *few, "train.steps=8", validate=False), "--resume"]
    done = heedful_cli("-c", limited, *more)
    refused(done, "cannot write to", "files written earlier are intact", code=1)
    names = [entry.name for entry in (out / "checkpoints").iterdir()]
    assert names == ["step-00000004"]
    resumed = heedful_cli(*more)
    assert resumed.returncode == 0, resumed.stderr


@pytest.mark.parametrize("room", [500, 4_000])
def test_a_start_on_a_full_disk_leaves_no_half_file(heedful_cli, text, tmp_path, room):
    """Without room for the settings, and for the tokenizer."""
    out = tmp_path / "run"
    limited = (
        "import resource\n"
        "from heedful.cli.main import main\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room}))\n"
        "main()\n"
    )
    command = train_arguments(text, out, "train.steps=2", validate=False)
    refused(heedful_cli("-c", limited, *command), "File too large", code=1)
    assert [path.name for path in out.rglob(".*")] == []
    done = heedful_cli(*command, "--resume")
    assert done.returncode == 0, done.stderr


# Root is given up inside the process, once everything is imported.
ORDINARY = """
import os, sys
import heedful.training.train
from heedful.cli.main import main
os.environ["HOME"] = "/nonexistent"
if os.getuid() == 0:
    os.setgid(65534), os.setuid(65534)
main()
"""


def test_no_permission_is_said(heedful_cli, text, tmp_path):
    """As an ordinary user: root ignores file modes."""
    closed, free, locked = tmp_path / "closed", tmp_path / "free", tmp_path / "locked.en"
    closed.mkdir()
    free.mkdir()
    shutil.copy(text / "train.en", locked)
    for folder in {tmp_path, *tmp_path.parents, text, *text.parents}:
        if folder.name.startswith(("pytest", "test", "text", "popen")):
            folder.chmod(0o755)
    closed.chmod(0o555)
    free.chmod(0o777)
    locked.chmod(0o000)
    cases = (
        (text / "train.en", closed / "run", "cannot write to"),
        (locked, free / "run", "locked.en"),
    )
    for source, out, part in cases:
        arguments = ["train", "tiny", "--source", source, "--target", text / "train.fr"]
        done = heedful_cli("-c", ORDINARY, *arguments, "--out", out)
        assert done.returncode in (1, 2), done.stderr
        assert "Traceback" not in done.stderr
        assert part in done.stderr.strip().splitlines()[-1]


def test_too_little_memory_names_the_setting(heedful_cli, text, tmp_path):
    """The largest batch is tried first, so the run ends before its first step."""
    out = tmp_path / "run"
    command = train_arguments(
        text,
        out,
        "model.d_ff=65536",
        "train.micro_batch_tokens=60000",
        "train.batch_tokens=60000",
        validate=False,
    )
    program = (
        "import resource, sys\n"
        "import heedful.training.train\n"
        "from heedful.cli.main import main\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "limit = used + (2 << 30)\n"
        "resource.setrlimit(resource.RLIMIT_AS, (limit, limit))\n"
        "main()\n"
    )
    done = heedful_cli("-c", program, *command)
    refused(done, "largest micro-batch", "train.micro_batch_tokens")
    assert not (out / "checkpoints").exists()


def test_what_a_measuring_process_complains_of_is_said_as_it_is(heedful_cli, tmp_path):
    files = ("--source", tmp_path / "no.en", "--target", tmp_path / "no.fr")
    done = heedful_cli("bench", "data", "tiny", *files)
    assert done.returncode == 2
    assert done.stderr.startswith(f"heedful: The text file {tmp_path / 'no.en'} must exist")
    assert "exit code" not in done.stderr


@pytest.mark.parametrize("wrong", [{"CC": 'cc "'}, {"HOME": "home", "XDG_CACHE_HOME": "cache"}])
def test_eight_bits_without_compiled_functions_are_warned_of_once(heedful_cli, trained, wrong):
    program = (
        f"import os\nfrom heedful.cli.main import main\nos.environ.update({wrong!r})\nmain()\n"
    )
    how = ("translate", trained, trained, "--precision", "int8")
    done = heedful_cli("-c", program, *how, stdin="the big red dog\n\nthe cat\n")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 3
    (said,) = done.stderr.splitlines()
    assert said.startswith("heedful: warning: int8 is slow here")
    reason = said.partition("are missing: ")[2].removesuffix(".")
    assert ("CC must be a command" if "CC" in wrong else "no home folder") in reason
    shown = heedful_cli("-c", program, "info").stdout
    assert f"no functions ({reason}); they would make --precision fp32 and int8 faster\n" in shown
