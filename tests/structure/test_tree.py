"""Short files, nothing half done, no trace of one machine."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LONGEST = 500

# The brackets keep the patterns from finding themselves.
HALF_DONE = re.compile(r"\b(T[O]DO|F[I]XME|X[X]X|H[A]CK)\b")
NOT_REALLY_TESTED = re.compile(
    r"\b(unittest[.]mock|Magic[M]ock|pytest[.]skip|pytest[.]xfail|mark[.]skip|mark[.]xfail"
    r"|import[o]rskip)\b"
)
ONE_MACHINE = re.compile(r"(?<![\w.])/(work|farm|home|root|Users)/[\w.]|(?<![\w.])/tmp/[a-z]")


def _files(*patterns: str) -> list[Path]:
    found = sorted(file for pattern in patterns for file in ROOT.glob(pattern) if file.is_file())
    return [file for file in found if not {"__pycache__", ".venv"} & set(file.parts)]


SOURCES = _files("src/**/*.py")
TESTS = _files("tests/**/*.py")
CODE = [*SOURCES, *TESTS, *_files("benchmarks/**/*.py")]
TEXTS = [
    *CODE,
    *_files("*.md", "*.toml", "*.txt", "Makefile", ".ci/*", "docs/**/*.md", "src/**/*.html"),
    *_files("src/**/*.js", "docs/**/*.json", "docs/**/*.toml"),
]


def _lines_with(pattern: re.Pattern[str], files: list[Path]) -> list[str]:
    texts = {file: text for file in files if pattern.search(text := _text(file))}
    return [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
        for file, text in texts.items()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def test_no_source_file_is_longer_than_a_sitting():
    lengths = {str(file.relative_to(ROOT)): len(_text(file).splitlines()) for file in SOURCES}
    assert lengths
    assert {name: length for name, length in lengths.items() if length > LONGEST} == {}


def test_each_unit_test_names_a_module_that_exists():
    # tests/unit/search/test_beam.py or test_beam_ties.py: heedful/search/beam.py
    strangers = [
        str(file.relative_to(ROOT))
        for file in _files("tests/unit/**/test_*.py")
        if not _tested(file.relative_to(ROOT / "tests/unit"))
    ]
    assert strangers == []


def _tested(test: Path) -> bool:
    words = test.stem.split("_")[1:]
    names = ["_".join(words[:end]) for end in range(len(words), 0, -1)]
    places = [ROOT / "src/heedful" / test.parent / name for name in names]
    return any(place.is_dir() or place.with_suffix(".py").exists() for place in places)


def test_nothing_is_left_half_done():
    assert _lines_with(HALF_DONE, CODE) == []


def test_no_file_knows_the_machine_it_was_written_on():
    assert _lines_with(ONE_MACHINE, TEXTS) == []


def test_no_test_is_skipped_mocked_or_expected_to_fail():
    # The one exception: a person without the corpora can still run everything else.
    files = [file for file in TESTS if file != ROOT / "tests/conftest.py"]
    assert _lines_with(NOT_REALLY_TESTED, files) == []


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (HALF_DONE, "# TO" + "DO: later"),
        (NOT_REALLY_TESTED, "@pytest.mark." + "skip"),
        (ONE_MACHINE, "path = '/" + "home/someone/data'"),
        (ONE_MACHINE, "see /" + "tmp/notes"),
    ],
)
def test_the_patterns_find_what_they_are_for(pattern, line):
    assert pattern.search(line)
