import pytest
import torch

from heedful.errors import DeviceError
from heedful.machine import device_memory
from heedful.machine.device_memory import bound_of, peak_of, require_room
from heedful.machine.memory import is_lack_of_memory

CPU = torch.device("cpu")


def test_the_peak_of_a_processor_is_that_of_the_process():
    held = torch.ones(10_000_000)
    assert peak_of(CPU) > held.numel() * 4


def test_an_allocation_beyond_the_machine_is_recognized_as_lack_of_memory():
    with pytest.raises(RuntimeError) as failed, bound_of(CPU):
        torch.empty(1 << 48)
    assert is_lack_of_memory(failed.value)


def test_a_model_larger_than_the_memory_is_refused_before_it_is_built(monkeypatch):
    monkeypatch.setattr(device_memory, "free_memory", lambda: 6_000)
    require_room(700, CPU)
    require_room(1_400, torch.device("cuda"))
    with pytest.raises(DeviceError, match="800 weights and their gradients take"):
        require_room(800, CPU)
    with pytest.raises(DeviceError, match="1,600 weights take"):
        require_room(1_600, torch.device("cuda"))
    monkeypatch.setattr(device_memory, "free_memory", lambda: None)
    require_room(1 << 60, CPU)
