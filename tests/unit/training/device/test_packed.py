from types import SimpleNamespace

import jaxtyping
import numpy as np
import pytest

from heedful.config.load import load_config
from heedful.data.batching import Collator
from heedful.data.encoded.dataset import FlatIds
from heedful.training.batches import TrainingPairs
from heedful.training.device.packed import Room, pack

PAD, START, END = 0, 2, 3


def flat(*sentences):
    return FlatIds(
        np.concatenate([np.array(ids, np.uint16) for ids in sentences]),
        np.array([*map(len, sentences)], np.int32),
    )


def test_sentences_lie_one_after_the_other_and_filling_counts_nothing():
    room = Room(12, 10, 6, 4)
    batch = pack(flat([5, 6, 7], [8]), flat([9], [10, 11]), Collator(PAD, START, END), room)
    assert batch.source.tolist() == [5, 6, 7, END, 8, END, 0, 0, 0, 0, 0, 0]
    assert batch.target_in.tolist() == [START, 9, START, 10, 11, 0, 0, 0, 0, 0]
    assert batch.target_out.tolist() == [9, END, 10, 11, END, 0, 0, 0, 0, 0]
    assert batch.counts.tolist() == [True] * 5 + [False] * 5
    # six and five places are left, of at most four tokens each
    assert batch.source_starts.tolist() == [0, 4, 6, 9, 12, 12, 12]
    assert batch.target_starts.tolist() == [0, 2, 5, 8, 10, 10, 10]
    assert batch.source_places.tolist() == [0, 1, 2, 3, 0, 1, 0, 1, 2, 0, 1, 2]
    assert batch.target_places.tolist() == [0, 1, 0, 1, 2, 0, 1, 2, 0, 1]
    assert batch.source_lengths.tokens.tolist() == [4, 2]
    assert batch.target_lengths.tokens.tolist() == [2, 3]


def test_a_source_may_have_no_end_symbol():
    collator = Collator(PAD, START, END, source_end=False)
    batch = pack(flat([5, 6], [7]), flat([8], [9]), collator, Room(4, 5, 3, 4))
    assert batch.source.tolist() == [5, 6, 7, 0]
    assert batch.source_starts.tolist() == [0, 2, 3, 4]


@pytest.mark.parametrize("seed", range(20))
def test_any_batch_fits_into_the_room_of_its_epoch(seed):
    generator = np.random.default_rng(seed)
    pairs = int(generator.integers(1, 60))
    sides = [
        [generator.integers(4, 20, generator.integers(1, 12)) for _ in range(pairs)]
        for _ in range(2)
    ]
    lengths = [np.array([len(ids) + 1 for ids in side]) for side in sides]
    order = generator.permutation(pairs)
    batches = np.array_split(order, int(generator.integers(1, min(5, pairs) + 1)))
    room = Room.of_batches(batches, *lengths, most=1 << 20)
    for rows in batches:
        source, target = (flat(*[side[row] for row in rows]) for side in sides)
        batch = pack(source, target, Collator(PAD, START, END), room)
        for starts, size in (
            (batch.source_starts, room.source),
            (batch.target_starts, room.target),
        ):
            assert starts[-1] == size
            assert np.diff(starts).min() >= 0
            assert np.diff(starts).max() <= room.longest
        assert batch.counts.sum() == lengths[1][rows].sum()


def test_rooms_are_compared_and_joined():
    small, wide = Room(128, 256, 128, 8), Room(256, 128, 128, 16)
    assert not small.holds(wide)
    assert small.joined(wide) == Room(256, 256, 128, 16)
    assert small.joined(wide).holds(small)


def test_a_joined_room_has_sentences_to_fill_it_with():
    """Few pairs in a room for many short ones leave all of its tokens to the filling."""
    many, few = Room(1024, 1024, 128 + 8, 128), Room(128, 128, 200 + 1, 128)
    both = many.joined(few)
    assert both.rows == 200 + 8
    assert not Room(1024, 1024, 201, 128).holds(few)
    assert both.holds(few)
    pairs = [flat(*[[5]] * 200) for _ in range(2)]
    batch = pack(*pairs, Collator(PAD, START, END, source_end=False), both)
    assert batch.source_starts[-1] == both.source


def test_the_longest_sentence_hardly_changes_the_room_of_a_large_micro_batch():
    """So a lower `data.max_length` saves little memory, but a smaller micro-batch does."""
    jaxtyping.config.update("jaxtyping_disable", True)  # the pairs are only their lengths

    def tokens(micro_batch_tokens, longest):
        lengths = np.random.default_rng(0).integers(5, 40, 2000)
        lengths[7] = longest
        pairs = TrainingPairs(
            SimpleNamespace(source_lengths=lengths, target_lengths=lengths),
            SimpleNamespace(config=load_config("tiny", ["train.batch_tokens=20000"])),
            SimpleNamespace(micro_batch_tokens=micro_batch_tokens, device="cuda"),
            Collator(PAD, START, END),
            without_padding=True,
        )
        return pairs.room(pairs.epoch(0)).target

    assert tokens(10_000, 400) < 1.05 * tokens(10_000, 40)
    assert tokens(5_000, 400) < 0.55 * tokens(10_000, 400)
    assert tokens(400, 400) > 1.5 * tokens(400, 40)
