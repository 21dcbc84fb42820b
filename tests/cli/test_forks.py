"""Forked processes: they compute in one thread where they lost the others, and never wait."""

import json
import textwrap

import pytest

# A hanging fork is killed; nothing here depends on the time.
SECONDS = 200

BEGIN = """
import json, multiprocessing, os, sys, warnings
import torch
import heedful
from heedful.engines import open_engine
from pathlib import Path

LINES = ["the big red dog sleeps", "a cat", "we see the old house"] * 8

def texts(translator, lines=LINES):
    return [translation.text for translation in translator.translate(lines)]

def in_fork(function, *arguments):
    context = multiprocessing.get_context("fork")
    reader, writer = context.Pipe(duplex=False)
    process = context.Process(target=lambda: writer.send(function(*arguments)))
    process.start()
    writer.close()
    found = reader.recv()
    process.join()
    return found
"""


@pytest.fixture
def python(heedful_cli):
    """Run a script with arguments; return what it printed as JSON, and its warnings."""

    def run(script, *arguments):
        code = BEGIN + textwrap.dedent(script)
        done = heedful_cli("-c", code, *arguments, timeout=SECONDS)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), done.stderr

    return run


@pytest.mark.parametrize("begun", [True, False], ids=["used", "loaded"])
@pytest.mark.parametrize("precision", ["fp32", "auto", "int8"])
def test_a_loaded_model_translates_in_a_fork(python, trained, begun, precision):
    script = """
    translator = heedful.Translator.load(sys.argv[1], threads=2, precision=sys.argv[2])
    before = texts(translator) if len(sys.argv) > 3 else None

    def child():
        pairs = ["a dog"], ["un chien"]
        return texts(translator), translator.score(*pairs), torch.get_num_threads()

    found = [in_fork(child) for _ in range(2)]
    after = [texts(translator), translator.score(["a dog"], ["un chien"]), torch.get_num_threads()]
    print(json.dumps([before, found, after]))
    """
    (before, found, after), _ = python(script, trained, precision, *["translate"] * begun)
    assert before in (None, after[0])
    for texts, scores, threads in found:
        assert (texts, threads) == (after[0], 1)
        assert scores == [pytest.approx(after[1][0], abs=1e-3)]
    assert after[2] == 2


def test_a_fork_beside_a_translating_thread_translates(python, trained):
    script = """
    import threading
    translator = heedful.Translator.load(sys.argv[1], threads=2)
    goes_on, began = True, threading.Event()

    def work():
        while goes_on:
            texts(translator)
            began.set()

    thread = threading.Thread(target=work)
    thread.start()
    began.wait()
    found = [in_fork(texts, translator) for _ in range(3)]
    goes_on = False
    thread.join()
    print(json.dumps([found, texts(translator)]))
    """
    (found, expected), _ = python(script, trained)
    assert found == [expected] * 3


def test_a_model_loaded_in_a_fork_has_one_thread_and_says_so(python, trained):
    script = """
    translator = heedful.Translator.load(sys.argv[1], threads=2)
    expected = texts(translator)

    def child():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            translator = heedful.Translator.load(sys.argv[1], threads=2)
        return texts(translator), torch.get_num_threads(), [str(one.message) for one in caught]

    print(json.dumps([expected, in_fork(child)]))
    """
    (expected, (found, threads, told)), _ = python(script, trained)
    assert (found, threads) == (expected, 1)
    assert len(told) == 1
    assert "is a fork without the threads of its parent" in told[0]
    assert "in one thread instead of 2" in told[0]
    assert "“spawn”" in told[0]


def test_a_training_in_a_fork_of_a_training_ends(python, text, tmp_path):
    script = """
    def train(name):
        folder = Path(sys.argv[1])
        settings = {
            "data.vocabulary_size": 400, "train.steps": 2, "train.batch_tokens": 512,
            "train.validate_steps": None, "train.device": "cpu", "train.threads": 2,
        }
        sides = {"source": folder / "train.en", "target": folder / "train.fr"}
        out = Path(sys.argv[2]) / name
        heedful.train("tiny", **sides, out=out, settings=settings, quiet=True)
        return torch.get_num_threads()

    print(json.dumps([train("parent"), in_fork(train, "child")]))
    """
    threads, errors = python(script, text, tmp_path)
    assert threads == [2, 1]
    assert "in one thread instead of 2" in errors
    for name in ("parent", "child"):
        assert (tmp_path / name / "checkpoints" / "step-00000002").is_dir()


def test_a_fork_of_what_has_not_computed_has_its_own_threads(python, trained):
    script = """
    def child():
        translator = heedful.Translator.load(sys.argv[1], threads=2)
        return texts(translator), torch.get_num_threads()

    print(json.dumps([in_fork(child), in_fork(child)]))
    """
    ((first, threads), second), errors = python(script, trained)
    assert second == [first, threads]
    assert threads == 2
    assert "fork" not in errors


def test_a_model_of_ctranslate2_is_refused_in_a_fork_which_ends(python, trained, tmp_path):
    script = """
    from heedful.errors import UserError
    from heedful.exchange.convert import export_model

    folder = Path(sys.argv[2])
    export_model(Path(sys.argv[1]), "ctranslate2", folder)
    engine = open_engine("ctranslate2", [folder], threads=1)
    expected = texts(engine)

    def refusal(function):
        try:
            function()
        except UserError as error:
            return str(error)

    sides = os.pipe()
    child = os.fork()
    if child == 0:
        told = [
            refusal(lambda: texts(engine)),
            refusal(lambda: open_engine("ctranslate2", [folder], threads=1)),
        ]
        os.write(sides[1], json.dumps(told).encode())
        sys.exit()  # deletes all models
    os.close(sides[1])
    told = json.loads(os.fdopen(sides[0]).read())
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(json.dumps([told, status, texts(engine) == expected]))
    """
    (told, status, same), _ = python(script, trained, tmp_path / "exported")
    assert told[0] == told[1]
    assert "must be used by the process that opened the first model" in told[0]
    assert (status, same) == (0, True)
