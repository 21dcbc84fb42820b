"""Token cutoff: whole embeddings of ordinary tokens become zeros, and only within the block."""

import pytest
import torch

from heedful.model.packed import packed_states
from heedful.training.objective.cut import cut_embeddings
from tests.support.models import FAMILIES, batch, small
from tests.unit.model.test_packed import packed


@pytest.mark.parametrize("ties", ["all", "none"])
def test_whole_rows_are_zero_about_as_often_as_asked(ties):
    model = small(tie_embeddings=ties, positions="none")
    ids = torch.randint(4, 20, (200, 50))
    ids[:, 0], ids[:, -1] = model.start_token, model.end_token
    for table in (model.embed_source, model.embed_target):
        torch.manual_seed(1)
        with cut_embeddings(model, 0.05):
            found = table(ids)
        zeros = found.eq(0).all(dim=2)
        assert float(zeros.float().mean()) == pytest.approx(0.05, abs=0.005)
        assert not zeros[:, 0].any() and not zeros[:, -1].any()
        assert torch.equal(found[~zeros], table(ids)[~zeros])
    assert not model.embed_source._forward_hooks and not model.embed_target._forward_hooks


def test_it_ends_with_an_error_in_the_block():
    model = small()
    with pytest.raises(KeyError), cut_embeddings(model, 0.5):
        raise KeyError
    assert not model.embed_source._forward_hooks


def test_it_is_a_function_of_the_seed():
    model = small()
    source, target = batch()
    found = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        with cut_embeddings(model, 0.5), torch.no_grad():
            found.append(model.states(source, target))
    assert torch.equal(found[0], found[1]) and not torch.equal(found[0], found[2])


@pytest.mark.parametrize("family", FAMILIES)
def test_encoder_and_decoder_of_each_family_read_the_zeros(family):
    model = small(**FAMILIES[family])
    source, target = batch()
    read = {}
    for name, side in (("source", source), ("target", target)):
        ids = source, target
        with torch.no_grad():
            before = model.states(*ids)
            # with all tokens cut, another word in a place changes nothing
            other = side.clone()
            other[(side > 3)] = 4 + (side[side > 3] + 1) % 16
            changed = (other, target) if name == "source" else (source, other)
            assert not torch.allclose(model.states(*changed), before)
            with cut_embeddings(model, 1.0):
                read[name] = [model.states(*pair) for pair in (ids, changed)]
    for one, two in read.values():
        torch.testing.assert_close(one, two)


def test_the_packed_path_reads_the_same_zeros():
    model = small(d_model=16, heads=2)
    source, target = batch()
    target[1, 3:] = 0
    (source_side, _), (target_side, real) = packed(source), packed(target)
    with torch.no_grad(), cut_embeddings(model, 1.0):
        expected = model.states(source, target)[real]
        found = packed_states(model, source_side, target_side)[0]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
