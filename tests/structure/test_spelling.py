"""American spelling, in names of files and identifiers too; `make check` reads the repository."""

import pytest
from tools import spelling


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The colour of neighbours, normalised.", 3),
        ("def test_favourites(headColour): uninitialised = 1", 3),
        ("LABELLED, Centred, misspelt, towards", 4),
        ("`optimiser`, licence, cancelled; but 3 came; if it is none; mend the file", 6),
    ],
)
def test_a_british_word_or_an_odd_phrase_is_named_with_its_line(text, words):
    places = list(spelling.places_of("page.md", f"first\n{text}"))
    assert len(places) == words
    assert all(place.startswith("page.md:2: “") for place in places)


def test_a_british_name_of_a_file_is_named():
    assert len(list(spelling.places_of("docs/normalisation.md", ""))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "raise, exercise, precise, otherwise, supervised, noise, promised, revised",
        "four hours, contour, LibreTranslate, analyses, controlled, installed, fulfilled",
        "realistic, optimistic, minimist, organist, modeling, amend, but it came later",
        "`model.recurrent.initialisation`, heedful.visualise, except asyncio.CancelledError",
    ],
)
def test_other_words_pass(text):
    assert list(spelling.places_of("page.md", text)) == []
