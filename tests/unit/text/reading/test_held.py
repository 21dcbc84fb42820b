import pytest

from heedful.text.reading.held import cut_line, single_spaces, unbroken_spans
from heedful.text.reading.letter_case import Languages
from heedful.text.reading.terms import Terms
from tests.support.vocabularies import LETTERS, small_vocabulary


def shown(line, terms=None, **options):
    """The text of a line, with what is held in brackets and terms in angles."""
    marks = {"text": "{}", "held": "[{}]", "term": "<{}>"}
    pieces = cut_line(line, terms, small_vocabulary(), **options)
    return "".join(marks[piece.kind].format(piece.text) for piece in pieces)


@pytest.mark.parametrize(
    ("line", "cut"),
    [
        ("  the  big\u00a0dog ", "the big dog"),
        ("the dog 👍🏽 sleeps", "the dog [👍🏽] sleeps"),
        ("👩\u200d👩\u200d👧 the dog", "[👩\u200d👩\u200d👧] the dog"),
        ("the dog → my boy", "the dog [→] my boy"),
        ("the dog→boy", "the dog[→]boy"),
        ("the red 犬.", "the red [犬]."),
        ("the red собака sleeps", "the red [собака] sleeps"),
        ("23 dogs, 1,000.50 and 5kg", "[23] dogs, [1,000.50] and [5kg]"),
        ("the 🇫🇷 dog 1️⃣", "the [🇫🇷] dog [1️⃣]"),
        ("the dog (👍) sleeps", "the dog [(👍)] sleeps"),
        ("{{a}}, {{b}} the dog", "[{{a}}, {{b}}] the dog"),
        ("the dog, {{a}}.", "the dog[, {{a}}]."),
        ("an iPhone sleeps", "an [iPhone] sleeps"),
        ("the Dog don’t", "the Dog don’t"),
        ("the F-16 the CO2 the 1990s", "the [F-16] the [CO2] the [1990s]"),
        ("COVID-19 and the top-10", "[COVID-19] and the [top-10]"),
        ("{{ a  b }} sleeps", "[{{ a  b }}] sleeps"),
        ("{{a\x1b\u2028b}}\x07 sleeps", "[{{a  b}}] sleeps"),
    ],
)
def test_what_a_model_cannot_translate_is_held(line, cut):
    assert shown(line) == cut


@pytest.mark.parametrize(
    ("line", "cut"),
    [
        ("a 3-year-old boy", "a [3-]year-old boy"),
        ("THE 12-MONTH PLAN", "THE [12-]MONTH PLAN"),
        ("a 3-4-day trip", "a [3-4-]day trip"),
        ("a 5-HT a 3-犬 a 2-in", "a [5-HT] a [3-犬] a [2-in]"),
        ("from F-16 to 3D", "from [F-16] to [3D]"),
    ],
)
def test_of_a_word_with_a_number_before_it_only_the_number_is_held(line, cut):
    vocabulary = small_vocabulary(letters=LETTERS | {"-"})
    marks = {"text": "{}", "held": "[{}]"}
    pieces = cut_line(line, None, vocabulary)
    assert "".join(marks[piece.kind].format(piece.text) for piece in pieces) == cut


def test_a_few_unknown_letters_of_a_script_without_spaces_are_left_to_the_model():
    vocabulary = small_vocabulary(letters=set("赤いが寝る"))
    pieces = cut_line("赤い犬が寝る", None, vocabulary)
    assert [piece.kind for piece in pieces] == ["text"]


def test_a_form_with_a_subword_of_its_own_is_left_to_the_model():
    vocabulary = small_vocabulary({"man", "&apos;", "s"}, set("abcdefghijklmnopqrstuvwxyz&;"))
    assert [piece.kind for piece in cut_line("man &apos; s", None, vocabulary)] == ["text"]


def test_a_term_is_read_if_it_can_be_found_again_and_held_if_not():
    terms = Terms.of({"red dog": "rouquin"}, ["Re\u0301x  Inc", "{{x}} y"])
    assert shown("the red dog sleeps", terms) == "the <red dog> sleeps"
    assert shown("the red dog sleeps", terms, aligns=False) == "the [red dog] sleeps"
    assert shown("the Re\u0301x  Inc", terms) == "the <Réx Inc>"
    assert shown("the {{x}} y dog", terms) == "the [{{x}} y] dog"


def test_a_term_of_the_glossary_may_have_what_would_be_held():
    glossary = {"{0} items": "{0} articles", "C++17": "C++ 17", "3-year plan": "plan triennal"}
    terms = Terms.of(glossary | {"mail a@b.org": "courriel", "犬 dog": "chien"}, None)
    line = "{0} items, C++17 the 3-year plan red mail a@b.org red 犬 dog"
    pieces = cut_line(line, terms, small_vocabulary())
    puts = " ".join(piece.put for piece in pieces if piece.kind != "text")
    for put in terms.glossary.values():
        assert puts.count(put) == 1
    assert "a@b.org" not in puts and "犬" not in puts


def test_without_text_reading_only_terms_are_cut_out():
    terms = Terms.of({"red": "rouge"}, None)
    assert shown("the red 👍 {{x}}", terms, holds=False) == "the <red> 👍 {{x}}"


def test_blanks_at_the_ends_of_a_piece_stay_one():
    assert single_spaces("  a \u00a0 b\t") == " a b "


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a {{ big. dog }} b", ["{{ big. dog }}"]),
        ("in St.  Gal\u00adlen. The", ["St.  Gal\u00adlen"]),
        ("see https://x.org/a.b. The", ["https://x.org/a.b"]),
        ("1,000.50 and 3-year-old", ["1,000.50", "3-year-old"]),
    ],
)
def test_parts_that_no_cut_may_fall_into(text, parts):
    terms = Terms.of({"St. Gallen": "Saint-Gall"}, None)
    spans = unbroken_spans(text, terms)
    assert [text[start:end] for start, end in spans] == parts


def test_without_text_reading_only_terms_are_unbroken():
    terms = Terms.of({"St. Gallen": "Saint-Gall"}, None)
    spans = unbroken_spans("{{a. b}} St. Gallen", terms, holds=False)
    assert spans == [(9, 19)]


def test_signs_of_a_script_that_is_lacking_are_held_with_the_word_that_they_touch():
    assert shown("the dog sleeps\u65e5\u672c a") == "the dog [sleeps\u65e5\u672c] a"


def test_a_term_is_not_cut_by_the_rules_of_its_language():
    terms = Terms.of({"ışık evi": "house of light"}, None)
    assert unbroken_spans("x IŞIK EVİ y", terms, Languages("tr")) == [(2, 10)]
    assert unbroken_spans("x IŞIK EVİ y", terms, Languages("en")) == []
