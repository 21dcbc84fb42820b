import pytest
import torch

from heedful.errors import SettingError
from heedful.kernels.native.product import kernels_kind
from heedful.kernels.torch_internals import INTERNALS, internal, kernels_choice

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def read_again():
    for cached in (kernels_choice, internal):
        cached.cache_clear()
    yield
    for cached in (kernels_choice, internal):
        cached.cache_clear()


def test_the_switch_names_the_kernels_of_a_run(monkeypatch):
    monkeypatch.setenv("HEEDFUL_KERNELS", "plain")
    assert kernels_choice() == "plain" and kernels_kind(CPU) == "torch"


@pytest.mark.parametrize("value", [None, "", "fast"])
def test_kernels_are_fast_unless_the_switch_says_otherwise(value, monkeypatch):
    monkeypatch.delenv("HEEDFUL_KERNELS", raising=False)
    if value is not None:
        monkeypatch.setenv("HEEDFUL_KERNELS", value)
    assert kernels_choice() == "fast" and kernels_kind(CPU) != "torch"


def test_an_unknown_value_is_refused(monkeypatch):
    monkeypatch.setenv("HEEDFUL_KERNELS", "slow")
    with pytest.raises(SettingError, match="must be fast or plain, but is 'slow'"):
        kernels_choice()


def test_plain_kernels_use_no_internal_of_torch_but_to_observe(monkeypatch):
    monkeypatch.setenv("HEEDFUL_KERNELS", "plain")
    used = [name for name in INTERNALS if internal(name) is not None]
    assert used == ["torch.utils._python_dispatch.TorchDispatchMode"]
