import pytest
import safetensors.torch
import torch

from heedful.data.tensor_shapes import check_header, is_empty_and_vast


def test_an_ordinary_file_passes_and_a_header_that_fills_the_memory_does_not(tmp_path):
    file = tmp_path / "model.safetensors"
    safetensors.torch.save_file({f"layer.{k}": torch.zeros(2) for k in range(300)}, file)
    check_header(file)
    file.write_bytes((1 << 40).to_bytes(8, "little") + b"{}")
    with pytest.raises(ValueError, match="its header has 1,099,511,627,776 bytes, more than"):
        check_header(file)


@pytest.mark.parametrize(
    ("shape", "vast"),
    [((), False), ((0,), False), ((0, 1), False), ((3, 4), False), ((0, 1 << 60), True)],
)
def test_no_elements_and_a_vast_axis_are_seen(shape, vast):
    assert is_empty_and_vast(shape) is vast
