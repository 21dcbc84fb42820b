"""A training divided into one on both directions and one that goes on from it."""

from pathlib import Path

import pytest

from heedful.config.load import load_config
from heedful.errors import RunFolderError, SettingError, TextError
from heedful.runs.folder import RunFolder
from heedful.runs.lock import LOCK
from heedful.runs.machine_settings import ONE_THREAD
from heedful.runs.run import write_config
from heedful.training.both_directions import two_trainings
from heedful.training.options import TrainingOptions

TEXT = {"source": "train.en", "target": ["a.fr", "b.fr"]}


@pytest.fixture(autouse=True)
def text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("train.en", "a.fr", "b.fr"):
        Path(name).write_text("the dog\n", "utf-8")


def begin(both, *settings):
    """Write the settings of a first run."""
    both.mkdir()
    config = load_config("tiny", settings)
    write_config(RunFolder(both), config, ONE_THREAD, {}, {})


def divided(share=0.25, *settings, **options):
    chosen = TrainingOptions(
        **{**TEXT, **options}, both_directions_first=share, settings=["train.steps=10", *settings]
    )
    return two_trainings("tiny", chosen)


def test_the_first_reads_each_pair_twice_and_the_second_goes_on_from_it(tmp_path):
    first, second = divided(out=tmp_path / "run", finetune_weights="last", tokenizer="words")
    assert first.source == ["train.en", "a.fr", "b.fr"]
    assert first.target == ["a.fr", "b.fr", "train.en"]
    assert (first.out, second.out) == (tmp_path / "run-both", tmp_path / "run")
    assert (first.finetune_from, second.finetune_from) == (None, tmp_path / "run-both")
    assert (first.finetune_weights, second.finetune_weights) == ("default", "last")
    assert (first.tokenizer, second.tokenizer) == ("words", None)
    assert (second.source, second.target) == ("train.en", ["a.fr", "b.fr"])
    assert first.both_directions_first is second.both_directions_first is None
    assert first.settings[-1] == "train.steps=2" and second.settings[-1] == "train.steps=8"


def test_a_share_is_not_rounded_down_by_its_binary_fraction():
    first, second = divided(0.29, "train.steps=100")
    assert (first.settings[-1], second.settings[-1]) == ("train.steps=29", "train.steps=71")
    first, second = divided(0.999, "train.steps=10")
    assert (first.settings[-1], second.settings[-1]) == ("train.steps=9", "train.steps=1")


def test_minutes_are_shared_out_too():
    first, second = divided(0.25, "train.minutes=8")
    assert "train.minutes=2.0" in first.settings and "train.minutes=6.0" in second.settings
    assert (first.out, second.out) == (None, None)  # of a dry run


def test_the_second_is_resumed_only_if_it_has_begun(tmp_path):
    out = tmp_path / "run"
    first, second = divided(out=out, resume=True)
    assert first.resume and not second.resume
    out.mkdir()
    assert not divided(out=out, resume=True)[1].resume
    Path(out, LOCK).touch()
    assert not divided(out=out, resume=True)[1].resume
    divided(out=out)  # a killed process left its lock and nothing else
    Path(out, "config.json").touch()
    begin(tmp_path / "run-both", "train.steps=2")
    first, second = divided(out=out, resume=True)
    assert first is None and second.resume
    with pytest.raises(RunFolderError, match="must be a new or empty folder"):
        divided(out=out)


def test_a_longer_training_does_not_change_the_first_run_once_the_second_has_begun(tmp_path):
    out, both = tmp_path / "run", tmp_path / "run-both"
    out.mkdir()
    Path(out, "config.json").touch()
    with pytest.raises(RunFolderError, match="run-both"):
        divided(out=out, resume=True)
    begin(both, "train.steps=4", "train.minutes=3")
    longer = ("train.steps=20", "train.minutes=10")
    first, second = divided(0.25, *longer, out=out, resume=True)
    assert first is None
    assert second.settings == ["train.steps=16", "train.minutes=7.0"]
    with pytest.raises(SettingError, match="must be above the 4 steps of the first run"):
        divided(0.25, "train.steps=4", out=out, resume=True)


def test_a_source_with_language_tags_is_refused():
    Path("train.en").write_text(">>fr<< the dog\n", "utf-8")
    with pytest.raises(TextError, match=r"train\.en begins with >>fr<<"):
        divided()


def test_the_folder_here_has_a_neighbor(tmp_path, monkeypatch):
    (here := tmp_path / "here").mkdir()
    monkeypatch.chdir(here)
    first, second = divided(out=".", source="../train.en", target="../a.fr")
    assert (first.out, second.out) == (tmp_path / "here-both", ".")


def test_both_read_held_out_pairs_that_can_be_read_once():
    pairs = [("the dog", "le chien"), ("a cat", "un chat")]
    first, second = divided(valid_pairs=iter(pairs))
    assert list(first.valid_pairs) == list(second.valid_pairs) == pairs


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, float("nan")])
def test_a_share_is_between_none_and_all(share):
    with pytest.raises(SettingError, match="above 0 and below 1"):
        divided(share)


@pytest.mark.parametrize(
    ("settings", "options", "message"),
    [
        (("data.shared_vocabulary=false", "model.tie_embeddings=output"), {}, "one vocabulary"),
        (("train.objective=reward",), {}, "= reward needs the weights of a trained run"),
        ((), {"finetune_from": "run"}, "but got --finetune-from"),
        ((), {"source": None, "data": "folder"}, "must have --source and --target"),
        # what only the second training would refuse
        (("train.objective=simcut", "train.second_pass_start=6"), {}, r"below `train.steps` \(5\)"),
        (
            ("train.objective=simcut", "train.second_pass_start=6"),
            {},
            "divides the 10 steps into a run of 5 steps and one of 5",
        ),
        ((), {"keep_state": ("everything",)}, "--keep-state must be one of optimizer, schedule"),
        ((), {"reset": ("head",)}, "--reset must be one of tokenizer"),
        ((), {"finetune_weights": "average"}, "must be last, .* but is 'average'"),
        ((), {"finetune_weights": "step-"}, "must be last, .* but is 'step-'"),
        ((), {"finetune_weights": "step-6"}, "up to step-5, .* but is 'step-6'"),
        ((), {"finetune_weights": "best"}, "best if there is text for validation, but is 'best'"),
    ],
)
def test_what_does_not_go_together_is_refused(settings, options, message):
    with pytest.raises(SettingError, match=message):
        divided(0.5, *settings, **options)
