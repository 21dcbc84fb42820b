from heedful.exchange.huggingface.files import text_files, weights_name


def test_only_what_an_import_reads_is_chosen():
    names = ["README.md", "vocab.json", "source.spm", "tf_model.h5", "run.py", "pytorch_model.bin"]
    assert text_files(names) == ["source.spm", "vocab.json"]
    assert weights_name(names) == "pytorch_model.bin"
    assert weights_name([*names, "model.safetensors.index.json"]) == "model.safetensors.index.json"
    assert weights_name(["tf_model.h5"]) is None
