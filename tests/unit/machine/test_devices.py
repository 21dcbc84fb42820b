import json

import pytest
import torch

from heedful.errors import DeviceError
from heedful.machine import devices, processor

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "heedful" / "products.json"


def test_a_device_that_is_not_there_is_refused():
    missing = f"cuda:{torch.cuda.device_count() + 7}"
    with pytest.raises(DeviceError, match=rf"{missing} must exist.*--device cpu or auto"):
        devices.resolve_device(missing)
    assert devices.resolve_device("cpu") == CPU


@pytest.mark.parametrize("name", ["gpu", "cuda:-1", "cuda:", "CPU", ""])
def test_a_device_of_another_form_is_refused(name):
    with pytest.raises(DeviceError, match="must be auto, cpu, cuda or cuda:N"):
        devices.resolve_device(name)


def test_threads_are_set_and_shared_among_ranks(monkeypatch):
    assert devices.resolve_threads(1) == torch.get_num_threads() == 1
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert devices.resolve_threads(0) == processor.usable_cores()
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(processor.usable_cores()))
    assert devices.resolve_threads(0) == 1


def test_the_description_is_json():
    described = devices.describe_machine()
    assert json.loads(json.dumps(described)) == described
    assert described["torch"] == torch.__version__


def test_same_bytes_are_required_until_the_end_of_a_training(monkeypatch):
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", "")
    memory = torch.utils.deterministic
    assert not torch.are_deterministic_algorithms_enabled() and memory.fill_uninitialized_memory
    with pytest.raises(KeyError), devices.same_bytes(torch.device("cuda"), True):
        assert torch.are_deterministic_algorithms_enabled()
        assert not memory.fill_uninitialized_memory
        raise KeyError
    assert not torch.are_deterministic_algorithms_enabled() and memory.fill_uninitialized_memory
    with devices.same_bytes(CPU, True):
        assert not torch.are_deterministic_algorithms_enabled()
