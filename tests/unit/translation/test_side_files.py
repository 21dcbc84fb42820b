"""Side files, read in step with the input."""

import pytest

from heedful.errors import TextError
from heedful.translation.side_files import zip_side_files
from heedful.translation.translate import windows


@pytest.fixture
def files(tmp_path):
    (tmp_path / "p").write_text("le chien\n\nun\n")
    (tmp_path / "c").write_text("chat\tchien rouge\n\ngrand\n")
    return {"target_prefix": tmp_path / "p", "force_phrases": tmp_path / "c"}


def test_each_line_comes_with_what_is_said_about_it(files):
    (found,) = windows(zip_side_files(["a", "b", "c"], "stdin", files))
    assert [line for line, _ in found] == ["a", "b", "c"]
    assert [entries["target_prefix"] for _, entries in found] == ["le chien", "", "un"]
    phrases = [entries["force_phrases"] for _, entries in found]
    assert phrases == [["chat", "chien rouge"], [""], ["grand"]]
    assert list(zip_side_files(["a"], "stdin", {})) == [("a", {})]


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["a", "b"], "has 3 and stdin has 2"),
        ([], "has 3 and stdin has 0"),
        (["a", "b", "c", "d"], "has 3 and stdin has more"),
    ],
)
def test_unequal_numbers_of_lines_are_an_error_that_names_both(files, lines, told):
    found = []
    with pytest.raises(TextError, match=told) as caught:
        found.extend(zip_side_files(lines, "stdin", files))
    assert str(files["target_prefix"]) in str(caught.value)


def test_lines_before_the_difference_are_handed_out_and_an_endless_input_is_not_counted(files):
    def endless():
        while True:
            yield "x"

    reader = zip_side_files(endless(), "stdin", files)
    assert [next(reader)[0] for _ in range(3)] == ["x"] * 3
    with pytest.raises(TextError, match="has 3 and stdin has more"):
        next(reader)
