"""Repeated words and odd lines start an endless repetition."""

import json

from heedful.text.reading.loops import loops_of_words

QUICK = ("--device", "cpu", "--precision", "fp32", "--threads", "1")

LINES = [
    "the big red dog",
    "dog " * 60,
    "ha" * 100,
    "?" * 80,
    "... " * 40,
    "dog dog dog",
    "the big red dog and " * 12,
    "-" * 70,
    "oranges",
]


def test_no_translation_has_a_loop_that_its_source_does_not_have(heedful_cli, toy_run):
    lines = [line.strip() for line in LINES]
    typed = "".join(f"{line}\n" for line in lines)
    done = heedful_cli("translate", toy_run, "--format", "jsonl", *QUICK, stdin=typed)
    entries = [json.loads(line) for line in done.stdout.splitlines()]
    for line, entry in zip(lines, entries, strict=True):
        if not any(loops_of_words(line.split())):
            assert not any(loops_of_words(entry["text"].split())), line
        # A cut is reported with its line, and marked.
        number = entry["line"] + 1
        assert (f"line {number} has a translation that repeats text" in done.stderr) == (
            "loops" in entry.get("reading", {})
        )
    copied = [line for line, entry in zip(lines, entries, strict=True) if entry["text"] == line]
    assert {"ha" * 100, "?" * 80, "-" * 70} <= {*copied}
