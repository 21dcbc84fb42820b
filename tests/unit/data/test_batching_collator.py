import torch

from heedful.data.batching import Collator, pad


def test_the_decoder_reads_the_target_moved_right_by_one():
    batch = Collator(padding=0, start_token=2, end_token=3).batch([[5, 6], [7]], [[8], [9, 10]])
    assert batch.source.tolist() == [[5, 6, 3], [7, 3, 0]]
    assert batch.target_in.tolist() == [[2, 8, 0], [2, 9, 10]]
    assert batch.target_out.tolist() == [[8, 3, 0], [9, 10, 3]]
    assert (batch.source_tokens, batch.target_tokens) == (5, 5)
    assert batch.source_lengths.tokens.tolist() == [3, 2]
    assert batch.target_lengths.tokens.tolist() == [2, 3]
    assert batch.target_lengths.places.tolist() == [3, 3]


def test_the_source_may_go_without_an_end_symbol():
    collator = Collator(padding=0, start_token=2, end_token=3, source_end=False)
    batch = collator.batch([[5, 6], [7]], [[8], [9]])
    assert batch.source.tolist() == [[5, 6], [7, 0]]
    assert batch.source_tokens == 3


def test_a_batch_on_the_processor_is_not_copied():
    batch = Collator(0, 2, 3).batch([[5]], [[6]])
    assert batch.to(torch.device("cpu")) is batch


def test_nothing_padded_is_one_column_wide():
    assert pad([[], []], 7).tolist() == [[7], [7]]
