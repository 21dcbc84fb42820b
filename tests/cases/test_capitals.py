"""Capitals: a headline stays untranslated or becomes something else."""

import pytest

QUICK = ("--device", "cpu", "--precision", "fp32", "--threads", "1")

PLAIN = "the big red dog"


def test_a_line_in_capitals_says_what_it_says_in_lower_case(translate):
    plain, capitals, sentence, title = translate(
        [PLAIN, PLAIN.upper(), PLAIN.capitalize(), PLAIN.title()]
    )
    assert plain and capitals == plain.upper()
    assert sentence == plain[0].upper() + plain[1:]
    assert title == " ".join(word[0].upper() + word[1:] for word in plain.split(" "))


def test_a_word_in_capitals_changes_only_the_case_of_its_translation(translate):
    plain, emphatic = translate(["she sees the big dog", "she sees the BIG dog"])
    assert emphatic.lower() == plain


@pytest.mark.parametrize("line", ["MY BOY STAYS", "OPEN", "A"])
def test_capitals_are_read_alike_through_the_command_line(heedful_cli, toy_run, translate, line):
    done = heedful_cli("translate", toy_run, *QUICK, stdin=f"{line}\n")
    assert done.stdout == translate([line])[0] + "\n"


def test_what_was_done_is_in_jsonl(translator):
    (result,) = translator.translate([PLAIN.upper()])
    assert result.reading.to_dict()["case"] == "upper"


def test_exact_reading_leaves_capitals_to_the_model(translator, toy_run):
    exact = type(translator).load(toy_run, device="cpu", precision="fp32", reading="exact")
    (result,) = exact.translate([PLAIN.upper()])
    assert result.reading is None
