import pytest

from heedful.text.reading.held import cut_line
from heedful.text.reading.model_line import model_line
from tests.support.vocabularies import small_vocabulary


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("the dog 👍 sleeps.", "the dog sleeps."),
        ("the dog 👍.", "the dog."),
        ("the dog→boy", "the dog boy"),
        ("the <b>big</b> dog", "the big dog"),
        ("👍 the dog 👍", "the dog"),
        ("the dog 👍 {{x}} sleeps", "the dog sleeps"),
        ("👍", ""),
    ],
)
def test_a_model_sees_a_line_as_if_nothing_had_been_there(line, seen):
    read = model_line(cut_line(line, None, small_vocabulary()))
    assert read.text == seen


def test_places_of_the_line_are_known():
    line = "the 👍 dog {{x}} sleeps"
    read = model_line(cut_line(line, None, small_vocabulary()))
    assert read.text == "the dog sleeps"
    assert [line[read.origin(place)] for place in (0, 4, 8)] == ["t", "d", "s"]
    assert [line[slice(*gap.line)] for gap in read.gaps] == ["👍", "{{x}}"]
    assert [gap.seen for gap in read.gaps] == [(3, 3), (7, 7)]
