"""The explorer’s document: small, true to its weights, and refused where it cannot be right."""

import base64
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.visualise.record import FORMAT, ExplorerRecord, ModelRecord, Node, Phrase, Step
from tests.support import records


def unpacked(model, kind):
    packed = model.document()[kind]
    codes = np.frombuffer(base64.b64decode(packed["weights"]), np.uint8)
    return (codes / 255) ** 2


def with_weights(**kinds):
    return ModelRecord("m", ("a", "b"), ("c", "d", "e"), "<s>", **kinds)


def test_the_document_is_json_and_says_its_format():
    document = json.loads(records.record().to_json())
    assert document["format"] == FORMAT == 1
    assert document["title"] == "The dog that chased the cat was very tired."
    assert document["models"][0]["source"] == list(records.SOURCE)
    assert document["models"][0]["beam"][0][0]["parent"] is None
    assert records.record().to_json().isascii()


@given(st.integers(0, 255))
def test_weights_come_back_but_for_a_255th_of_their_root(seed):
    weights = records.weights(2, 3, 3, 2, seed=seed)
    back = unpacked(with_weights(cross=weights), "cross").reshape(weights.shape)
    assert np.all(np.abs(np.sqrt(back) - np.sqrt(weights)) <= 0.5 / 255 + 1e-6)
    assert np.abs(back - weights).max() < 0.004


def test_of_the_decoder_only_the_lower_triangle_is_kept():
    weights = records.weights(2, 3, 3, 3, is_masked=True)
    back = unpacked(with_weights(decoder=weights), "decoder").reshape(2, 3, 6)
    assert np.allclose(back, weights[:, :, *np.tril_indices(3)], atol=0.004)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_weights_of_any_precision_are_taken(dtype):
    weights = np.full((1, 1, 3, 2), 0.5, dtype)
    weights[0, 0, 0] = [1.001, 0]  # as sums of half precision come out
    assert unpacked(with_weights(cross=weights), "cross")[0] == 1


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ({"encoder": np.zeros((1, 1, 3, 3))}, r"encoder must have shape .* 2, 2\)"),
        ({"decoder": np.zeros((1, 1, 2, 2))}, r"decoder must have shape .* 3, 3\)"),
        ({"cross": np.zeros((1, 1, 2, 3))}, r"cross must have shape .* 3, 2\)"),
        ({"cross": np.zeros((3, 2))}, r"has shape \(3, 2\)"),
        ({"cross": np.zeros((0, 1, 3, 2))}, "without dimensions of 0"),
        ({"cross": np.full((1, 1, 3, 2), np.nan)}, "from 0 to 1, but holds nan"),
        ({"cross": np.full((1, 1, 3, 2), -0.1)}, "but holds -0.1"),
        ({"cross": np.full((1, 1, 3, 2), 2.0)}, "to 2"),
        ({"steps": (Step(()),)}, "one step for each of the 3 target tokens, but there are 1"),
        ({"beam": ((Node("a", 0, 0.0, 0.0, "open"),),)}, "step 1 .* must be None, but is 0"),
        (
            {"beam": ((Node("a", None, 0.0, 0.0, "open"),), (Node("b", 1, 0.0, 0.0, "best"),))},
            "step 2 .* must be below 1, but is 1",
        ),
    ],
)
def test_what_cannot_be_right_is_refused(kinds, message):
    with pytest.raises(ValueError, match=message):
        with_weights(**kinds)


@pytest.mark.parametrize("count", [0, 3])
def test_one_or_two_models_are_shown(count):
    with pytest.raises(ValueError, match=f"one or two models, but there are {count}"):
        ExplorerRecord("", (records.model(),) * count)


def test_what_is_absent_is_null():
    document = with_weights().document()
    assert [document[kind] for kind in ("encoder", "decoder", "cross", "score")] == [None] * 4
    assert document["steps"] == document["beam"] == []


def test_numbers_that_json_has_not_are_null():
    node = Node("a", None, -math.inf, math.nan, "dropped")
    document = json.loads(ExplorerRecord("", (with_weights(beam=((node,),)),)).to_json())
    shown = document["models"][0]["beam"][0][0]
    assert (shown["log_probability"], shown["score"]) == (None, None)


def test_phrases_lie_within_the_tokens():
    record = with_weights(phrases=(Phrase(0, 2, 0, 2),))
    assert record.document()["phrases"] == [[0, 2, 0, 2]]
    for wrong in ((0, 3, 0, 2), (1, 1, 0, 2), (0, 2, 0, 3), (0, 2, 1, 1), (-1, 2, 0, 1)):
        with pytest.raises(ValueError, match="a phrase must lie within the tokens"):
            with_weights(phrases=(Phrase(*wrong),))
