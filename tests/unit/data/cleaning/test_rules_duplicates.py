import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.cleaning.rules import SeenHashes, hash_texts

# Few values, so that most are met again; the largest and the smallest that there are.
values = st.one_of(st.integers(0, 30), st.sampled_from([2**63, 2**64 - 1]))


@given(st.lists(st.lists(values, max_size=12), max_size=12))
def test_it_agrees_with_a_set(batches: list[list[int]]) -> None:
    seen, reference = SeenHashes(), set()
    for batch in batches:
        expected = []
        for value in batch:
            expected.append(value not in reference)
            reference.add(value)
        assert seen.add(np.array(batch, np.uint64)).tolist() == expected
        assert sum(map(len, seen._blocks)) == len(reference)


def test_a_hundred_thousand_hashes_take_their_own_size_and_are_all_found() -> None:
    hashes = hash_texts(str(number) for number in range(100_000))
    seen = SeenHashes()
    for start in range(0, 100_000, 5_000):
        assert seen.add(hashes[start : start + 5_000]).all()
    assert sum(block.nbytes for block in seen._blocks) == 800_000
    assert len(seen._blocks) < 8
    assert not seen.add(hashes[::-1]).any()


def test_hashes_are_the_same_on_every_machine_and_spread_out() -> None:
    # BLAKE2b-64 of the empty text and of “abc”, as `b2sum -l 64` prints them, little-endian.
    known = [bytes.fromhex(code) for code in ("e4a6a0577479b2b4", "d8bb14d833d59559")]
    assert hash_texts(["", "abc"]).tolist() == [int.from_bytes(c, "little") for c in known]
    hashes = hash_texts(str(number) for number in range(4_096))
    for bit in range(64):
        ones = int((hashes >> np.uint64(bit) & np.uint64(1)).sum())
        assert ones == pytest.approx(2_048, abs=200)  # six standard deviations
