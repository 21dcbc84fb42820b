from pathlib import Path
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.cleaning.rules import TextFilter, TextRules, read_excluded

words = st.sampled_from(["", " ", "a", "A", "b ", " b", "ab", "да", "aда", "7", "Ⅷ!", "\u2028"])
pairs = st.lists(st.tuples(words, words), max_size=40)


def twin(rules: TextRules, text: list[tuple[str, str]]) -> list[str | None]:
    """Judge in the plainest way, a pair at a time, with everything remembered as it is."""
    before, reasons = set(), []
    for pair in text:
        reason = None
        if not all(line.strip() for line in pair):
            reason = "empty"
        elif any(" ".join(line.lower().split()) in rules.excluded for line in pair):
            reason = "overlap"
        elif rules.min_script_share is not None and any(
            sum(c in script for c in line) < rules.min_script_share * sum(map(str.isalpha, line))
            for line, script in zip(pair, ("abAB", "да"), strict=True)
        ):
            reason = "script"
        elif rules.drop_duplicates:
            stripped = tuple(line.strip() for line in pair)
            reason = "duplicate" if stripped in before else None
            before.add(stripped)
        reasons.append(reason)
    return reasons


@given(pairs, st.integers(0, 40), st.sampled_from([None, 0.3, 1.0]), st.booleans(), st.booleans())
def test_it_agrees_with_its_twin_however_the_text_is_cut(text, cut, share, duplicates, exclude):
    excluded = frozenset(["ab", "да", "b"]) if exclude else frozenset()
    rules = TextRules("en", "ru", share, duplicates, excluded)
    judge = TextFilter(rules)
    found = []
    for part in (text[:cut], text[cut:]):
        found += judge.reasons([source for source, _ in part], [target for _, target in part])
    assert found == twin(rules, text)
    assert judge.notes == []


def test_without_rules_only_what_is_empty_is_dropped():
    judge = TextFilter(TextRules("en", "ru"))
    sources, targets = ["да", "да", "", "x", "\u3000"], ["a", "a", "a", " ", "y"]
    assert judge.reasons(sources, targets) == [None, None, "empty", "empty", "empty"]


def test_two_pairs_are_one_only_if_both_sides_are():
    judge = TextFilter(TextRules(drop_duplicates=True))
    sources = ["ab", "a", "a b", "ab ", "ab", "1 a", "11", "a\nb", "a"]
    targets = ["c", "bc", "c", "\tc", "C", "", "1", "c", "b\nc"]
    empty = [None, None, None, "duplicate", None, "empty", None, None, None]
    assert judge.reasons(sources, targets) == empty


def test_a_language_without_a_known_script_is_noted_once_and_not_judged():
    judge = TextFilter(TextRules("xx", "fr", min_script_share=0.9))
    for _ in range(3):
        assert judge.reasons(["да", "да"], ["oui", "да"]) == [None, "script"]
    (note,) = judge.notes
    assert "“xx”" in note
    assert TextFilter(TextRules("xx", "yy")).notes == []


def test_languages_may_be_exchanged_in_pairs_of_both_directions():
    sources, targets = ["a dog", "пёс", "a dog", "пёс"], ["пёс", "a dog", "a dog", "пёс"]
    one_way = TextFilter(TextRules("en", "ru", 0.5))
    assert one_way.reasons(sources, targets) == [None, "script", "script", "script"]
    both_ways = TextFilter(TextRules("en", "ru", 0.5, both_ways=True))
    assert both_ways.reasons(sources, targets) == [None, None, "script", "script"]


def test_lines_without_letters_pass():
    judge = TextFilter(TextRules("ru", "ja", min_script_share=1.0))
    assert judge.reasons(["- 12 %"], ["１２ ％"]) == [None]


FORMS = ("NFC", "NFD")


@pytest.mark.parametrize(
    "line", ["La ÉLÈVE naïve ", "Việt Nam", "학생이 잔다", "ΐ ᾳ ᾼ", "이가", "Åse ạ́"]
)
def test_a_test_sentence_is_found_in_any_form(tmp_path: Path, line: str):
    for form in FORMS:
        (tmp_path / "test").write_text(normalize(form, line), "utf-8")
        judge = TextFilter(TextRules(excluded=read_excluded([tmp_path / "test"])))
        lines = [normalize(other, text) for other in FORMS for text in (line, f" {line.lower()}")]
        assert judge.reasons(lines, ["x"] * 4) == ["overlap"] * 4
        assert judge.reasons(["x"], [f"{line} y"]) == [None]


def test_excluded_lines_are_read_from_every_file(tmp_path: Path):
    (tmp_path / "a").write_text("The DOG\n\n  the  cat\n", "utf-8")
    (tmp_path / "b").write_text("le chien\nthe dog", "utf-8")
    excluded = read_excluded([tmp_path / "a", tmp_path / "b"])
    assert excluded == {"the dog", "the cat", "le chien"}
    judge = TextFilter(TextRules(excluded=excluded))
    sources, targets = ["the  dog", "a dog", "a dog"], ["x", "Le Chien", "le chien dort"]
    assert judge.reasons(sources, targets) == ["overlap", "overlap", None]


def test_a_line_that_holds_most_of_an_excluded_one_is_near_on_either_side():
    sentence = "one two three four five six seven eight"
    judge = TextFilter(TextRules(excluded=frozenset([sentence, "un chien"])))
    sources = [f"So {sentence}!", sentence.upper(), sentence, f"{sentence} nine", "", "seven eight"]
    targets = ["x", "x", f"{sentence} nine", "Un chien", f"{sentence} nine", "un chien dort"]
    reasons = ["near", "overlap", "overlap", "overlap", "empty", None]
    assert judge.reasons(sources, targets) == reasons
    assert judge.reasons(targets[:4], sources[:4]) == reasons[:4]
    assert judge.reasons([f">>fr<< {sentence} nine"], ["x"]) == ["near"]
