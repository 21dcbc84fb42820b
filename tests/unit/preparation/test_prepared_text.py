import json
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest

from heedful.config.load import load_config
from heedful.data.encoded.dataset import EncodedPairs
from heedful.data.toy_grammar.corpus import sample_pairs
from heedful.errors import RunFolderError, SettingError, TextError, TokenizerError, UserError
from heedful.preparation.find_training_data import find_text, find_training_data
from heedful.preparation.held_out import held_out_files
from heedful.preparation.prepare import prepare
from heedful.preparation.prepared_text import PreparedText
from heedful.preparation.raw_text import RawText
from heedful.runs.folder import RunFolder
from heedful.runs.machine_settings import ONE_THREAD
from heedful.runs.run import write_config
from heedful.tokenization.tokenizer import Tokenizer
from heedful.training.setup import TrainingSetup, check_folder
from heedful.training.validation import files_of

# Nine lines of 50 characters, none of which comes twice.
HAN = "".join("".join(map(chr, range(n, n + 50))) + "\n" for n in range(0x4E00, 0x4FC2, 50))
SETTINGS = ("data.vocabulary_size=300", "data.max_length_ratio=2.5")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with text and the folder prepared from it, to be copied."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "text").mkdir()
    pairs = sample_pairs(300, seed=4)
    for side, language in enumerate(("en", "fr")):
        lines = "".join(f"{pair[side]}\n" for pair in pairs)
        (folder / "text" / f"train.{language}").write_text(lines, encoding="utf-8")
    files = {"source": folder / "text" / "train.en", "target": folder / "text" / "train.fr"}
    prepare("tiny", **files, out=folder / "deep" / "dir", settings=SETTINGS)
    return folder


@pytest.fixture
def text(made: Path, tmp_path: Path) -> dict[str, Path]:
    shutil.copytree(made / "text", tmp_path / "text")
    return {"source": tmp_path / "text" / "train.en", "target": tmp_path / "text" / "train.fr"}


@pytest.fixture
def prepared(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made / "deep", tmp_path / "deep")) / "dir"


def times(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_the_same_again_does_nothing(text, prepared):
    before, said = times(prepared), []
    report = prepare("tiny", **text, out=prepared, settings=SETTINGS, say=said.append)
    assert said == ["the text is already encoded", "300 pairs kept, 0 dropped"]
    assert report.kept + report.total_dropped == 300
    assert times(prepared) == before


@pytest.mark.parametrize("missing", [("data",), ("data", "tokenizer.json")])
def test_what_is_missing_is_made_again_and_the_same(text, prepared, missing):
    record = (prepared / "prepared.json").read_bytes()
    for name in missing:
        path = prepared / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    prepare("tiny", **text, out=prepared, settings=SETTINGS, processes=1)
    assert (prepared / "prepared.json").read_bytes() == record
    material = PreparedText.open(prepared)
    digest = json.loads((prepared / "data" / "meta.json").read_text("utf-8"))["digest"]
    assert material.fingerprint()["prepared"] == [{"file": "dir", "digest": digest}]


def test_other_settings_are_refused_and_named(text, prepared):
    with pytest.raises(RunFolderError, match=r"data\.max_length_ratio was 2\.5 and is now None"):
        prepare("tiny", **text, out=prepared, settings=SETTINGS[:1])
    with pytest.raises(RunFolderError, match=r"train\.seed was 1 and is now 2"):
        prepare("tiny", **text, out=prepared, settings=[*SETTINGS, "train.seed=2"])
    # The model and the length of training have nothing to do with it.
    prepare("tiny", **text, out=prepared, settings=[*SETTINGS, "model.d_ff=99", "train.steps=1"])


def test_other_text_is_refused(text, prepared):
    with pytest.raises(RunFolderError, match="the files of --exclude now differ in number"):
        prepare("tiny", **text, out=prepared, settings=SETTINGS, exclude=text["source"])
    with text["source"].open("a", encoding="utf-8") as file:
        file.write("a dog\n")
    with pytest.raises(RunFolderError, match="the files of --source now differ in number"):
        prepare("tiny", **text, out=prepared, settings=SETTINGS)


@pytest.mark.parametrize(
    ("source", "target", "error", "part"),
    [
        (b"a\nb\nc\n", b"a\nb\n", TextError, r"train\.en has 3 and .*train\.fr has 2"),
        (b"a\nb\xffc\n", b"a\nb\n", TextError, r"train\.en .* line 2 .* 0xff"),
        (b"", b"", TextError, "are empty"),
        (None, b"a\n", TextError, r"train\.en must exist"),
        (HAN.encode(), b"d e f\n" * 9, TokenizerError, "set data.vocabulary_size="),
    ],
)
def test_text_that_cannot_be_used_leaves_nothing(tmp_path, source, target, error, part):
    for language, lines in (("en", source), ("fr", target)):
        if lines is not None:
            (tmp_path / f"train.{language}").write_bytes(lines)
    files = {"source": tmp_path / "train.en", "target": tmp_path / "train.fr"}
    with pytest.raises(error, match=part):
        prepare("tiny", **files, out=tmp_path / "out", settings=SETTINGS)
    assert not (tmp_path / "out").exists()


def test_text_of_which_nothing_is_left_can_be_tried_again_elsewhere(text, tmp_path):
    with pytest.raises(TextError, match=r"but none did .*\(300 too long\).*data\.max_length"):
        prepare("tiny", **text, out=tmp_path / "out", settings=[SETTINGS[0], "data.max_length=1"])
    assert not list((tmp_path / "out").glob("*data*"))
    with pytest.raises(RunFolderError, match="not: `heedful data prepare` was interrupted"):
        PreparedText.open(tmp_path / "out")


def test_folders_that_hold_something_else_are_refused(text, tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    for out in (tmp_path, tmp_path / "thesis.txt"):
        with pytest.raises(RunFolderError, match=r"has other files: .*thesis\.txt"):
            prepare("tiny", **text, out=out, settings=SETTINGS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["text", "thesis.txt"]


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"complete": False}, "was interrupted"),
        ({"complete": "no"}, "format 1"),
        ({"format": 2}, "format 1"),
        ({"settings": []}, "format 1"),
        ({"corpus": {"source": [{"file": "x"}]}}, "format 1"),
        ({"corpus": {"source": 5}}, "format 1"),
        ({"corpus": {"a.weight": [{"weight": float("inf")}]}}, "format 1"),
        ({"settings": {"data.max_length": -1}}, r"data\.max_length"),
        ({"settings": {"data.of_later": 1}}, r"data\.of_later"),
    ],
)
def test_a_record_that_was_changed_is_refused(prepared, change, part):
    path = prepared / "prepared.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | change), "utf-8")
    with pytest.raises(UserError, match=part):
        PreparedText.open(prepared).configure(load_config("tiny"))


def test_text_is_said_once(text, prepared):
    assert isinstance(find_training_data(**text), RawText)
    data = find_training_data(None, None, None, prepared)
    assert data.describe(load_config("tiny")).endswith(f"in {prepared}")
    with pytest.raises(TextError, match="both --source and --target, or --corpora"):
        find_training_data(text["source"], None)
    for more in ({**text}, {"source": None, "target": None, "exclude": text["source"]}):
        with pytest.raises(TextError, match="one or the other"):
            find_training_data(**more, data=prepared)


def test_a_recipe_gives_way_to_the_folder_and_the_user_does_not(prepared):
    config = PreparedText.open(prepared).configure(load_config("paper-base"))
    assert config.data == PreparedText.open(prepared).configure(load_config("tiny")).data
    assert (config.data.vocabulary_size, config.data.max_length_ratio) == (300, 2.5)
    assert (config.data.source_language, config.data.target_language) == ("en", "fr")
    assert config.model == load_config("paper-base").model
    same = ["data.max_length_ratio=2.5", "train.seed=7"]
    config = PreparedText.open(prepared, same).configure(load_config("tiny", same))
    assert config.train.seed == 7
    other = ["data.max_length_ratio=3", "data.vocabulary_size=300"]
    with pytest.raises(
        SettingError, match=r"data\.max_length_ratio is 2\.5 in the folder and 3\.0 in the command"
    ):
        PreparedText.open(prepared, other).configure(load_config("tiny", other))


def test_raw_text_tells_its_languages_and_is_read_before_anything_is_done(text):
    raw = find_text(str(text["source"]), [text["target"]], text["source"].parent / "*.fr")
    config = raw.configure(load_config("tiny"))
    assert (config.data.source_language, config.data.target_language) == ("en", "fr")
    assert raw.describe(config) == "300 pairs"
    assert {side: len(files) for side, files in raw.fingerprint().items()} == {
        **{"source": 1, "target": 1, "exclude": 1}
    }
    named = raw.configure(load_config("tiny", ["data.source_language=de"]))
    assert named.data.source_language == "de"


def test_the_record_tells_what_was_made(text, prepared):
    record = json.loads((prepared / "prepared.json").read_text("utf-8"))
    pairs = EncodedPairs.open(prepared / "data", Tokenizer.load(prepared))
    assert record["pairs"] == len(pairs)
    assert record["complete"] is True
    size = text["source"].stat().st_size
    assert record["corpus"]["source"] == [{"file": "train.en", "bytes": size}]


def test_damaged_ids_show_before_training(prepared, tmp_path):
    copy = shutil.copytree(prepared, tmp_path / "copy")
    ids = bytearray((copy / "data" / "source.ids").read_bytes())
    ids[-2] ^= 1
    (copy / "data" / "source.ids").write_bytes(ids)
    assert PreparedText.open(prepared).describe(load_config("tiny")).startswith("300 pairs")
    with pytest.raises(RunFolderError, match="must be unchanged"):
        PreparedText.open(copy).describe(load_config("tiny"))


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        ({}, False),
        ({"source": [{"file": "moved.en", "bytes": 10}]}, False),
        ({"valid_source": []}, False),
        ({"source": [{"file": "train.en", "bytes": 11}]}, True),
        ({"source": [{"file": "train.en", "bytes": 10}] * 2}, True),
        ({"exclude": [{"file": "test.en", "bytes": 1}]}, True),
        ({"valid_source": [{"file": "valid.en", "bytes": 1}]}, True),
        ({"prepared": [{"file": "moved", "digest": "a"}]}, False),
        ({"prepared": [{"file": "dir", "digest": "b"}]}, True),
        ({"prepared": []}, True),
    ],
)
def test_a_run_goes_on_with_the_text_it_was_begun_with(tmp_path, change, refused):
    folder, config = RunFolder(tmp_path), load_config("tiny")
    side = [{"file": "train.en", "bytes": 10}]
    prepared = [{"file": "dir", "digest": "a"}]
    files = {"source": side, "target": side, "exclude": [], "prepared": prepared}
    write_config(folder, config, ONE_THREAD, files, {})
    setup = TrainingSetup(config, RawText(()), {**files, **change}, folder=folder, resume=True)
    with (
        pytest.raises(RunFolderError, match="texts were added, left out or changed")
        if refused
        else nullcontext()
    ):
        check_folder(folder, setup)


def test_training_knows_what_was_compared_with_its_validation_text(text, tmp_path):
    def notes(name, source, target, **given):
        """Prepare text, and return the notes on this validation text."""
        prepare("tiny", **text, **given, out=tmp_path / name, settings=SETTINGS)
        prepared = PreparedText.open(tmp_path / name)
        files = files_of(held_out_files(source, target))
        assert "digest" in files["valid_source"][0]
        return [*prepared.held_out_notes(prepared.open_pairs(), files)]

    leaking = text["source"], text["target"]
    other = tmp_path / "valid.en", tmp_path / "valid.fr"
    for side, file in enumerate(other):
        file.write_text(f"{'xy'[side]}\n" * 3)
    valid = {"valid_source": leaking[0], "valid_target": leaking[1]}
    (note,) = notes("compared", *leaking, **valid)
    assert note.startswith("warning: the training text repeats 300 of 300 validation pairs")
    (note,) = notes("compared", *other, **valid)
    assert note.startswith("note: the training text was not compared with this validation text")
    (note,) = notes("not compared", *leaking)
    assert "was not compared" in note
    prepared = PreparedText.open(tmp_path / "compared")
    assert [*prepared.held_out_notes(prepared.open_pairs(), {})] == []  # nothing to validate with
    # compared without finding anything, and excluded
    assert notes("clean", *other, valid_source=other[0], valid_target=other[1]) == []
    assert notes("excluded", *other, exclude=other) == []
    (note,) = notes("one side", *other, exclude=other[0])
    assert "was not compared" in note
