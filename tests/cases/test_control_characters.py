"""Separators and control characters in lines end them, or reach the reader's terminal."""

import re

QUICK = ("--device", "cpu", "--precision", "fp32", "--threads", "1")

SEPARATORS = "\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e\r\x1b\x07\x7f"
CONTROLS = re.compile("[\x00-\x08\x0a-\x1f\x7f]")


def test_every_line_has_one_translation_without_control_characters(heedful_cli, toy_run):
    typed = "".join(f"the big{sign}red dog\n" for sign in SEPARATORS)
    done = heedful_cli("translate", toy_run, *QUICK, stdin=typed)
    plain = heedful_cli("translate", toy_run, *QUICK, stdin="the big red dog\n").stdout
    assert done.stdout == plain * len(SEPARATORS)


def test_a_copied_line_has_none_either(translate):
    texts = translate([f"1{sign}2" for sign in SEPARATORS])
    assert not any(map(CONTROLS.search, texts))
    assert [text[0] + text[-1] for text in texts] == ["12"] * len(SEPARATORS)
