import pytest

from heedful.data.encoded.whole_folder import whole_folder
from heedful.errors import RunFolderError, StorageError


def test_a_folder_is_there_as_a_whole_or_not_at_all(tmp_path):
    folder = tmp_path / "data"
    with pytest.raises(KeyboardInterrupt), whole_folder(folder, "mark") as partial:
        (partial / "mark").touch()
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
    for text in ("first", "second"):  # one that was ours is replaced
        with whole_folder(folder, "mark") as partial:
            (partial / "mark").write_text(text)
        assert (folder / "mark").read_text() == text
        assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.parametrize(
    ("below", "error", "told"),
    [
        ("data", RunFolderError, "other content"),
        ("data/letter/deep", StorageError, "cannot write"),
    ],
)
def test_a_folder_of_somebody_else_is_left_alone(tmp_path, below, error, told):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "letter").touch()
    with pytest.raises(error, match=told), whole_folder(tmp_path / below, "mark"):
        raise AssertionError("nothing may be written")
    assert [path.name for path in tmp_path.rglob("*")] == ["data", "letter"]
