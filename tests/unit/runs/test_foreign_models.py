import json
from pathlib import Path

import pytest

from heedful.errors import ExchangeError, RunFolderError
from heedful.exchange.convert import export_model, import_model
from heedful.runs.folder import RunFolder
from heedful.runs.foreign_models import recognise
from heedful.translation.translator import Translator


@pytest.mark.parametrize(
    ("files", "name", "advice"),
    [
        (("model.bin", "heedful.json"), "CTranslate2", "--engine ctranslate2"),
        (("model.bin", "config.json"), "CTranslate2", "--from ctranslate2"),
        (("model.npz", "decoder.yml"), "Marian's own format", "ct2-marian-converter"),
        (("config.yaml", "best.ckpt"), "Joey NMT", "--from joey"),
        (("onnx.json",), "ONNX", "the run that it was exported from"),
    ],
)
def test_a_model_of_another_toolkit_is_named_with_what_to_do(files, name, advice, tmp_path):
    for file in files:
        (tmp_path / file).write_text("{}")
    with pytest.raises(RunFolderError, match=name) as caught:
        RunFolder(tmp_path).require()
    assert advice in str(caught.value)


@pytest.mark.parametrize("kind", ["mbart", "m2m_100", "t5", "something-new"])
def test_models_of_other_classes_are_named_when_they_are_given_as_marian(kind, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}))
    with pytest.raises(ExchangeError, match="cannot express it") as caught:
        import_model("marian", tmp_path, tmp_path / "run")
    names = {"mbart": "mBART", "m2m_100": "M2M100", "t5": "T5"}
    assert names.get(kind, kind) in str(caught.value)


def test_a_name_on_the_hub_is_told_how_to_become_a_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "Helsinki-NLP/opus-mt-tc-big-fi-en"
    advice = (
        f"hf download {name} --local-dir opus-mt-tc-big-fi-en && "
        "heedful import opus-mt-tc-big-fi-en --from marian --out RUN."
    )
    with pytest.raises(RunFolderError) as caught:
        Translator.load(name)
    assert "must be of Marian's class" in str(caught.value) and str(caught.value).endswith(advice)
    with pytest.raises(ExchangeError) as refused:
        import_model("marian", name, "run")
    assert "is not there" in str(refused.value) and str(refused.value).endswith(advice)


@pytest.mark.parametrize("path", ["nothing", "runs/en-de", "there/en-de", "/a/b", "a/b/c", "../b"])
def test_a_path_that_is_no_name_on_the_hub_is_to_be_checked(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    with pytest.raises(RunFolderError, match=r"is not there; check the path\.$"):
        RunFolder(Path(path)).require()


@pytest.mark.parametrize("kind", ["huggingface", "HF", "transformers", "opus_mt"])
def test_hugging_face_is_called_marian_here(kind, tmp_path):
    with pytest.raises(
        ExchangeError, match="--from marian reads the folders of Hugging Face's OPUS"
    ):
        import_model(kind, tmp_path, tmp_path / "run")
    with pytest.raises(ExchangeError, match="--format marian writes what transformers reads"):
        export_model(tmp_path, kind, tmp_path / "out")


def test_a_file_of_marian_itself_is_named(tmp_path):
    (tmp_path / "model.npz").write_bytes(b"PK")
    with pytest.raises(ExchangeError, match="convert it with"):
        import_model("marian", tmp_path / "model.npz", tmp_path / "run")


def test_a_run_and_what_is_not_known_are_left_to_others(tmp_path):
    assert recognise(tmp_path / "nothing") is None
    assert recognise(tmp_path) is None
    for content in ('{"format": 1, "model_type": "t5"}', "[" * 99999, "3", '{"model_type": 3}'):
        (tmp_path / "config.json").write_text(content)
        assert recognise(tmp_path) is None
