"""One more space, or another kind of space, changes the translation."""

import pytest

PLAIN = "the big red dog"
FORMS = [
    f" {PLAIN}",
    f"{PLAIN} ",
    PLAIN.replace(" ", "  "),
    PLAIN.replace(" ", "   "),
    PLAIN.replace(" ", "\u00a0", 1),
    PLAIN.replace(" ", "\u202f"),
    PLAIN.replace(" ", "\u3000"),
    PLAIN.replace(" ", "\t"),
    PLAIN.replace("e", "e\u00ad", 1),
    PLAIN.replace(" ", "\u200b ", 1),
    f"\u200e{PLAIN}\u2060",
]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_has_one_translation(translate, form):
    plain, other = translate([PLAIN, form])
    assert other.strip() == plain


def test_composed_and_decomposed_letters_are_one_text(translate):
    composed, decomposed = translate(["café dog", "cafe\u0301 dog"])
    assert composed == decomposed
