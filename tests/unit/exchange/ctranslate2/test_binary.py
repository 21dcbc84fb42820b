import struct

import numpy as np
import pytest

from heedful.errors import ExchangeError
from heedful.exchange.ctranslate2.binary import read_model_file
from tests.support.ctranslate2 import model_bin, stored


def read(tmp_path, content):
    (tmp_path / "model.bin").write_bytes(content)
    return read_model_file(tmp_path / "model.bin")


WEIGHT = np.array([[0.5, -1.0, 0.25], [3.0, 2.0, 0.0]], np.float32)


@pytest.mark.parametrize("version", [2, 3, 4, 5, 6])
def test_weights_come_as_they_were_stored(tmp_path, version):
    bias = np.array([1.0, 2.0], np.float32)
    file = read(
        tmp_path, model_bin({"a/weight": stored(WEIGHT), "a/bias": stored(bias)}, (), version)
    )
    assert (file.spec, file.revision, file.version) == ("TransformerSpec", 7, version)
    np.testing.assert_array_equal(file.floats()["a/weight"], WEIGHT)
    np.testing.assert_array_equal(file.floats()["a/bias"], bias)


def test_eight_bits_are_multiplied_by_the_scale_of_their_row(tmp_path):
    scale = 127 / np.abs(WEIGHT).max(axis=1)
    rounded = np.rint(WEIGHT * scale[:, None]).astype(np.int8)
    parts = {"a/weight": stored(rounded), "a/weight_scale": stored(scale.astype(np.float32))}
    file = read(tmp_path, model_bin(parts, [("b/weight", "a/weight")]))
    assert file.floats().keys() == {"a/weight", "b/weight"}
    for name in ("a/weight", "b/weight"):
        np.testing.assert_allclose(file.floats()[name], WEIGHT, atol=3.0 / 127 / 2)


def test_sixteen_bits_have_one_scale_or_the_old_one(tmp_path):
    rounded = stored(np.rint(WEIGHT * 256).astype(np.int16))
    scale = stored(np.array(256, np.float32))
    new = read(tmp_path, model_bin({"a/weight": rounded, "a/weight_scale": scale}))
    np.testing.assert_array_equal(new.floats()["a/weight"], WEIGHT)
    old = read(tmp_path, model_bin({"a/weight": stored(np.int16(WEIGHT * 1000))}, (), 2))
    np.testing.assert_allclose(old.floats()["a/weight"], WEIGHT, atol=1e-7)


def test_short_floats_become_long_ones(tmp_path):
    halves = stored(WEIGHT.astype(np.float16))
    brief = ("bfloat16", WEIGHT.shape, (WEIGHT.view(np.uint32) >> 16).astype(np.uint16).tobytes())
    file = read(tmp_path, model_bin({"a/weight": halves, "b/weight": brief}))
    for name in ("a/weight", "b/weight"):
        np.testing.assert_array_equal(file.floats()[name], WEIGHT)
        assert file.floats()[name].dtype == np.float32


GOOD = model_bin({"a/weight": stored(WEIGHT)}, [("b/weight", "a/weight")])


@pytest.mark.parametrize("length", range(0, len(GOOD), 3))
def test_a_file_that_ends_early_is_refused(tmp_path, length):
    with pytest.raises(ExchangeError, match=r"model\.bin"):
        read(tmp_path, GOOD[:length])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"PK\x03\x04" + bytes(99), "version"),
        (GOOD + b"\0", "but 1 more bytes follow"),
        (model_bin({"a": ("float32", (2**31, 2**31), b"1234")}), " bytes for 'a' of shape"),
        (model_bin({"a": ("float32", (9,) * 9, b"")}), "but 'a' has 9"),
        (model_bin({"a": stored(WEIGHT)}, [("b", "c")]), "new names"),
        (GOOD.replace(b"a/weight\0", b"a/weigh\xff\0", 1), "names"),
        (GOOD[: GOOD.index(b"Tr")] + struct.pack("<I", 0) + b"\xff" * 20, "that end in a zero"),
    ],
)
def test_a_hostile_file_is_refused_in_a_sentence(tmp_path, content, said):
    with pytest.raises(ExchangeError, match=said):
        read(tmp_path, content)


@pytest.mark.parametrize(
    ("scale", "said"),
    [
        (None, "scale for each row of a/weight, but has none"),
        (np.zeros(2, np.float32), "have a nonzero scale for a/weight"),
        (np.ones(5, np.float32), "scale for each row of a/weight, but has 5"),
    ],
)
def test_whole_numbers_without_a_scale_are_refused(tmp_path, scale, said):
    parts = {"a/weight": stored(WEIGHT.astype(np.int8))}
    if scale is not None:
        parts["a/weight_scale"] = stored(scale)
    with pytest.raises(ExchangeError, match=said):
        read(tmp_path, model_bin(parts)).floats()


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ExchangeError, match=r"model\.bin"):
        read_model_file(tmp_path / "model.bin")
