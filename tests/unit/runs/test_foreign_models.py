import json

import pytest

from heedful.errors import ExchangeError, RunFolderError
from heedful.exchange.convert import import_model
from heedful.runs.folder import RunFolder
from heedful.runs.foreign_models import recognize


@pytest.mark.parametrize(
    ("files", "name", "advice"),
    [
        (("model.bin", "heedful.json"), "CTranslate2", "--engine ctranslate2"),
        (("model.bin", "config.json"), "CTranslate2", "--from ctranslate2"),
        (("model.npz", "decoder.yml"), "Marian's own format", "ct2-marian-converter"),
        (("config.yaml", "best.ckpt"), "Joey NMT", "--from joey"),
        (("onnx.json",), "ONNX", "the run from which it was exported"),
    ],
)
def test_a_model_of_another_toolkit_is_named_with_what_to_do(files, name, advice, tmp_path):
    for file in files:
        (tmp_path / file).write_text("{}")
    with pytest.raises(RunFolderError, match=name) as caught:
        RunFolder(tmp_path).require()
    assert advice in str(caught.value)


@pytest.mark.parametrize("kind", ["bert", "pegasus", "something-new"])
def test_models_of_other_classes_are_named_when_they_are_given_as_marian(kind, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}))
    with pytest.raises(ExchangeError, match="does not support this class") as caught:
        import_model("marian", tmp_path, tmp_path / "run")
    names = {"bert": "BERT", "pegasus": "Pegasus"}
    assert names.get(kind, kind) in str(caught.value)


def test_hugging_face_stands_for_a_class_that_can_be_read(tmp_path):
    with pytest.raises(ExchangeError, match="is not a folder with a config"):
        import_model("huggingface", tmp_path, tmp_path / "run")
    (tmp_path / "config.json").write_text('{"model_type": "prophetnet"}')
    with pytest.raises(ExchangeError, match=r"ProphetNet; .* another class \(Marian"):
        import_model("huggingface", tmp_path, tmp_path / "run")


def test_a_file_of_marian_itself_is_named(tmp_path):
    (tmp_path / "model.npz").write_bytes(b"PK")
    with pytest.raises(ExchangeError, match="convert it with"):
        import_model("marian", tmp_path / "model.npz", tmp_path / "run")


def test_a_run_and_what_is_not_known_are_left_to_others(tmp_path):
    assert recognize(tmp_path / "nothing") is None
    assert recognize(tmp_path) is None
    for content in ('{"format": 1, "model_type": "t5"}', "[" * 99999, "3", '{"model_type": 3}'):
        (tmp_path / "config.json").write_text(content)
        assert recognize(tmp_path) is None
