import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from heedful.errors import RunFolderError, StorageError
from heedful.files import replacing, replacing_file, tidy
from heedful.runs.average import average_checkpoints, mean_weights
from heedful.runs.checkpoint import (
    check_weights,
    load_checkpoint,
    load_weights,
    regular_steps,
    retain,
    save_checkpoint,
)
from heedful.runs.folder import RunFolder, read_json, write_json


def tensors(seed=0, **shapes):
    generator = torch.Generator().manual_seed(seed)
    shapes = shapes or {"b.weight": (3, 4), "a.bias": (5,)}
    return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}


def save(folder, step, reason="regular", seed=None):
    model = tensors(step if seed is None else seed)
    save_checkpoint(folder.checkpoint(step), model, tensors(99), {"reason": reason, "step": step})
    return model


def test_what_is_saved_is_loaded(tmp_path):
    model, training = weights_and_moments()
    save_checkpoint(tmp_path / "c", model, training, {"reason": "regular", "x": [1.5]})
    loaded = load_checkpoint(tmp_path / "c", with_training=True)
    assert loaded.state["x"] == [1.5]
    for saved, found in ((model, loaded.model), (training, loaded.training)):
        assert saved.keys() == found.keys()
        assert all(torch.equal(saved[name], found[name]) for name in saved)
    assert load_checkpoint(tmp_path / "c").training == {}


def test_what_was_opened_stays_readable_while_its_folder_is_replaced(tmp_path):
    folder = RunFolder(tmp_path)
    old, loaded = save(folder, 1, seed=1), load_checkpoint(folder.checkpoint(1)).model
    kept = loaded["a.bias"]
    new = save(folder, 1, seed=2)
    assert torch.equal(kept, old["a.bias"])
    assert torch.equal(loaded["b.weight"], old["b.weight"])
    assert torch.equal(load_checkpoint(folder.checkpoint(1)).model["a.bias"], new["a.bias"])
    assert "c" not in loaded
    with pytest.raises(KeyError, match="c"):
        loaded["c"]


def test_weights_are_put_in_without_a_second_copy_of_all(tmp_path):
    program = """
import sys
from pathlib import Path
import torch
from heedful.runs.checkpoint import load_checkpoint, load_weights

def peak():
    return int(Path("/proc/self/status").read_text("ascii").split("VmHWM:")[1].split()[0]) * 1024

small, large = map(Path, sys.argv[1:])
load_checkpoint(small).model["a.bias"]
model = torch.nn.ModuleList(torch.nn.Linear(1024, 1024, bias=False) for _ in range(16))
before = peak()
load_weights(model, load_checkpoint(large).model, large)
print(peak() - before)
"""
    small, large = tmp_path / "small", tmp_path / "large"
    save_checkpoint(small, tensors(), None, {})
    shapes = {f"{number}.weight": (1024, 1024) for number in range(16)}
    save_checkpoint(large, tensors(**shapes), None, {})
    out = subprocess.run(
        [sys.executable, "-c", program, small, large], check=True, capture_output=True, text=True
    )
    size = (large / "model.safetensors").stat().st_size
    assert int(out.stdout) < size / 4  # one of the sixteen, and what reading needs besides


def test_equal_states_give_equal_bytes(tmp_path):
    for name in ("one", "two"):
        model = dict(sorted(tensors(1).items(), reverse=name == "two"))
        save_checkpoint(tmp_path / name, model, tensors(2), {"reason": "last"})
    for file in ("model.safetensors", "training.safetensors", "state.json"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def flip(path, position):
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("file", ["model.safetensors", "training.safetensors", "state.json"])
@pytest.mark.parametrize("damage", ["cut", "flip", "missing", "pickle", "empty"])
def test_a_damaged_checkpoint_is_noticed_and_named(tmp_path, file, damage):
    folder = tmp_path / "c"
    save_checkpoint(folder, tensors(1), tensors(2), {"reason": "regular", "step": 10})
    path = folder / file
    if damage == "cut":
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    elif damage == "flip":
        flip(path, path.stat().st_size // 2)
    elif damage == "missing":
        path.unlink()
    elif damage == "pickle":
        path.write_bytes(pickle.dumps({"a.bias": print}))
    else:
        path.write_bytes(b"")
    with pytest.raises(RunFolderError) as caught:
        load_checkpoint(folder, with_training=True)
    assert file in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_pickle_with_a_right_checksum_is_still_not_loaded(tmp_path):
    executed = tmp_path / "executed"

    class HostileObject:
        def __reduce__(self):
            return (open, (str(executed), "w"))

    folder = tmp_path / "c"
    save_checkpoint(folder, tensors(1), None, {"reason": "regular"})
    content = pickle.dumps(HostileObject())
    (folder / "model.safetensors").write_bytes(content)
    from heedful.runs import checkpoint

    state = json.loads((folder / "state.json").read_text())
    state["sha256"]["model.safetensors"] = checkpoint.hashlib.sha256(content).hexdigest()
    state["sha256"]["state.json"] = checkpoint._state_checksum(state)
    (folder / "state.json").write_text(json.dumps(state))
    with pytest.raises(RunFolderError, match="not a safetensors file"):
        load_checkpoint(folder)
    assert not executed.exists()


@pytest.mark.parametrize("content", ["[]", "{", "null", '{"a": 1}', '{"sha256": []}', "\xff"])
def test_hostile_json_is_refused_in_a_sentence(tmp_path, content):
    folder = tmp_path / "c"
    save_checkpoint(folder, tensors(1), None, {"reason": "regular"})
    (folder / "state.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(RunFolderError, match=r"state\.json"):
        load_checkpoint(folder)


def test_deep_json_does_not_break_the_reader(tmp_path):
    (tmp_path / "x.json").write_text("[" * 100_000)
    with pytest.raises(RunFolderError, match="must be a JSON file"):
        read_json(tmp_path / "x.json")


def test_running_averages_that_training_cannot_leave_are_refused(tmp_path):
    save_checkpoint(tmp_path / "c", {"norm.running_var": torch.tensor([1.0, -0.5])}, None, {})
    with pytest.raises(RunFolderError, match=r"norm\.running_var holds negative numbers"):
        load_checkpoint(tmp_path / "c")
    save_checkpoint(tmp_path / "c", {"norm.running_mean": torch.tensor([-1.0])}, None, {})
    load_checkpoint(tmp_path / "c")


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_weights_that_are_not_finite_are_refused_by_loading_and_averaging(number, dtype, tmp_path):
    folder, sizes = RunFolder(tmp_path), {"weight": (3, 4), "bias": (3,)}
    for step in (1, 2, 3):
        weights = {name: tensor.to(dtype) for name, tensor in tensors(step, **sizes).items()}
        weights["weight"][2, 3] = number if step == 2 else 3e38
        save_checkpoint(folder.checkpoint(step), weights, None, {"reason": "regular"})
    message = r"step-00000002/model.safetensors must hold finite numbers, but weight holds NaN or"
    with pytest.raises(RunFolderError, match=message):
        load_weights(nn.Linear(4, 3), load_checkpoint(folder.checkpoint(2)).model, tmp_path)
    with pytest.raises(RunFolderError, match=message):
        average_checkpoints(folder, 3, SIGNATURE)
    assert not folder.average.exists()
    load_weights(nn.Linear(4, 3), load_checkpoint(folder.checkpoint(3)).model, tmp_path)


@pytest.mark.parametrize("kind", ["first", "second", "master"])
def test_moments_that_are_not_finite_are_refused_where_they_are_read(kind, tmp_path):
    weights = tensors(1, bias=(3,), weight=(3, 4))
    kinds = ("first", "second", "master")
    moments = {f"{k}.{name}": torch.ones_like(weights[name]) for k in kinds for name in weights}
    moments[f"{kind}.weight"][1, 2] = float("nan")
    save_checkpoint(tmp_path / "c", weights, moments, {})
    message = rf"training\.safetensors must hold finite numbers, but {kind}\.weight holds NaN"
    with pytest.raises(RunFolderError, match=message):
        dict(load_checkpoint(tmp_path / "c", with_training=True).training)


def test_weights_that_do_not_fit_are_all_named_together(tmp_path):
    model = nn.ModuleDict({"a": nn.Linear(2, 3), "b": nn.Linear(3, 1)})
    given = tensors(1, **{"a.weight": (3, 3), "a.bias": (3,), "c.weight": (1,)})
    with pytest.raises(RunFolderError) as caught:
        check_weights(model, given, tmp_path)
    for part in ("missing: b.bias, b.weight", "not expected: c.weight", "(3, 3) instead of (3, 2)"):
        assert part in str(caught.value)


def test_weights_that_fit_are_put_in(tmp_path):
    model = nn.Linear(2, 3)
    given = tensors(1, weight=(3, 2), bias=(3,))
    load_weights(model, given, tmp_path)
    assert torch.equal(model.weight, given["weight"])


def test_recent_and_best_checkpoints_stay(tmp_path):
    folder = RunFolder(tmp_path)
    reasons = {10: "regular", 15: "best", 20: "regular", 25: "best", 30: "regular", 40: "regular"}
    for step, reason in reasons.items():
        save(folder, step, reason)
    assert folder.steps() == sorted(reasons)
    assert regular_steps(folder) == [10, 20, 30, 40]
    retain(folder, keep_last=2, best=[15])
    assert folder.steps() == [15, 30, 40]
    save(folder, 41, "best")
    retain(folder, keep_last=2, best=[15])
    assert folder.steps() == [15, 40, 41]  # the newest stays whatever it is
    save(folder, 42, "last")
    save(folder, 50)
    retain(folder, keep_last=2, best=[])
    assert folder.steps() == [40, 50]  # what a signal left behind does not count


def test_a_damaged_old_checkpoint_stops_nothing(tmp_path):
    folder = RunFolder(tmp_path)
    for step in (1, 2, 3):
        save(folder, step)
    (folder.checkpoint(1) / "state.json").unlink()  # as a kill in the middle of deleting would
    assert regular_steps(folder) == [2, 3]
    retain(folder, keep_last=2, best=[])
    assert folder.steps() == [2, 3]


def test_what_a_kill_left_half_done_is_put_right(tmp_path):
    folder = RunFolder(tmp_path)
    model = save(folder, 1)
    place = folder.checkpoint(1)
    place.rename(place.with_name(".step-00000001.old"))  # between the two renames
    place.with_name(".step-00000002.partial").mkdir()
    place.with_name(".step-00000000.gone").mkdir()
    tidy(place.parent)
    assert [entry.name for entry in place.parent.iterdir()] == ["step-00000001"]
    assert torch.equal(load_checkpoint(place).model["a.bias"], model["a.bias"])


def test_a_folder_that_cannot_be_replaced_stays(tmp_path, monkeypatch):
    folder = RunFolder(tmp_path)
    model = save(folder, 1)
    rename, place = Path.rename, folder.checkpoint(1)

    def fails_for_the_new(self, target):
        if self.name.endswith(".partial"):
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fails_for_the_new)
    with pytest.raises(StorageError):
        save(folder, 1, seed=9)
    monkeypatch.undo()
    assert torch.equal(load_checkpoint(place).model["a.bias"], model["a.bias"])
    assert [entry.name for entry in place.parent.iterdir()] == ["step-00000001"]


SIGNATURE = {"tokenizer": "0" * 64, "settings": {"model.activation": "relu"}}


def test_the_average_is_the_mean_of_the_last(tmp_path):
    folder = RunFolder(tmp_path)
    models = {step: save(folder, step) for step in (1, 2, 3)}
    assert average_checkpoints(folder, 2, SIGNATURE) == [2, 3]
    average = load_checkpoint(folder.average)
    for name, tensor in average.model.items():
        expected = (models[2][name].double() + models[3][name].double()) / 2
        assert torch.equal(tensor, expected.float())
        assert tensor.dtype == torch.float32
    assert average.state["steps"] == [2, 3]
    assert {name: average.state[name] for name in SIGNATURE} == SIGNATURE


def test_averaging_one_checkpoint_changes_nothing(tmp_path):
    folder = RunFolder(tmp_path)
    model = save(folder, 1)
    mean = mean_weights(folder, [1])
    assert all(torch.equal(mean[name], model[name]) for name in model)


def test_averaging_nothing_is_refused(tmp_path):
    with pytest.raises(RunFolderError, match="has none yet"):
        average_checkpoints(RunFolder(tmp_path), 5, SIGNATURE)


def test_half_a_folder_is_never_seen(tmp_path):
    folder = RunFolder(tmp_path)
    save(folder, 1)
    place = folder.checkpoint(2)
    with pytest.raises(ZeroDivisionError), replacing(place) as beside:
        (beside / "half").write_text("x")
        raise ZeroDivisionError
    assert folder.steps() == [1]
    assert [entry.name for entry in place.parent.iterdir()] == ["step-00000001"]


def test_a_replaced_folder_has_only_the_new_content(tmp_path):
    folder = RunFolder(tmp_path)
    save(folder, 1, seed=1)
    new = save(folder, 1, seed=2)
    assert torch.equal(load_checkpoint(folder.checkpoint(1)).model["a.bias"], new["a.bias"])
    assert [entry.name for entry in (tmp_path / "checkpoints").iterdir()] == ["step-00000001"]


def test_what_cannot_be_written_is_said_and_the_old_stays(tmp_path):
    write_json(tmp_path / "x.json", {"a": 1})
    (tmp_path / ".x.json.partial").mkdir()  # in the way of the new file
    with pytest.raises(StorageError, match=r"cannot write to .*files written earlier are intact"):
        write_json(tmp_path / "x.json", {"a": 2})
    assert read_json(tmp_path / "x.json") == {"a": 1}


def test_a_folder_without_settings_is_no_run(tmp_path):
    with pytest.raises(RunFolderError, match=r"holds no config\.json"):
        RunFolder(tmp_path).require()
    with pytest.raises(RunFolderError, match="does not exist"):
        RunFolder(tmp_path / "nowhere").require()


def weights_and_moments(**changes):
    """What training saves of a small model, with some moments changed or, where None, left out."""
    model = tensors(1)
    moments = {
        f"{kind}.{name}": one + 0 for kind in ("first", "second") for name, one in model.items()
    }
    moments |= {name.replace("__", "."): value for name, value in changes.items()}
    return model, {name: value for name, value in moments.items() if value is not None}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"first__a__bias": torch.zeros(1)}, r"first.a.bias is \(1,\) instead of \(5,\)"),
        ({"second__b__weight": None}, r"second.b.weight is missing"),
        ({"master__a__bias": torch.zeros(3, 5)}, r"master.a.bias is \(3, 5\) instead of"),
        ({"first__a__bias": torch.zeros(5, dtype=torch.long)}, r"'first.a.bias' holds I64 \[5\]"),
        ({"more": torch.zeros(0, 2**40)}, r"holds F32 \[0, 1099511627776\]"),
        ({"more": torch.zeros(300_000)}, "much larger than the weights"),
    ],
)
def test_moments_that_are_not_of_the_weights_are_refused(changes, told, tmp_path):
    save_checkpoint(tmp_path / "c", *weights_and_moments(), {})
    load_checkpoint(tmp_path / "c", with_training=True)
    save_checkpoint(tmp_path / "c", *weights_and_moments(**changes), {})
    with pytest.raises(RunFolderError, match=told):
        load_checkpoint(tmp_path / "c", with_training=True)


@pytest.mark.parametrize(
    "second",
    [{"a": (2,), "b": (3,)}, {"a": (1,)}, {"a": (2,), "c": (3,)}, {"a": (2, 1), "b": (3,)}],
)
def test_checkpoints_of_several_models_are_not_averaged(second, tmp_path):
    folder = RunFolder(tmp_path)
    for step, shapes in enumerate(({"a": (2,), "b": (3, 1)}, second)):
        save_checkpoint(folder.checkpoint(step), tensors(**shapes), None, {"reason": "regular"})
    with pytest.raises(RunFolderError, match=r"must belong to one model .* differ in"):
        average_checkpoints(folder, 2, {"tokenizer": None, "settings": {}})
    assert not folder.average.exists()


@pytest.mark.parametrize("name", ["state.json", "model.safetensors"])
def test_a_link_to_a_device_is_not_read_without_end(name, tmp_path):
    save_checkpoint(tmp_path / "c", tensors(1), None, {})
    (tmp_path / "c" / name).unlink()
    (tmp_path / "c" / name).symlink_to("/dev/zero")
    with pytest.raises(RunFolderError, match="not an ordinary file"):
        load_checkpoint(tmp_path / "c")


def test_what_a_killed_process_of_the_same_number_left_does_not_hinder(tmp_path):
    left, place = tmp_path / f".text.{os.getpid()}.tmp", tmp_path / "text"
    left.write_text("half", encoding="utf-8")
    with replacing_file(place) as stream:
        stream.write("whole\n")
    assert place.read_text(encoding="utf-8") == "whole\n"
    assert left.read_text(encoding="utf-8") == "half"
