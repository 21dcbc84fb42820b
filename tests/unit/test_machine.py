import json
import resource
import subprocess
import sys

import pytest
import torch

from heedful.errors import DeviceError
from heedful.machine import devices, memory, processor, rates

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "heedful" / "machine.json"


def test_the_precision_that_is_clearly_faster_is_taken():
    found = rates.product_rates(CPU)
    expected = "bf16" if found["bf16"] >= 1.3 * found["fp32"] else "fp32"
    assert rates.resolve_precision("auto", CPU) == expected
    assert rates.resolve_precision("fp32", CPU) == "fp32"
    assert rates.resolve_precision("bf16", CPU) == "bf16"


def test_the_machine_is_measured_once(own_cache):
    first = rates.product_rates(CPU)
    (key,) = json.loads(own_cache.read_text())
    assert torch.__version__ in key
    own_cache.write_text(json.dumps({key: {"fp32": 1.0, "bf16": 1.2}}))
    assert rates.product_rates(CPU) == {"fp32": 1.0, "bf16": 1.2} != first
    assert rates.resolve_precision("auto", CPU) == "fp32"  # 1.2 times is not clearly faster


@pytest.mark.parametrize(
    "content",
    [
        *("", "[]", "\xff", "[" * 100_000, '{"KEY": 1}', '{"KEY": {"fp32": 1.0}}'),
        *('{"KEY": {"fp32": "9", "bf16": "9"}}', '{"KEY": {"fp32": 1.0, "bf16": NaN}}'),
        *('{"KEY": {"fp32": Infinity, "bf16": 1.0}}', '{"KEY": {"fp32": 1.0, "bf16": -1.0}}'),
    ],
)
def test_a_broken_cache_counts_as_none(own_cache, content):
    own_cache.parent.mkdir()
    content = content.replace("KEY", "processor | 2 threads | 2.11")
    own_cache.write_text(content, encoding="latin-1")
    assert rates.remembered_rates("processor", 2, "2.11") is None


def test_measurements_that_others_could_have_written_are_not_believed(own_cache):
    found = {"fp32": 1.0, "bf16": 1.2}
    own_cache.parent.mkdir()
    own_cache.write_text(json.dumps({"processor | 2 threads | 2.11": found, "odd": 1}))
    assert rates.remembered_rates("processor", 2, "2.11") == found
    own_cache.chmod(0o666)
    assert rates.remembered_rates("processor", 2, "2.11") is None


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert rates.product_rates(CPU)["fp32"] > 0


def test_a_device_that_is_not_there_is_refused():
    missing = f"cuda:{torch.cuda.device_count() + 7}"
    with pytest.raises(DeviceError, match=rf"{missing} must be there.*--device cpu or auto"):
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


def test_more_memory_than_there_is_cannot_be_promised():
    free = memory.free_memory()
    assert free is not None
    assert free > 0
    before = resource.getrlimit(resource.RLIMIT_AS)
    with memory.bounded_memory(), pytest.raises(RuntimeError, match="memory"):
        torch.empty(free + (4 << 30), dtype=torch.uint8)
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def test_a_bound_that_is_there_already_is_kept():
    before = resource.getrlimit(resource.RLIMIT_AS)
    tight = 64 << 30
    try:
        resource.setrlimit(resource.RLIMIT_AS, (tight, before[1]))
        with memory.bounded_memory():
            assert resource.getrlimit(resource.RLIMIT_AS)[0] <= tight
        assert resource.getrlimit(resource.RLIMIT_AS)[0] == tight
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def test_an_earlier_measurement_is_found_without_measuring(own_cache):
    processor = str(devices.describe_machine()["processor"])
    here = (processor, torch.get_num_threads(), torch.__version__)
    assert rates.remembered_rates(*here) is None
    assert not own_cache.exists()
    assert rates.product_rates(CPU) == rates.remembered_rates(*here)
    assert rates.remembered_rates(processor, torch.get_num_threads() + 1, here[2]) is None


def test_freed_memory_is_used_again_instead_of_asked_for():
    program = """
import resource, torch
from heedful.machine.memory import keep_freed_memory
def new_pages():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(4):
        torch.zeros(16 << 20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
kept = keep_freed_memory()
for _ in range(6):
    new_pages()
print(kept, new_pages())
"""
    out = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    kept, pages = out.stdout.split()
    assert kept == "False" or int(pages) < 4096  # one of the four would be 16,384 small pages


def test_memory_of_a_process_is_its_own():
    size = 200 << 20
    held = bytearray(size)
    held[::4096] = b"x" * len(held[::4096])
    assert memory.peak_memory() >= size
    program = "from heedful.machine.memory import peak_memory; print(peak_memory())"
    out = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert 1 << 20 < int(out.stdout) < size


def test_freed_memory_is_given_back():
    program = """
from pathlib import Path
import torch
from heedful.machine.memory import give_memory_back, keep_freed_memory
def held():
    return int(Path("/proc/self/status").read_text("ascii").split("VmRSS:")[1].split()[0]) * 1024
kept = keep_freed_memory()
torch.ones(16 << 20)
before = held()
give_memory_back()
print(kept, before - held())
"""
    out = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    kept, returned = out.stdout.split()
    assert kept == "False" or int(returned) > 32 << 20  # most of the 64 MiB
