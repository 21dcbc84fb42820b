import pytest

import heedful
from heedful.errors import ArgumentError
from heedful.tasks.parsing.options import TreeOptions
from heedful.tasks.parsing.task import TASK


def test_the_options_are_those_of_the_task():
    assert TASK.text_options is TreeOptions


@pytest.mark.parametrize("name", ["trees", "valid_trees"])
def test_what_is_no_file_of_trees_is_refused(name):
    with pytest.raises(ArgumentError, match=f"`{name}` of train must be a string or a path or"):
        heedful.train("tiny", out="run", **{name: [5]})
