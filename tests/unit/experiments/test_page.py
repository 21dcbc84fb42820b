import json

import pytest

from heedful.experiments.page import (
    ScoreDifference,
    capital,
    code_block,
    markdown,
    table,
    with_names,
    write_table,
)


def test_a_difference_is_said_only_where_there_is_one():
    assert ScoreDifference("A", "B", 2.0, (1.0, 3.0), "F1").sentence == (
        "A is above B by 2.0 F1 (95% interval +1.0 to +3.0)."
    )
    shown = ScoreDifference("A", "B", 0.5, (-0.1, 1.1), "BLEU").sentence
    assert "0.5 BLEU" in shown
    assert "do not show which is better" in shown


@pytest.mark.parametrize(
    ("sentence", "begun"), [("with BLEU.", "With BLEU."), ("GNMT is.", "GNMT is."), ("", "")]
)
def test_a_sentence_begins_with_a_capital_letter(sentence, begun):
    assert capital(sentence) == begun


def test_a_table_is_laid_out():
    assert markdown([("a", "b"), ("1", "2")]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"


def test_a_table_is_written_twice(tmp_path):
    write_table(tmp_path / "new", "table", "# page\n", {"a": 1})
    assert (tmp_path / "new" / "table.md").read_text("utf-8") == "# page\n"
    assert json.loads((tmp_path / "new" / "table.json").read_text("utf-8")) == {"a": 1}


def test_rows_are_written_by_a_form_and_have_names():
    rows = with_names({"base": {"bleu": 30.46}, "big": {"bleu": 1.0}})
    written = table("system | BLEU", "{name} | {bleu:.1f}", rows)
    assert written == "| system | BLEU |\n| --- | --- |\n| base | 30.5 |\n| big | 1.0 |"
    assert code_block(["make", "make test"]) == "```sh\nmake\nmake test\n```"
