"""The table of what became of each test of an earlier commit."""

from tools import test_fates as fates

BEFORE = {
    "tests/unit/test_first.py": "def test_a(): assert 1\ndef test_b(): assert 2\ndef aid(): 0",
    "tests/unit/test_second.py": "def test_c(): assert 3\ndef test_d(): pass",
}
NOW = {
    "tests/unit/test_first.py": "def test_a(): assert 1\ndef test_bee(): assert 2",
    "tests/unit/x/test_third.py": "def test_c(): assert near()",
    "tests/unit/y/test_third.py": "def test_c(): assert 3",
}
BY_HAND = """
[renamed]
"tests/unit/test_first.py::test_b" = "tests/unit/test_first.py::test_bee"
[deleted]
"tests/unit/test_second.py::test_d" = "It tested nothing."
"""


def find(by_hand, now=None):
    """Find fates, and what is wrong with them."""
    before, after = fates.tests_of(BEFORE.items()), fates.tests_of((now or NOW).items())
    chosen = fates.read_fates(by_hand)
    result = fates.find_fates(before, after, chosen)
    return result, list(fates.check(before, after, chosen, result))


def test_every_test_has_a_fate_and_the_likest_place():
    result, problems = find(BY_HAND)
    assert not problems
    assert [line.rstrip("\n").split("\t") for line in fates.rows(result)][1:] == [
        ["tests/unit/test_first.py::test_a", "kept", ""],
        ["tests/unit/test_first.py::test_b", "renamed", "tests/unit/test_first.py::test_bee"],
        ["tests/unit/test_second.py::test_c", "moved", "tests/unit/y/test_third.py"],
        ["tests/unit/test_second.py::test_d", "deleted", "It tested nothing."],
    ]


def test_what_is_written_by_hand_goes_first_and_may_name_several():
    both = '["tests/unit/x/test_third.py::test_c", "tests/unit/y/test_third.py::test_c"]'
    result, problems = find(f'[merged]\n"tests/unit/test_second.py::test_c" = {both}\n{BY_HAND}')
    assert not problems
    assert result[2].fate == "merged" and len(result[2].places) == 2


def test_a_test_without_a_fate_is_named():
    _, problems = find("")
    (problem,) = problems
    assert "tests/unit/test_first.py::test_b, tests/unit/test_second.py::test_d." in problem


def test_a_name_that_no_test_has_is_refused():
    now = {**NOW, "tests/unit/test_first.py": "def test_a(): assert 1"}
    _, problems = find(f'{BY_HAND}"tests/unit/test_second.py::test_e" = "Why"', now)
    of_before, of_now = problems
    assert of_before.endswith("has none of these: tests/unit/test_second.py::test_e.")
    assert of_now.endswith("but these do not: tests/unit/test_first.py::test_bee.")


def test_only_files_of_tests_are_read():
    names = dict(fates.files_here())
    assert "tests/structure/test_fates.py" in names
    assert not {"tests/conftest.py", "tests/support/commands.py"} & names.keys()
