import json

import pytest
import torch

from heedful.kernels import product_rates
from heedful.machine import devices

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch, small_products):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "heedful" / "products.json"


def test_the_precision_that_is_clearly_faster_is_taken():
    found = product_rates.product_rates(CPU)
    expected = "bf16" if found["bf16"] >= 1.3 * found["fp32"] else "fp32"
    assert product_rates.resolve_precision("auto", CPU) == expected
    assert product_rates.resolve_precision("fp32", CPU) == "fp32"
    assert product_rates.resolve_precision("bf16", CPU) == "bf16"


def test_the_machine_is_measured_once(own_cache):
    first = product_rates.product_rates(CPU)
    (key,) = json.loads(own_cache.read_text())
    assert torch.__version__ in key
    own_cache.write_text(json.dumps({key: {"fp32": 1.0, "bf16": 1.2}}))
    assert product_rates.product_rates(CPU) == {"fp32": 1.0, "bf16": 1.2} != first
    assert product_rates.resolve_precision("auto", CPU) == "fp32"  # 1.2 times is not clearly faster


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
    assert product_rates.remembered_rates("processor", 2, "2.11") is None


def test_measurements_that_others_could_have_written_are_not_believed(own_cache):
    found = {"fp32": 1.0, "bf16": 1.2}
    own_cache.parent.mkdir()
    own_cache.write_text(json.dumps({"processor | 2 threads | 2.11": found, "odd": 1}))
    assert product_rates.remembered_rates("processor", 2, "2.11") == found
    own_cache.chmod(0o666)
    assert product_rates.remembered_rates("processor", 2, "2.11") is None


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert product_rates.product_rates(CPU)["fp32"] > 0


def test_an_earlier_measurement_is_found_without_measuring(own_cache):
    processor = str(devices.describe_machine()["processor"])
    here = (processor, torch.get_num_threads(), torch.__version__)
    assert product_rates.remembered_rates(*here) is None
    assert not own_cache.exists()
    assert product_rates.product_rates(CPU) == product_rates.remembered_rates(*here)
    assert product_rates.remembered_rates(processor, torch.get_num_threads() + 1, here[2]) is None
