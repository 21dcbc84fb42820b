import pytest
import torch

from heedful.errors import ExchangeError
from heedful.families.keymap import (
    SAME,
    Entry,
    KeyMap,
    OneRow,
    RowMap,
    Stacked,
    TensorUse,
    tied_copies,
)

SHAPES = {"norm": (3,), "qkv_proj": (6, 3), "energy": (5,), "table": (4, 3), "bias": (4,)}
ORIGINS = (2, 0, None, 1)
MAP = KeyMap(
    (
        Entry("norm", ("scale",)),
        Entry("qkv_proj", ("q", "k", "v"), Stacked(count=3)),
        Entry("energy", ("kernel",), OneRow()),
        Entry("table", ("embedding",), RowMap(ORIGINS, 3)),
        Entry("bias", ("final",), RowMap(ORIGINS, 3, filling=-9.0, lead=1)),
    ),
    ignored=("positions.*",),
)


def theirs():
    shapes = {"q": (2, 3), "k": (2, 3), "v": (2, 3), "kernel": (1, 5), "scale": (3,)}
    shapes |= {"embedding": (3, 3), "final": (1, 3)}
    return {name: torch.rand(shape) for name, shape in shapes.items()}


def test_tensors_are_stacked_flattened_and_reordered():
    given = theirs()
    ours = MAP.to_ours(given, SHAPES, "a file")
    assert {name: tuple(tensor.shape) for name, tensor in ours.items()} == SHAPES
    assert ours["qkv_proj"][2:4].equal(given["k"])
    assert ours["energy"].equal(given["kernel"][0])
    assert ours["table"][[0, 1, 3]].equal(given["embedding"][[2, 0, 1]])
    assert ours["table"][2].eq(0).all()
    assert ours["bias"].tolist() == [
        *given["final"][0, [2, 0]].tolist(),
        -9.0,
        given["final"][0, 1],
    ]


def test_the_way_back_gives_the_same_tensors():
    given = theirs()
    back = MAP.to_theirs(MAP.to_ours(given, SHAPES, "a file"))
    assert back.keys() == given.keys()
    assert all(back[name].equal(given[name]) for name in given)


def test_tensors_of_computed_tables_may_be_there():
    assert MAP.to_ours({**theirs(), "positions.weight": torch.rand(1)}, SHAPES, "a file")


def test_everything_that_is_wrong_is_told_together():
    given = theirs()
    del given["k"]
    given |= {"other": torch.rand(1), "kernel": torch.rand(5, 3), "embedding": torch.rand(2, 3)}
    with pytest.raises(ExchangeError) as caught:
        MAP.to_ours(given, SHAPES, "model.safetensors")
    message = str(caught.value)
    assert "missing: k; not expected: other; of the wrong shape: kernel is (5, 3)" in message
    assert "embedding is (2, 3) instead of (3, 3)" in message
    assert "\n" not in message


def test_a_tensor_that_two_of_ours_share_is_written_once():
    tied = KeyMap((Entry("source", ("shared",), SAME), Entry("target", ("shared",), SAME)))
    one = torch.rand(2, 2)
    ours = tied.to_ours({"shared": one}, {"source": (2, 2), "target": (2, 2)}, "a file")
    assert ours["source"].data_ptr() != ours["target"].data_ptr()
    assert tied.to_theirs(ours)["shared"].equal(one)


def test_a_map_that_forgets_one_of_ours_is_a_mistake_of_ours():
    with pytest.raises(ValueError, match="widen"):
        MAP.to_ours(theirs(), {**SHAPES, "widen": (1,)}, "a file")


def test_a_tied_tensor_must_be_a_copy():
    tables = {"source": "encoder", "target": "decoder", "output": "head"}
    copies = tied_copies(tables, {"source": (2, 2)})
    assert copies == {"decoder": "encoder", "head": "encoder"}
    assert tied_copies(tables, dict.fromkeys(tables, (2, 2))) == {}
    tied = KeyMap((Entry("source", ("encoder",)),), copies=copies)
    table = torch.rand(2, 2)
    given = {"encoder": table, "decoder": table.clone(), "head": table.half().float()}
    with pytest.raises(ExchangeError, match="head of a file must be equal to encoder"):
        tied.to_ours(given, {"source": (2, 2)}, "a file")
    del given["decoder"]  # a copy need not be stored
    given["head"] = table.clone()
    assert tied.to_ours(given, {"source": (2, 2)}, "a file")["source"].equal(table)
    assert tied.use_of(given) == TensorUse(1, copies=1)


def test_the_use_of_all_tensors_is_counted():
    use = MAP.use_of({**theirs(), "positions.weight": torch.rand(1)})
    assert use == TensorUse(5, ignored=1)
    assert "all 5 tensors of the run are filled" in str(use)
    assert "is used once (without weights: 1)" in str(use)
    tied = KeyMap((Entry("source", ("shared",)), Entry("target", ("shared",))))
    assert "(shared: 1)" in str(tied.use_of(["shared"]))
