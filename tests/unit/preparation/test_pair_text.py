"""Training on pairs in memory: stored in the run folder once, so that a run resumes exactly."""

import pytest

import heedful
from heedful.config.load import load_config
from heedful.errors import ArgumentError, RunFolderError, TextError
from heedful.preparation.pair_text import PairText
from heedful.text.corpus import Corpus
from heedful.training.dry_run import describe_plan
from heedful.training.options import TrainingOptions
from heedful.training.setup import TrainingSetup

SMALL = {
    "data.vocabulary_size": 60,
    "data.subwords": "bpe",
    "train.batch_tokens": 64,
    "train.validate_steps": 2,
    "train.checkpoint_steps": 2,
    "train.precision": "fp32",
    "train.device": "cpu",
    "train.threads": 1,
    "search.max_length": "2",
}


@pytest.fixture(scope="module")
def pairs(grammar):
    return sorted(grammar[0], key=lambda pair: len(pair[1]))[:60]


def train(run, steps=4, **options):
    settings = {**SMALL, "train.steps": steps, **options.pop("settings", {})}
    return heedful.train("tiny", out=run, settings=settings, quiet=True, **options)


def weights(run, steps=4):
    return (run / f"checkpoints/step-{steps:08}/model.safetensors").read_bytes()


@pytest.fixture(scope="module")
def from_files(pairs, tmp_path_factory):
    """A run that is trained on the same text in files."""
    folder = tmp_path_factory.mktemp("files")
    names = {}
    for part, lines in (("", pairs), ("valid_", pairs[:5])):
        for side, text in zip(("source", "target"), zip(*lines, strict=True), strict=True):
            names[f"{part}{side}"] = folder / f"{part}{side}.txt"
            names[f"{part}{side}"].write_text("".join(f"{line}\n" for line in text), "utf-8")
    return train(folder / "run", **names).run


def test_a_run_is_that_of_the_same_text_in_files_and_resumes_without_pairs(
    pairs, from_files, tmp_path
):
    run = tmp_path / "run"
    train(run, 2, pairs=iter(pairs), valid_pairs=[*pairs[:5], ("", "empty")])
    assert list(Corpus([run / "pairs/train.source"], [run / "pairs/train.target"]).pairs()) == pairs
    options = TrainingOptions(out=run, resume=True, settings={**SMALL, "train.steps": 4})
    assert "60 pairs" in describe_plan(TrainingSetup.resolve("tiny", options), print)
    train(run, resume=True)
    assert weights(run) == weights(from_files)
    with pytest.raises(RunFolderError, match="but pair 2 of `pairs` differs"):
        train(run, 6, resume=True, pairs=[*pairs[:2], ("other", "autre")])
    with pytest.raises(RunFolderError, match="with its original text"):
        train(run, 6, resume=True, valid_pairs=pairs[5:8])
    before = weights(run)
    assert train(run, 6, resume=True, pairs=map(list, pairs)).step == 6
    assert weights(run) == before


def test_the_names_of_columns_are_the_languages(pairs, tmp_path):
    rows = [{"fr": fr, "en": en} for en, fr in pairs]
    result = train(tmp_path / "run", 2, pairs=rows, settings={"data.source_language": "en"})
    run = heedful.Translator.load(result.run).run
    assert (run.config.data.source_language, run.config.data.target_language) == ("en", "fr")
    assert (result.run / "pairs/train.source").read_text("utf-8").startswith(f"{pairs[0][0]}\n")
    english = {"data.source_language": "en"}
    assert train(result.run, 4, resume=True, pairs=pairs, settings=english).step == 4


def failing(pairs):
    yield from pairs[:3]
    raise ValueError("the source of the pairs")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"pairs": {"en": ["a"]}}, ArgumentError, "got .*; give .*, a table with two columns"),
        ({"pairs": "text"}, ArgumentError, "`pairs` of train must be a list of"),
        ({"pairs": []}, TextError, "is empty"),
        (
            {"pairs": [("a", "b")], "source": "a.en"},
            TextError,
            r"another text was given too \(--source",
        ),
        ({"pairs": [("a", "b")], "valid_pairs": []}, TextError, "`valid_pairs` must hold at least"),
        (
            {"pairs": [("a", "b")], "valid_pairs": [("", "b")]},
            TextError,
            "a pair with text on both sides",
        ),
        (
            {"pairs": [("a", "b")], "valid_pairs": [("a", "b")], "valid_source": "a"},
            TextError,
            "one o",
        ),
        ({"pairs": [("a", "b"), ("a\n", "b")]}, TextError, "the source of pair 1 has a line break"),
        ({"pairs": failing([("a", "b")] * 3)}, ValueError, "the source of the pairs"),
        ({"pairs": [("", "")] * 3}, TextError, "the source and target text together is empty"),
    ],
)
def test_what_is_refused_leaves_no_run_folder(options, error, message, tmp_path):
    with pytest.raises(error, match=message):
        train(tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


def test_an_interrupted_start_goes_on_with_the_pairs(pairs, from_files, tmp_path):
    def interrupted():
        yield from pairs[:3]
        raise KeyboardInterrupt

    run = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        train(run, pairs=interrupted(), valid_pairs=pairs[:5])
    with pytest.raises(TextError, match="or `pairs` in Python"):
        train(run, resume=True)
    train(run, resume=True, pairs=pairs)
    assert weights(run) == weights(from_files)


def test_pairs_without_a_run_that_goes_on_are_described_without_reading():
    assert PairText(None).describe(load_config("tiny")) == "pairs in memory"
