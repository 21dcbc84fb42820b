from heedful.data.batching import Collator
from heedful.experiments.timed_training import FixedBatch


def test_one_batch_holds_every_pair_once():
    sources, targets = [[5] * n for n in (3, 9, 1, 6)], [[6] * n for n in (2, 8, 2, 7)]
    collator = Collator(0, 2, 3)
    whole = FixedBatch(sources, targets, collator, None)
    (batch,) = whole.epoch(0)
    assert batch.tolist() == [2, 0, 3, 1]
    assert whole.collate(whole.largest()).source_tokens == 19 + 4
    parts = FixedBatch(sources, targets, collator, 20)
    (cut,) = parts.cut(parts.epoch(3)[0], 1)
    assert [part.tolist() for part in cut] == [[2, 0], [3, 1]]
