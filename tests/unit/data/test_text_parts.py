import pytest

from heedful.data.text_parts import side_files, split, write_lines
from heedful.errors import TextError

PAIRS = [(f"s{number}", f"t{number}") for number in range(9)]


def test_a_larger_training_text_changes_no_held_out_pair():
    parts = split(iter(PAIRS), (3, 2, 1))
    assert list(parts) == ["train", "valid", "test"]
    assert parts == {"train": PAIRS[3:6], "valid": PAIRS[1:3], "test": PAIRS[:1]}
    more = split(iter(PAIRS), (6, 2, 1))
    assert more == {**parts, "train": PAIRS[3:9]}


def test_files_have_the_lines_of_their_side():
    files = side_files({"train": PAIRS[:2], "test": PAIRS[2:3]}, ("a", "b"))
    assert files == {
        "train.a": ["s0", "s1"],
        "train.b": ["t0", "t1"],
        "test.a": ["s2"],
        "test.b": ["t2"],
    }


def test_the_same_text_is_written_again_and_another_is_left(tmp_path):
    folder, files = tmp_path / "new" / "folder", {"train.a": ["é", ""], "train.b": ["x", "y"]}
    for _ in range(2):
        write_lines(folder, files, "the test")
    assert (folder / "train.a").read_bytes() == "é\n\n".encode()
    (folder / "train.b").write_text("mine\n")
    (folder / "train.a").unlink()
    with pytest.raises(TextError, match=r"train\.b must be a new file or"):
        write_lines(folder, files, "the test")
    assert not (folder / "train.a").exists()  # nothing is written where one may not be
