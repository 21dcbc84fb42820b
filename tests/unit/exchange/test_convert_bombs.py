"""Small files that ask for all memory or all time are refused, and take neither."""

import io
import json
import os
import pickle
import resource
import shutil
import struct
import tracemalloc
from collections import OrderedDict
from contextlib import suppress
from functools import partial

import numpy as np
import pytest
import safetensors.torch
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from heedful.config.model import ModelConfig
from heedful.errors import ExchangeError, RunFolderError, SettingError
from heedful.exchange.convert import import_model
from heedful.exchange.ctranslate2.binary import read_model_file
from heedful.exchange.formats import read_safetensors, read_settings_file
from heedful.exchange.pickled.lazy_tensors import Storage, StoredTensor, read_arrays
from heedful.exchange.pickled.safe_unpickler import read_inert
from heedful.exchange.pickled.torch_file import read_torch_file
from heedful.exchange.plain_yaml import read_yaml
from heedful.runs.run import Run, best_steps
from heedful.training.history import read_history
from tests.support import old_joey
from tests.support.ctranslate2 import model_bin, stored

MOST = 200 << 20
VAST = 2**61


@pytest.fixture(autouse=True)
def little():
    """Fail where a test takes more than 200 MB, of Python's memory or of the system's."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < MOST
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST >> 10


def test_aliases_of_ctranslate2_cannot_multiply_a_small_file(tmp_path):
    weight = np.ones((1000, 1000), np.int8)
    parts = {"a/weight": stored(weight), "a/weight_scale": stored(np.ones(1000, np.float32))}
    aliases = [(f"layer_{n}/weight", "a/weight") for n in range(1500)]
    (tmp_path / "model.bin").write_bytes(model_bin(parts, aliases))
    with pytest.raises(ExchangeError, match="numbers into 1,50"):
        read_model_file(tmp_path / "model.bin")
    (tmp_path / "model.bin").write_bytes(model_bin(parts, aliases[:2]))
    floats = read_model_file(tmp_path / "model.bin").floats()
    assert floats["layer_1/weight"] is floats["a/weight"]


def test_sizes_that_hold_nothing_are_not_believed(tmp_path):
    empty = np.zeros((0, 2), np.float32).tobytes()
    content = model_bin({"a/weight": ("float32", (0, 2**32 - 1), empty)})
    (tmp_path / "model.bin").write_bytes(content)
    with pytest.raises(ExchangeError, match="has the shape"):
        read_model_file(tmp_path / "model.bin")
    for shape in ([0, VAST], [VAST, 0], [VAST, VAST]):
        header = {"a": {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}}
        packed = json.dumps(header).encode()
        file = tmp_path / "model.safetensors"
        file.write_bytes(struct.pack("<Q", len(packed)) + packed)
        with pytest.raises(ExchangeError, match="complete safetensors file"):
            read_safetensors(file)
    block = Storage("0", "f4", 4, lambda _: bytes(16))
    for shape, strides in (((0, VAST), (1, 1)), ((VAST, 0), (0, 0)), ((VAST,), (0,))):
        with pytest.raises(ExchangeError, match="does not fit"):
            StoredTensor(block, 0, shape, strides).numpy()


def test_tensors_that_share_a_block_cannot_multiply_a_small_file(tmp_path):
    shared = torch.zeros(100_000)
    torch.save({f"{n}": shared for n in range(2_000)}, tmp_path / "a.pt")
    with pytest.raises(ExchangeError, match="many times the size"):
        read_arrays(read_torch_file(tmp_path / "a.pt"), tmp_path / "a.pt")


@pytest.mark.parametrize("as_pairs", [False, True])
def test_numbers_that_collide_as_keys_are_few(as_pairs, tmp_path):
    numbers = [n * (VAST - 1) for n in range(5_001)]
    keys = OrderedDict.fromkeys(numbers) if as_pairs else set(numbers)
    file = tmp_path / "keys.pkl"
    file.write_bytes(pickle.dumps(keys, 2))
    with file.open("rb") as content, pytest.raises(ExchangeError, match="are not text"):
        read_inert(content, {}, lambda _: None)


MERGES = "a: &a {x: 1}\n" + "".join(
    f"{name}: &{name}\n  <<: [{', '.join(['*' + before] * 9)}]\n"
    for before, name in zip("abcdefghijklm", "bcdefghijklmn", strict=True)
)
ALIASES = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 9)}]\n"
    for before, name in zip("abcdefghij", "bcdefghijk", strict=True)
)


@pytest.mark.parametrize(
    "content",
    [MERGES, ALIASES, "a: &a [*a]", "a: " + "[" * 9_999, "a: " + "{a: " * 60 + "1" + "}" * 60],
)
def test_yaml_that_grows_is_refused(content, tmp_path):
    (tmp_path / "config.yaml").write_text(content)
    with pytest.raises(ExchangeError, match="must be plain YAML"):
        read_yaml(tmp_path / "config.yaml", "A test")


def test_yaml_gives_plain_values_and_takes_over_what_it_names(tmp_path):
    (tmp_path / "config.yaml").write_text(
        f"a: &a {{x: 1, y: 0x1F}}\nb: {{<<: *a, y: 2.5, n: ~}}\nc: {':'.join(['59'] * 9_000)}\n"
        "d: [no, 1e-9, .inf, 1_000, 2026-11-22]\n1: number\n"
    )
    found = read_yaml(tmp_path / "config.yaml", "A test")
    assert found["b"] == {"x": 1, "y": 2.5, "n": None}
    assert found["c"].startswith("59:59")
    assert found["d"] == [False, "1e-9", float("inf"), 1000, "2026-11-22"]
    (tmp_path / "config.yaml").write_text("a" * (1 << 17))
    with pytest.raises(ExchangeError, match="larger than 32,768 bytes"):
        read_yaml(tmp_path / "config.yaml", "A test")


def test_json_that_is_too_deep_or_too_large_is_refused(tmp_path):
    file = tmp_path / "config.json"
    for content in ("[" * 100_000, '{"a": ' + "9" * 10_000 + "}", '{"a": NaN'):
        file.write_text(content)
        with pytest.raises(ExchangeError, match="must be a JSON file"):
            read_settings_file(file)


def bases():
    """Complete files of each format, and their readers."""
    saved = io.BytesIO()
    torch.save({"a": torch.ones(3, 4), "b": {1: 2}}, saved)
    parts = {"a/weight": stored(np.ones((3, 4), np.int8)), "b": stored(np.ones(3, np.float16))}
    return {
        "model.bin": (model_bin(parts, [("c", "b")]), lambda path: read_model_file(path).floats()),
        "a.pt": (saved.getvalue(), lambda path: read_arrays(read_torch_file(path), path)),
        "a.safetensors": (safetensors.torch.save({"a": torch.ones(3, 4)}), read_safetensors),
        "a.yaml": (
            b"a: &a {x: 1}\nb: {<<: *a, y: [1:30, ~, 2.5]}\n",
            partial(read_yaml, purpose="A"),
        ),
    }


BASES = bases()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(sorted(BASES)),
    st.floats(0, 1),
    st.sampled_from([b"", b"\0\0\0\0", b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f"])
    | st.binary(max_size=8),
    st.integers(0, 8),
)
@example("a.pt", 0.05, b"\xff\xff\xff\xff", 4)
def test_damaged_files_are_read_or_refused(tmp_path, name, at, new, removed):
    content, read = BASES[name]
    place = int(at * len(content))
    (tmp_path / name).write_bytes(content[:place] + new + content[place + removed :])
    with suppress(ExchangeError):
        read(tmp_path / name)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bombs")
    old_joey.write(folder / "old", old_joey.settings(max_output_length=2))
    import_model("joey", folder / "old", folder / "run", sentences=["w1 w2"])
    return folder / "run"


@pytest.mark.parametrize(
    ("beam", "length", "words"),
    [(200, 300, 20_000), pytest.param(4, 9_999, 0, marks=pytest.mark.soak)],
    ids=["wide", "long"],
)
def test_a_search_that_would_take_minutes_is_refused(tmp_path, beam, length, words):
    target = [*old_joey.TARGET, *[f"x{n}" for n in range(words)]]
    settings = old_joey.settings(beam_size=beam, max_output_length=length)
    old_joey.write(tmp_path / "old", settings, (old_joey.SOURCE, target))
    with pytest.raises(ExchangeError, match="must end within a minute"):
        import_model("joey", tmp_path / "old", tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"model": {"encoder_layers": 1000}},
        {"model": {"d_ff": 10**6}},
        {"model": {"d_model": 10**6, "heads": 4}},
        {"model": {"decoder_layers": 60, "d_ff": 24, "encoder_d_ff": 10**6}},
        {"data": {"vocabulary_multiple": 10**12}},
        {"model": {"positions": "learned"}, "data": {"max_length": 10**9}},
    ],
)
def test_settings_of_another_size_than_the_weights_are_refused(changes, run, tmp_path):
    content = json.loads((run / "config.json").read_text())
    for table, values in changes.items():
        content["settings"][table] |= values
    (tmp_path / "run").mkdir()
    for file in run.iterdir():
        (tmp_path / "run" / file.name).symlink_to(file)
    (tmp_path / "run" / "config.json").unlink()
    (tmp_path / "run" / "config.json").write_text(json.dumps(content))
    with pytest.raises(RunFolderError, match="does not fit the weights"):
        Run.open(tmp_path / "run").build()
    Run.open(run).build()


def test_a_width_of_any_size_is_told_at_once():
    with pytest.raises(SettingError, match="at most 1,000,000"):
        ModelConfig(d_model=10**15, heads=7)


def test_records_with_vast_numbers_are_read_or_passed_over(run, tmp_path):
    (tmp_path / "log.jsonl").write_text(
        f'{{"step": 1, "loss": {"9" * 400}}}\n{{"step": {"9" * 400}}}\n{"[" * 99_999}\n'
    )
    read_history(tmp_path / "log.jsonl")
    folder = Run.open(run).folder
    for content in ('{"best": [{"step": "x"}, {"step": 1e999}, {"step": null}, 3]}', '{"best": 3}'):
        folder.best.write_text(content)
        assert best_steps(folder) == []
    folder.best.unlink()


def test_names_alone_do_not_fill_the_memory(run, tmp_path):
    header = b"{" + b" " * (1 << 20) + b"}"  # a hundred megabytes of names take a gigabyte
    file = tmp_path / "model.safetensors"
    file.write_bytes(struct.pack("<Q", len(header)) + header)
    with pytest.raises(ExchangeError, match="its header has"):
        read_safetensors(file)
    save_as_checkpoint(run, tmp_path / "run", file)
    with pytest.raises(RunFolderError, match="its header has"):
        Run.open(tmp_path / "run").load_model("default", torch.device("cpu"), "fp32")


def test_a_hole_of_a_terabyte_is_not_read(run, tmp_path):
    size = 1 << 40
    header = {"a": {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}}
    packed = json.dumps(header).encode()
    file = tmp_path / "model.safetensors"
    file.write_bytes(struct.pack("<Q", len(packed)) + packed)
    os.truncate(file, 8 + len(packed) + size)
    save_as_checkpoint(run, tmp_path / "run", file)
    with pytest.raises(RunFolderError, match="must describe the weights"):
        Run.open(tmp_path / "run").load_model("default", torch.device("cpu"), "fp32")


def save_as_checkpoint(run, folder, weights):
    """Copy a run, with another file in the place of its weights."""
    shutil.copytree(run, folder)
    place = folder / "checkpoints" / "step-00000000" / "model.safetensors"
    place.unlink()
    place.symlink_to(weights)
