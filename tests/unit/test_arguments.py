from collections.abc import Callable, Sequence
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Literal

import pytest

from heedful.arguments import check_argument, check_counts, checked, read_pairs, read_texts
from heedful.errors import ArgumentError, SettingError, TextError


@checked
def translate(
    texts: Sequence[str],
    beam: int = 4,
    penalty: float | None = None,
    how: Literal["fast", "well"] = "well",
    out: str | Path = "",
    warn: Callable[[str], None] | None = None,
) -> str:
    return f"{len(texts)} {beam} {penalty} {how} {out} {warn is None}"


def test_arguments_of_the_annotated_types_pass():
    found = translate(["a", "b"], 2, penalty=1, how="fast", out=Path("x"), warn=print)
    assert found == "2 2 1 fast x False"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"texts": "a dog"}, "`texts` of translate must be a list of strings, but got 'a dog'."),
        ({"texts": ["a", 3]}, "`texts` of translate must be a list of strings, but its entry 1 is"),
        ({"beam": True}, "`beam` of translate must be a whole number, but got True."),
        ({"penalty": "1"}, "`penalty` of translate must be a number or None, but got '1'."),
        ({"how": "badly"}, "`how` of translate must be 'fast' or 'well', but got 'badly'."),
        (
            {"out": "a\0b"},
            "`out` of translate must be a path, but 'a\\x00b' contains a NUL character.",
        ),
        ({"warn": 1}, "`warn` of translate must be a function or None, but got 1."),
    ],
)
def test_another_type_is_refused_with_its_name(arguments, told):
    with pytest.raises(ArgumentError) as refusal:
        translate(**{"texts": [], **arguments})
    assert str(refusal.value).startswith(told)


@checked
def open_run(path: str | PathLike[str]) -> str:
    return str(path)


class Folder(PathLike):
    def __fspath__(self):
        return "runs/en-fr"


def test_a_path_is_whatever_python_opens():
    assert open_run(Path("x")) == open_run("x") == "x"
    assert open_run(Folder())
    with pytest.raises(ArgumentError, match="must be a string or a path, but got 5"):
        open_run(5)
    with pytest.raises(ArgumentError, match="contains a NUL"):
        open_run("a\0b")


def test_what_is_missing_or_unknown_is_said_by_python():
    with pytest.raises(TypeError, match="unexpected keyword argument 'beams'"):
        translate([], beams=3)
    with pytest.raises(TypeError, match="missing 1 required"):
        translate()


def test_texts_are_one_string_or_several():
    assert read_texts("sources", "a dog") == ["a dog"]
    assert read_texts("sources", (line for line in ("a", "b"))) == ["a", "b"]
    with pytest.raises(ArgumentError, match=r"`sources` must be .* but its entry 1 is None"):
        read_texts("sources", ["a", None])
    with pytest.raises(TextError, match="entry 0 has an unpaired surrogate at position 2"):
        read_texts("sources", "a \ud83d")


def test_pairs_have_two_sides_of_one_length():
    assert read_pairs("a", "b") == (["a"], ["b"])
    with pytest.raises(ArgumentError, match="both be strings or both be lists"):
        read_pairs("a", ["b"])
    with pytest.raises(TextError, match="2 sources and 1 targets"):
        read_pairs(["a", "b"], ["c"])


def test_counts_begin_with_one():
    check_counts(beam=1, processes=None)
    with pytest.raises(SettingError, match="`beam` must be at least 1, but is 0"):
        check_counts(processes=2, beam=0)


@pytest.mark.parametrize("annotation", [int, float, int | None, int | str])
def test_a_number_beyond_64_bits_is_refused_without_its_digits(annotation):
    with pytest.raises(ArgumentError, match=r"`x` of f must be a number below .* 16,610 bits"):
        check_argument("f", "x", 10**5000, annotation)
    check_argument("f", "x", -(2**64) + 1, annotation)


def test_a_fraction_is_no_number_for_torch():
    with pytest.raises(ArgumentError, match=r"must be a number, but got Fraction\(1, 5\)"):
        check_argument("f", "x", Fraction(1, 5), float)
