from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heedful.arguments import check_fields
from heedful.errors import RunFolderError, SettingError
from heedful.preparation.training_data import UnpreparedText
from heedful.runs.folder import RunFolder
from heedful.training.dry_run import describe_plan
from heedful.training.finetune import write_pretrained
from heedful.training.options import TrainingOptions
from heedful.training.result import TrainingResult
from heedful.training.setup import TrainingSetup, check_folder
from heedful.training.train import run_training, train


def write_pairs(folder: Path) -> dict[str, Path]:
    files = {"source": folder / "train.en", "target": folder / "train.de"}
    for path in files.values():
        path.write_text("a b\nc d\n", encoding="utf-8")
    return files


def test_a_setup_is_resolved_without_writing(tmp_path: Path) -> None:
    files = write_pairs(tmp_path)
    before = sorted(tmp_path.iterdir())
    chosen = {"settings": ["train.steps=3"], "tensorboard": tmp_path}
    options = TrainingOptions(**files, out=tmp_path / "run", **chosen)
    setup = TrainingSetup.resolve("tiny", options)
    assert sorted(tmp_path.iterdir()) == before
    assert setup.config.train.steps == 3
    assert setup.config.data.source_language == "en"
    assert setup.folder is not None
    assert setup.folder.path == tmp_path / "run"
    assert setup.events == tmp_path / "run"
    assert [entry["file"] for entry in setup.files["source"]] == ["train.en"]
    assert setup.pretrained is None
    assert setup.valid is None


def test_what_needs_a_run_folder_says_so(tmp_path: Path) -> None:
    files = write_pairs(tmp_path)
    with pytest.raises(SettingError, match="--resume needs --out"):
        TrainingSetup.resolve("tiny", TrainingOptions(**files, resume=True))
    with pytest.raises(SettingError, match="needs --out, the run folder"):
        run_training(TrainingSetup.resolve("tiny", TrainingOptions(**files)))


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Path], TrainingResult]:
    """Train for one step; return the text and the result."""
    folder = tmp_path_factory.mktemp("done")
    files, settings = write_pairs(folder), {"data.subwords": "word", "train.device": "cpu"}
    settings |= {"train.steps": 1, "train.batch_tokens": 8, "train.precision": "fp32"}
    return files, train("tiny", **files, out=folder / "run", settings=settings, quiet=True)


def test_a_result_names_the_run_to_start_from(done: Any, tmp_path: Path) -> None:
    files, result = done
    options = TrainingOptions(**files, out=tmp_path / "run")
    check_fields(replace(options, finetune_from=result, tokenizer=result))
    setup = TrainingSetup.resolve("tiny", replace(options, finetune_from=result))
    assert setup.pretrained is not None
    assert setup.pretrained.run == str(result.run)
    given = replace(options, tokenizer=result, settings=["data.subwords=word"])
    training_data = TrainingSetup.resolve("tiny", given).training_data
    assert isinstance(training_data, UnpreparedText)
    assert training_data.tokenizer == result.run


def test_the_folder_of_the_pretrained_run_may_be_spelled_in_another_way(
    done: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, result = done
    folder = RunFolder(tmp_path / "tuned")
    folder.path.mkdir()
    options = TrainingOptions(**files, out=tmp_path / "run")
    monkeypatch.chdir(result.run.parent)
    for name in (result.run, "run/", Path("run"), f"../{result.run.parent.name}/run"):
        pretrained = TrainingSetup.resolve("tiny", replace(options, finetune_from=name)).pretrained
        write_pretrained(folder, pretrained)
        folder.config.touch()  # the run has begun
    kept = replace(options, finetune_from=result.run, keep_state=("schedule",))
    with pytest.raises(RunFolderError, match="from the weights it began with"):
        write_pretrained(folder, TrainingSetup.resolve("tiny", kept).pretrained)


def test_a_dry_run_and_a_training_refuse_ids_that_the_target_has_not(tmp_path: Path) -> None:
    small = ["data.vocabulary_size=16", "data.subwords=bpe", "search.forbidden_ids=99"]
    for path in (files := write_pairs(tmp_path)).values():
        path.write_text("a b a b\nc d e f g\n" * 20, encoding="utf-8")
    options = TrainingOptions(**files, out=tmp_path / "run", settings=small)
    setup = TrainingSetup.resolve("tiny", options)
    with pytest.raises(
        SettingError, match="must be ids of the target vocabulary, below 16, but got 99"
    ):
        describe_plan(setup, lambda text: None)
    with pytest.raises(
        SettingError, match="must be ids of the target vocabulary, below 16, but got 99"
    ):
        run_training(setup, quiet=True)
    assert not (tmp_path / "run").exists()


def test_a_run_of_pairs_that_was_killed_before_its_settings_can_be_resumed(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    options = TrainingOptions(**write_pairs(tmp_path), out=folder.path, resume=True)
    (folder.path / "pairs").mkdir(parents=True)
    setup = TrainingSetup.resolve("tiny", options)
    check_folder(folder, setup)
    (folder.path / "thesis.txt").write_text("mine")
    with pytest.raises(RunFolderError, match=r"other files and no config\.json: thesis\.txt"):
        check_folder(folder, setup)
