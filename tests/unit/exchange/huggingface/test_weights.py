"""Weights in each layout, damaged files and hostile ones."""

import json

import pytest
import safetensors.torch
import torch

from heedful.errors import ExchangeError
from heedful.exchange.huggingface.weights import has_safetensors, read_weights, weights_file

TENSORS = {
    "a.weight": torch.arange(6.0).reshape(2, 3),
    "b.bias": torch.tensor([0.5, -2.0], dtype=torch.float16),
    "c": torch.randn(3, generator=torch.Generator().manual_seed(1)).bfloat16(),
}


def save(path, tensors):
    if path.suffix == ".bin":
        torch.save(tensors, path)
    else:
        safetensors.torch.save_file(tensors, path)


def write_shards(folder, end="safetensors", stem="model"):
    """Two files and their index, as `save_pretrained` names them."""
    names = [*TENSORS]
    parts = {f"{stem}-00001-of-00002.{end}": names[:1], f"{stem}-00002-of-00002.{end}": names[1:]}
    for file, held in parts.items():
        save(folder / file, {name: TENSORS[name] for name in held})
    places = {name: file for file, held in parts.items() for name in held}
    index = folder / f"{stem}.{end}.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 36}, "weight_map": places}))
    return index


def complaint(folder):
    with pytest.raises(ExchangeError) as caught:
        read_weights(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("layout", ["one", "shards", "pickle", "pickled shards"])
def test_every_layout_holds_the_same_tensors(layout, tmp_path):
    if layout == "one":
        save(tmp_path / "model.safetensors", TENSORS)
    elif layout == "pickle":
        save(tmp_path / "pytorch_model.bin", TENSORS)
    else:
        pickled = layout.startswith("pickled")
        write_shards(tmp_path, *(("bin", "pytorch_model") if pickled else ()))
    tensors = read_weights(tmp_path)
    assert tensors.keys() == TENSORS.keys()
    assert all(torch.equal(tensors[name].float(), TENSORS[name].float()) for name in TENSORS)
    assert has_safetensors(tmp_path) == ("pickle" not in layout)


def test_the_pickle_of_an_old_torch_is_read(tmp_path):
    torch.save(TENSORS, tmp_path / "pytorch_model.bin", _use_new_zipfile_serialization=False)
    tensors = read_weights(tmp_path)
    assert all(torch.equal(tensors[name].float(), TENSORS[name].float()) for name in TENSORS)


def test_safetensors_come_before_a_pickle(tmp_path):
    assert weights_file(tmp_path) is None
    assert "contains none of these" in complaint(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"never opened")
    write_shards(tmp_path)
    assert weights_file(tmp_path) == tmp_path / "model.safetensors.index.json"
    assert read_weights(tmp_path).keys() == TENSORS.keys()


@pytest.mark.parametrize(
    "places",
    [
        {"a.weight": "../outside.safetensors"},
        {"a.weight": "/etc/passwd"},
        {"a.weight": "config.json"},
        {"a.weight": ["model.safetensors"]},
        {"a.weight": "a\nb.bin"},
        {f"t{n}": f"f{n}.bin" for n in range(1001)},
        {},
        ["model.safetensors"],
        None,
    ],
)
def test_an_index_names_files_of_its_own_folder(places, tmp_path):
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": places}))
    assert "index.json must" in complaint(tmp_path)


def test_shards_that_differ_from_their_index_are_named(tmp_path):
    index = write_shards(tmp_path)
    places = json.loads(index.read_text())["weight_map"]
    second = places["c"]
    index.write_text(json.dumps({"weight_map": {**places, "more": second}}))
    assert "differ in more" in complaint(tmp_path)
    del places["c"]
    index.write_text(json.dumps({"weight_map": places}))
    assert "differ in c;" in complaint(tmp_path)
    (tmp_path / second).unlink()
    assert f"do not exist: {second}" in complaint(tmp_path)


def test_a_pickle_of_something_else_and_a_damaged_one_are_refused(tmp_path):
    path = tmp_path / "pytorch_model.bin"
    for value in ([1, 2], {"a": 3}, TENSORS["a.weight"]):
        torch.save(value, path)
        assert "must be a dictionary of tensors" in complaint(tmp_path)
    torch.save(TENSORS, path)
    path.write_bytes(path.read_bytes()[:-300])
    assert "must be a checkpoint that torch saved" in complaint(tmp_path)
    # A small file cannot demand much memory: this one repeats one number.
    torch.save({"a": torch.zeros(1).expand(1 << 40)}, path)
    assert "many times the size of the file" in complaint(tmp_path)
