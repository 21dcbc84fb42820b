"""What computes on a GPU is tried by `make test-gpu`, and fails where there is none."""

import copy

import pytest
import torch


@pytest.fixture(scope="session", autouse=True)
def gpu() -> torch.device:
    """The first GPU, whose products in fp32 are not rounded to TF32."""
    if not torch.cuda.is_available():
        pytest.fail("these tests need a GPU, but torch finds no CUDA device")
    torch.backends.cudnn.allow_tf32 = False
    return torch.device("cuda", 0)


@pytest.fixture
def on_gpu(gpu):
    """Copy a model to the GPU."""
    return lambda model: copy.deepcopy(model).to(gpu)


@pytest.fixture(scope="session")
def text(grammar, tmp_path_factory):
    from tests.support.commands import write_text

    folder = tmp_path_factory.mktemp("text")
    for pairs, name in zip(grammar, ("train", "valid"), strict=True):
        write_text(folder, pairs, name)
    return folder


@pytest.fixture(scope="session", autouse=True)
def _unchecked():
    """Functions of heedful are as users have them, so that Triton and torch can read them."""
    from heedful.model.packed import packed_states

    if hasattr(packed_states, "__wrapped__"):
        pytest.fail("run these tests by `make test-gpu`, without checks of shapes")
