"""The options of training as keywords of `heedful.train`; as flags: tests/cli/test_options.py."""

import inspect
from dataclasses import fields

import pytest

import heedful
from heedful.arguments import with_fields_of
from heedful.errors import ArgumentError
from heedful.tasks.registry import text_options
from heedful.training.options import TrainingOptions

OPTIONS = {
    option.name: option
    for kind in (TrainingOptions, *text_options())
    for option in fields(kind)
    if option.name != "out"  # needed in Python
}


def test_each_field_is_a_keyword_with_its_default_and_type():
    shown = dict(inspect.signature(heedful.train).parameters)
    assert shown.pop("out").default is inspect.Parameter.empty
    assert set(shown) == {"recipe", "quiet", "callbacks", *OPTIONS}
    for name, option in OPTIONS.items():
        assert (shown[name].default, shown[name].annotation) == (option.default, option.type)


@pytest.mark.parametrize("name", [*OPTIONS, "out", "recipe"])
def test_each_field_is_explained_in_the_docstring(name):
    _, entry = inspect.getdoc(heedful.train).split(f"\n{name} : ")
    assert entry.splitlines()[1].startswith("    ")


def test_the_search_options_are_explained_where_sentences_are_translated():
    assert "\nbeam : a whole number, optional\n    Open" in heedful.Translator.translate.__doc__


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"nope": 1}, TypeError, r"train\(\) got an unexpected keyword argument 'nope'"),
        ({"resume": 1}, ArgumentError, "`resume` of train must be True or False, but got 1"),
        ({"reset": "all"}, ArgumentError, "`reset` of train must be a list of strings"),
        ({"source": 5}, ArgumentError, "but got 5; write the sentences to a file"),
        ({"out": None}, ArgumentError, "`out` of train must be a string or a path"),
        ({"out": "a\0"}, ArgumentError, "contains a NUL"),
    ],
)
def test_a_keyword_that_makes_no_sense_is_refused(keywords, error, message):
    with pytest.raises(error, match=message):
        heedful.train("tiny", **{"out": "run", **keywords})


def test_a_function_without_docstring_has_the_signature_alone():
    @with_fields_of(TrainingOptions)
    def function(**options):
        return options

    assert list(inspect.signature(function).parameters) == [f.name for f in fields(TrainingOptions)]
    assert function.__doc__ is None
