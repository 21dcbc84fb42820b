import pytest

from heedful.kernels.fusion import fuse_kernels, is_fused


def test_kernels_are_fused_within_the_context_alone():
    assert not is_fused()
    with fuse_kernels():
        with fuse_kernels():
            assert is_fused()
        assert is_fused()
    assert not is_fused()


def test_an_error_ends_it():
    @fuse_kernels()
    def fail():
        assert is_fused()
        raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert not is_fused()
