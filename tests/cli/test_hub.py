"""Names of Hugging Face's hub on the command line, from a local server that answers as it does."""

import json
import signal
import subprocess
import sys
import threading
import time

import pytest

from tests.support.commands import refused
from tests.support.hub import WRITER, environment, running
from tests.support.marian import make, text
from tests.support.serving import serving

NAME = "org/tiny-en-fr"
LINES = "the dog\na cat\n"
CPU = ("--device", "cpu", "--precision", "fp32")


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hub") / "original"
    make(folder, generation={"max_length": 14})
    with running() as server:
        server.add_folder(NAME, folder, license="cc-by-4.0")
        server.original = folder
        yield server


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder for caches, text and runs."""
    folder = tmp_path_factory.mktemp("home")
    for side, name in enumerate(("source", "target")):
        lines = "".join(f"{pair[side]}\n" for pair in text()[:300])
        (folder / name).write_text(lines, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def heedful(heedful_cli, hub, home):
    """Run a command with the hub and a cache of its own."""

    def run(*args, token="", **options):
        variables = environment(hub, home / "cache", token)
        return heedful_cli(*args, env=variables, cwd=home, **options)

    return run


@pytest.fixture(scope="module")
def translated(heedful):
    done = heedful("translate", NAME, *CPU, stdin=LINES)
    assert done.returncode == 0, done.stderr
    assert "license: cc-by-4.0" in done.stderr
    return done.stdout


def test_a_name_translates_as_the_imported_folder_does(heedful, hub, home, translated):
    imported = heedful("import", hub.original, "--from", "huggingface", "--out", "by-hand")
    assert imported.returncode == 0, imported.stderr
    assert heedful("translate", "by-hand", *CPU, stdin=LINES).stdout == translated
    again = heedful("translate", NAME, *CPU, stdin=LINES)
    assert (again.stdout, again.stderr) == (translated, "")
    both = heedful("translate", NAME, f"{NAME}@main", *CPU, stdin=LINES)
    assert both.returncode == 0, both.stderr


def test_a_name_is_imported_under_a_name_of_the_users(heedful, home):
    done = heedful("import", NAME, "--from", "huggingface", "--out", "named")
    assert done.returncode == 0, done.stderr
    assert "12 of 12 translations equal" in done.stdout
    assert (home / "named" / "config.json").is_file()


def test_a_name_is_served(zygote, hub, home, translated):
    variables = environment(hub, home / "cache")
    with serving(zygote, f"en:fr={NAME}", "--precision", "fp32", env=variables) as server:
        body = {"q": "the dog", "source": "en", "target": "fr"}
        answer = server.client.post("/translate", json=body)
        assert answer.json() == {"translatedText": translated.splitlines()[0]}


def test_a_name_is_scored_evaluated_shown_and_exported(heedful, home, translated):
    files = ("--source", "source", "--target", "target")
    scored = heedful("score", NAME, *files, "--device", "cpu")
    assert scored.returncode == 0, scored.stderr
    assert len(scored.stdout.splitlines()) >= 300
    shown = heedful("attend", NAME, "the dog", "--out", "page.html")
    assert shown.returncode == 0, shown.stderr
    assert (home / "page.html").stat().st_size > 10_000
    info = json.loads(heedful("info", NAME, "--json").stdout)
    assert info["hub"]["name"] == NAME and info["hub"]["license"] == "cc-by-4.0"
    exported = heedful("export", NAME, "exported", "--format", "huggingface")
    assert exported.returncode == 0, exported.stderr
    assert "12 of 12 translations equal" in exported.stdout
    code = (
        "import heedful; print(heedful.evaluate('org/tiny-en-fr', "
        "pairs=[('the dog', 'le chien'), ('a cat', 'un chat')]).scores['bleu'].score)"
    )
    evaluated = heedful("-c", code)
    assert float(evaluated.stdout.splitlines()[-1]) >= 0


def test_a_name_is_fine_tuned_and_the_commit_is_recorded(heedful, hub, home, translated):
    settings = ["steps=4", "batch_tokens=500", "precision=fp32", "warmup=2"]
    options = [word for setting in settings for word in ("--set", f"train.{setting}")]
    files = ("--source", "source", "--target", "target")
    train = ("train", "tiny", "--finetune-from", NAME, *files, *options, "--out", "tuned")
    done = heedful(*train)
    assert done.returncode == 0, done.stderr
    commit = hub.repositories[NAME].branches["main"]
    assert json.loads((home / "tuned" / "origin.json").read_text())["run"] == f"{NAME}@{commit}"
    resumed = heedful(*train, "--set", "train.steps=6", "--resume")
    assert resumed.returncode == 0, resumed.stderr


def test_a_name_gives_its_tokenizer_and_has_no_log_to_plot(heedful, home, translated):
    files = ("--source", "source", "--target", "target", "--set", "train.steps=2")
    done = heedful("train", "tiny", *files, "--tokenizer", NAME, "--out", "same-subwords",
                   "--set", "data.shared_vocabulary=true")  # fmt: skip
    assert done.returncode == 0, done.stderr
    info = json.loads(heedful("info", "same-subwords", "--json").stdout)
    assert info["vocabulary"]["kind"] == "imported-sentencepiece"
    refused(heedful("plot", NAME), "a run's log is needed")


def test_two_processes_convert_once(zygote, hub, home):
    variables = {**zygote.environ, **environment(hub, home / "both")}
    hub.requests.clear()
    started = [
        zygote.start("translate", NAME, *CPU, stdin=LINES, cwd=home, environ=variables)
        for _ in range(2)
    ]
    ended = [process.communicate(400) for process in started]
    assert [process.returncode for process in started] == [0, 0], ended
    assert ended[0][0] == ended[1][0]
    assert len([name for name in hub.fetched() if name.endswith("config.json")]) == 3
    messages = [errors for _, errors in ended]
    assert sum("converting it once" in errors for errors in messages) == 1


def test_a_killed_conversion_leaves_nothing_that_is_taken_for_whole(zygote, hub, home):
    variables = {**zygote.environ, **environment(hub, home / "killed")}
    models = home / "killed" / "heedful" / "org--tiny-en-fr"
    started = zygote.start("translate", NAME, *CPU, stdin=LINES, cwd=home, environ=variables)
    deadline = time.monotonic() + 120
    while not list(models.glob(".*.partial/*")) and time.monotonic() < deadline:
        time.sleep(0.005)
    started.send_signal(signal.SIGKILL)
    started.communicate(60)
    assert started.returncode == -signal.SIGKILL
    assert not list(models.glob("*/*/hub.json"))
    again = zygote.start("translate", NAME, *CPU, stdin=LINES, cwd=home, environ=variables)
    output, errors = again.communicate(400)
    assert again.returncode == 0, errors
    assert len(output.splitlines()) == 2
    assert not list(models.glob(".*.partial"))


PUSH = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from heedful.__main__ import main
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_upload_ends_at_once_and_leaves_nothing(
    zygote, hub, home, heedful, translated, tmp_path, number
):
    begun, over = threading.Event(), threading.Event()

    def hold(handler, method, path):
        if not path.startswith("/upload/"):
            return False
        begun.set()
        over.wait()
        return True

    variables = {**zygote.environ, **environment(hub, home / "cache", WRITER)}
    variables["TMPDIR"] = str(tmp_path)
    hub.lie = hold
    try:
        # A process of its own, because the library reads its variables when it is imported; in the
        # background of a shell it would be born deaf to Ctrl-C.
        command = [sys.executable, "-c", PUSH, "hub", "push", NAME, "me/held"]
        started = subprocess.Popen(command, cwd=home, env=variables, stderr=subprocess.PIPE)
        while not begun.wait(0.05):
            assert started.poll() is None, started.stderr.read()
        started.send_signal(number)
        started.communicate(500)  # while the hub still holds the upload
    finally:
        over.set()
        hub.lie = None
    assert started.returncode == -number
    command = [sys.executable, "-m", "heedful", "hub", "list"]
    assert NAME.encode() in subprocess.check_output(command, cwd=home, env=variables)
    assert not list(tmp_path.glob("heedful-push-*"))


def test_converted_models_are_listed_updated_and_removed(heedful, hub, translated):
    commit = hub.repositories[NAME].branches["main"]
    listed = heedful("hub", "list").stdout
    assert listed.startswith(f"{NAME}@{commit[:12]} (main") and "license: cc-by-4.0" in listed
    assert json.loads(heedful("hub", "list", "--json").stdout)[0]["commit"] == commit
    assert ", unchanged." in heedful("hub", "update", NAME).stdout
    assert f"{NAME}@{commit[:12]}: deleted" in heedful("hub", "remove", NAME).stdout
    assert heedful("hub", "list").stdout == ""
    refused(heedful("hub", "remove", NAME), "the cache must contain org/tiny-en-fr")
    assert heedful("translate", NAME, *CPU, stdin=LINES).stdout == translated


def test_the_weights_of_a_converted_model_are_not_averaged(heedful, home, translated):
    before = sorted((home / "cache" / "heedful").rglob("*"))
    refused(heedful("average", NAME), "is a converted model from Hugging Face's hub")
    run = next((home / "cache" / "heedful").rglob("hub.json")).parent
    refused(heedful("average", run), "is a converted model from Hugging Face's hub")
    assert sorted((home / "cache" / "heedful").rglob("*")) == before


@pytest.mark.parametrize(
    "command",
    [
        ("translate", NAME),
        ("serve", NAME, "--port", "0"),
        ("info", NAME),
        ("attend", f"{NAME}@main", "the dog", "--beside", NAME, "--out", "x.html"),
        ("export", NAME, "x", "--format", "marian"),
        ("import", NAME, "--from", "huggingface", "--out", "x"),
        ("train", "tiny", "--source", "source", "--target", "target", "--finetune-from", NAME,
         "--out", "x"),
    ],
    ids=lambda words: words[0],
)  # fmt: skip
def test_a_path_may_look_like_a_name(command, heedful, home, hub, translated):
    hub.requests.clear()
    words = [f"./{NAME}" if word == NAME else word for word in command]
    refused(heedful(*words, stdin=LINES), NAME)
    assert hub.requests == []
    assert not (home / "x").exists()


def test_names_that_nothing_has_end_in_one_paragraph(heedful, home):
    refused(heedful("translate", "org/nothing", stdin=LINES), "check the spelling")
    assert not list((home / "cache" / "heedful").glob("*nothing*"))
    refused(heedful("hub", "update", "nothing"), "must be a name such as", code=2)
    for revision in ("../x", "a b", ""):
        push = ("hub", "push", "by-hand", "me/mine", "--revision", revision)
        refused(heedful(*push, token="hf_writer"), "must be a name such as", code=2)
    push = ("hub", "push", "by-hand", "me/mine@dev", "--revision", "v2")
    refused(heedful(*push, token="hf_writer"), "--revision", "me/mine@dev names one", code=2)
    refused(heedful("train", "tiny", "--finetune-from", "org/nothing", "--out", "x",
                    "--source", "source", "--target", "target"), "check the spelling")  # fmt: skip
