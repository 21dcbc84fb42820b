import json
import shutil
from pathlib import Path

import pytest

from heedful.bench.random_run import make_random_run
from heedful.config.load import load_config
from heedful.errors import RunFolderError, TrainingFailed
from heedful.exchange.convert import export_model
from heedful.runs.average import average_checkpoints
from heedful.runs.checkpoint import load_checkpoint, read_state
from heedful.runs.folder import RunFolder
from heedful.runs.run import Run
from heedful.tokenization.tokenizer import Tokenizer
from heedful.tokenization.vocabulary import Vocabulary
from heedful.tokenization.vocabulary_model import VocabularyModel
from heedful.training.finetune import find_pretrained
from heedful.training.run_folder import RunFiles, require_usable
from heedful.training.setup import check_continues
from heedful.translation.translator import Translator
from tests.support.weights import spoil

WORDS = 50


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with weights, and an average of them."""
    folder = tmp_path_factory.mktemp("run")
    run = make_random_run(folder, load_config("tiny"), WORDS)
    average_checkpoints(run.folder, 1, run.signature)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "run"))


def with_other_subwords(folder: Path) -> None:
    words = VocabularyModel(Vocabulary([f"other{number}" for number in range(WORDS - 4)]))
    Tokenizer(words, source_language="xx", target_language="zz").save(folder)


def with_another_activation(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    config["settings"]["model"]["activation"] = "gelu"
    (folder / "config.json").write_text(json.dumps(config))


def with_languages(folder: Path, source: str, target: str) -> None:
    config = json.loads((folder / "config.json").read_text())
    config["settings"]["data"] |= {"source_language": source, "target_language": target}
    (folder / "config.json").write_text(json.dumps(config))


DOORS = {
    "translate, score, attend, serve": lambda folder: Translator.load(folder, device="cpu"),
    "of the average": lambda folder: Translator.load(folder, weights="average", device="cpu"),
    "ensemble": lambda folder: Translator.load([folder, folder], device="cpu"),
    "average": lambda folder: average_checkpoints(
        Run.open(folder).folder, 1, Run.open(folder).signature
    ),
    "export": lambda folder: export_model(folder, "onnx", folder / "onnx"),
    "fine-tune": lambda folder: find_pretrained(folder, "default", (), ()),
    "resume": lambda folder: Run.open(folder).last_checkpoint(),
}


@pytest.mark.parametrize("door", DOORS)
def test_every_door_refuses_weights_with_other_subwords(folder: Path, door: str) -> None:
    with_other_subwords(folder)
    with pytest.raises(RunFolderError, match=r"run has another tokenizer"):
        DOORS[door](folder)


@pytest.mark.parametrize("door", DOORS)
def test_every_door_refuses_weights_with_another_model(folder: Path, door: str) -> None:
    with_another_activation(folder)
    with pytest.raises(RunFolderError, match=r"model\.activation was 'relu' and is now 'gelu'"):
        DOORS[door](folder)


@pytest.mark.parametrize("door", DOORS)
def test_every_door_refuses_weights_of_another_direction(folder: Path, door: str) -> None:
    with_languages(folder, "yy", "xx")
    with pytest.raises(
        RunFolderError, match=r"of their training, xx to yy, but .*config.json says yy to xx"
    ):
        DOORS[door](folder)


@pytest.mark.parametrize("languages", [("", ""), ("xx-US", "YY"), ("xx", "")])
def test_weights_of_what_may_be_the_same_direction_are_used(
    folder: Path, languages: tuple[str, str]
) -> None:
    with_languages(folder, *languages)
    Translator.load(folder, device="cpu")


@pytest.mark.parametrize("weights", ["average", "last"])
@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
def test_weights_that_have_diverged_are_loaded_in_no_precision(
    folder: Path, weights: str, precision: str
) -> None:
    name = spoil(Run.open(folder).checkpoint_folder(weights))
    with pytest.raises(RunFolderError, match=f"{name} holds NaN or infinity: this training has"):
        Translator.load(folder, weights=weights, precision=precision, device="cpu")


def test_a_training_that_ends_with_weights_that_have_diverged_has_failed(folder: Path) -> None:
    spoil(Run.open(folder).checkpoint_folder("last"), float("inf"))
    with pytest.raises(TrainingFailed, match="holds NaN or infinity"):
        require_usable(RunFolder(folder))


@pytest.mark.parametrize("kind", ["onnx", "ctranslate2"])
def test_weights_that_have_diverged_are_not_exported(folder: Path, kind: str) -> None:
    spoil(folder / "average")
    with pytest.raises(RunFolderError, match="holds NaN or infinity"):
        export_model(folder, kind, folder / "exported")
    assert not (folder / "exported").exists()


def test_an_average_says_whose_it_is(folder: Path) -> None:
    run = Run.open(folder)
    state = read_state(folder / "average")
    assert {name: state[name] for name in run.signature} == run.signature
    assert load_checkpoint(folder / "average").state == state


def test_an_average_older_than_the_last_checkpoint_is_not_the_default(folder: Path) -> None:
    run = Run.open(folder)
    (step,) = run.folder.steps()
    assert run.checkpoint_folder() == run.folder.average
    assert find_pretrained(folder, "default", (), ()).weights == "average"
    shutil.copytree(run.folder.checkpoint(step), run.folder.checkpoint(step + 1))
    assert run.checkpoint_folder() == run.folder.checkpoint(step + 1)
    assert run.checkpoint_folder("average") == run.folder.average
    shutil.rmtree(folder / "checkpoints")
    assert run.checkpoint_folder() == run.folder.average


def test_settings_and_subwords_that_vanish_are_written_again(folder: Path) -> None:
    (folder / "plugins" / "__pycache__").mkdir(parents=True)  # of an editor, or of Python
    files = RunFiles(RunFolder(folder))
    shutil.rmtree(folder / "average")
    names = ["config.json", "tokenizer.json", "tokenizer.vocabulary.json"]
    assert files.restore() == []
    before = {name: (folder / name).read_bytes() for name in names}
    for name in names:
        (folder / name).unlink()
    with pytest.raises(TrainingFailed, match=r"a run that can translate.*config\.json"):
        require_usable(RunFolder(folder))
    assert files.restore() == names
    assert {name: (folder / name).read_bytes() for name in names} == before
    require_usable(RunFolder(folder))
    shutil.rmtree(folder)
    assert files.restore() == names
    with pytest.raises(TrainingFailed, match="has none yet"):
        require_usable(RunFolder(folder))


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        ({}, ""),
        ({"settings": {"train.steps": 1, "train.threads": 9}}, ""),
        ({"settings": {"data.target_language": "de"}}, "data.target_language was 'de'"),
        ({"settings": {"train.label_smoothing": 0.9}}, "train.label_smoothing was 0.9"),
        ({"pairs": ["of other text"]}, "encoded to different ids"),
    ],
)
def test_a_checkpoint_is_continued_with_its_settings_and_text_only(
    folder: Path, change: dict[str, object], refused: str
) -> None:
    run = Run.open(folder)
    state = {**run.signature, "pairs": [], **change}
    state["settings"] = {**run.signature["settings"], **state["settings"]}
    if not refused:
        check_continues(run, [], state, folder)
        return
    with pytest.raises(RunFolderError, match=refused):
        check_continues(run, [], state, folder)


def test_minutes_too_short_for_a_step_are_named(tmp_path):
    config = load_config("tiny", ["train.minutes=0.0001"])
    run = make_random_run(tmp_path, config, WORDS)
    shutil.rmtree(run.folder.path / "checkpoints")
    with pytest.raises(RunFolderError, match=r"none yet.*`train.minutes` \(0\.0001\).*--resume"):
        run.checkpoint_folder()
    place = tmp_path / "config.json"
    text = json.loads(place.read_text())
    text["settings"]["train"]["minutes"] = None
    place.write_text(json.dumps(text))
    with pytest.raises(RunFolderError, match=r"none yet") as caught:
        Run.open(tmp_path).checkpoint_folder()
    assert "train.minutes" not in str(caught.value)
