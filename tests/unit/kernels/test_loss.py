import pytest
import torch

from heedful.kernels.loss import plain_subtracted_softmax, subtracted_softmax


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("classes", [1, 7, 64, 8001])
@pytest.mark.parametrize("in_place", [False, True])
def test_compiled_functions_and_torch_subtract_alike(dtype, classes, in_place):
    torch.manual_seed(2)
    scores = (20 * torch.randn(9, classes)).to(dtype)
    scores[3] = -300.0
    targets = torch.randint(classes, (9,))
    exact = scores.double()
    expected = exact.softmax(1)
    expected[torch.arange(9), targets] -= 0.9
    tolerance = 1e-6 if dtype == torch.float32 else 4e-3
    for function in (subtracted_softmax, plain_subtracted_softmax):
        given = scores.clone()
        out = given if in_place else torch.full_like(given, 7.0)
        right, log_z = function(given, targets, 0.9, out)
        torch.testing.assert_close(out.double(), expected, rtol=tolerance, atol=tolerance)
        chosen = exact.gather(1, targets.unsqueeze(1)).squeeze(1)
        torch.testing.assert_close(right.double(), chosen, rtol=0, atol=0)
        at_most = 1e-6 if function is subtracted_softmax else tolerance
        torch.testing.assert_close(log_z.double(), exact.logsumexp(1), rtol=at_most, atol=at_most)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_row_does_not_depend_on_threads_or_rows_beside_it(dtype):
    torch.manual_seed(3)
    scores, targets = torch.randn(11, 500).to(dtype), torch.randint(500, (11,))
    whole = torch.empty_like(scores)
    torch.set_num_threads(3)
    _, log_z = subtracted_softmax(scores, targets, 0.9, whole)
    torch.set_num_threads(1)
    for row in range(len(scores)):
        alone = torch.empty(1, 500, dtype=dtype)
        part = slice(row, row + 1)
        _, normalizer = subtracted_softmax(scores[part], targets[part], 0.9, alone)
        assert torch.equal(alone, whole[part])
        assert torch.equal(normalizer, log_z[part])


def test_what_is_not_a_number_stays_so():
    scores = torch.zeros(2, 5)
    scores[0, 2], scores[1, 1] = float("nan"), float("inf")
    _, log_z = subtracted_softmax(scores, torch.tensor([1, 1]), 0.9, scores)
    assert log_z.isnan().all()


def test_targets_may_have_any_type_of_whole_numbers():
    scores, targets = torch.randn(40, 9), torch.randint(9, (40,))
    found = [torch.empty_like(scores) for _ in range(2)]
    for out, kind in zip(found, (torch.int64, torch.int32), strict=True):
        subtracted_softmax(scores, targets.to(kind), 0.9, out)
    assert torch.equal(*found)


def test_an_output_of_another_type_is_refused():
    scores = torch.randn(4, 9)
    with pytest.raises(RuntimeError):
        subtracted_softmax(scores, torch.zeros(4).long(), 0.9, scores.bfloat16())
