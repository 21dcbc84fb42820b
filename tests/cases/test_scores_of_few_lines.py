"""A tiny test scores 0 or 100, or decides between two systems, and nobody knows why."""

import json

import pytest
import sacrebleu


@pytest.fixture
def score(heedful_cli, tmp_path):
    """Score texts by the command; return what it prints, as JSON and as a table."""

    def run(hypothesis, *references, options=()):
        arguments = []
        for name, text in (("h", hypothesis), *((f"r{i}", r) for i, r in enumerate(references))):
            (tmp_path / name).write_text(text, encoding="utf-8")
            arguments += ["--hypothesis" if name == "h" else "--reference", tmp_path / name]
        words = ("evaluate", *arguments, "--language", "fr", *options)
        plain, as_json = heedful_cli(*words), heedful_cli(*words, "--json")
        assert as_json.returncode == 0, as_json.stderr

        def refuse(constant):
            raise ValueError(f"{constant} is not JSON")

        return json.loads(as_json.stdout, parse_constant=refuse), plain.stdout

    return run


def test_a_zero_for_want_of_four_words_is_explained(score):
    found, table = score("Place Royale\nle chat\n", "Place Royale\nle chat\n")
    assert found["bleu"]["score"] == 0
    assert found["exact_match"]["score"] == 100
    assert "BLEU is 0 because every translation has fewer than four words" in table
    assert found["notes"] == [line for line in table.splitlines() if line.startswith("BLEU is 0")]


def test_a_zero_of_texts_without_anything_in_common_needs_no_word(score):
    found, table = score("\n\n", "le chat\nle gros chien rouge\n")
    assert found["bleu"]["score"] == 0
    assert "notes" not in found
    assert "because" not in table


def test_several_references_with_an_empty_line_score_as_in_sacrebleu(score):
    hypothesis = "\nle gros chien rouge dort\na b c d e\n"
    references = ("mon fils reste\nle gros chien rouge dort\na b c d e\n", "\nle chien\na b c d\n")
    found, _ = score(hypothesis, *references)
    expected = sacrebleu.corpus_bleu(
        hypothesis.splitlines(), [text.splitlines() for text in references]
    )
    assert found["bleu"]["score"] == pytest.approx(expected.score)


def test_few_lines_are_said_to_decide_nothing(score, tmp_path):
    (tmp_path / "other").write_text("la gros chien rouge dort\n", encoding="utf-8")
    line = "le gros chien rouge dort\n"
    options = ("--trials", 100, "--confidence", "--against", tmp_path / "other")
    found, table = score(line, line, options=options)
    assert "Only one line was scored" in table
    assert len(found["notes"]) == 1
    low, high = found["bleu"]["interval"]
    assert low == high == pytest.approx(100)


@pytest.mark.parametrize("test", ["randomization", "bootstrap"])
def test_a_system_against_itself_has_p_1(score, tmp_path, test):
    text = "le gros chien rouge dort\nmon fils mange la pomme verte\nle chat dort ici\n"
    (tmp_path / "same").write_text(text, encoding="utf-8")
    options = ("--trials", 100, "--test", test, "--against", tmp_path / "same")
    found, table = score(text, text.replace("dort", "mange"), options=options)
    (other,) = found["against"]
    assert other["bleu"]["p_value"] == 1
    assert other["bleu"]["difference"] == 0
    assert other["bleu"]["interval"] == [0, 0]
    assert "Only 3 lines were scored" in table


def test_a_hundred_lines_need_no_warning(score):
    text = "le gros chien rouge dort\n" * 100
    found, _ = score(text, text, options=("--trials", 100, "--confidence"))
    assert "notes" not in found
