"""Terms that a user has decided come out in other words."""

import pytest

QUICK = ("--device", "cpu", "--precision", "fp32", "--threads", "1")

SENTENCE = "my boy sees a dog"


def test_a_term_has_the_translation_of_the_glossary_once(heedful_cli, toy_run, tmp_path):
    (tmp_path / "terms.tsv").write_text("dog\ttoutou\ndog\tmédor\n", "utf-8")
    (tmp_path / "keep.txt").write_text("boy\n", "utf-8")
    asked = ("--glossary", tmp_path / "terms.tsv", "--protected", tmp_path / "keep.txt")
    done = heedful_cli("translate", toy_run, *asked, *QUICK, stdin=f"{SENTENCE}\n")
    words = done.stdout.split()
    assert words.count("toutou") == 1 and words.count("boy") == 1
    assert "two translations of “dog”" in done.stderr


@pytest.mark.parametrize("reading", ["exact", "text"])
def test_inflected_forms_are_left_alone(translator, toy_run, reading):
    own = type(translator).load(toy_run, device="cpu", precision="fp32", reading=reading)
    lines = ["my boy sees dogs", "my boy sees a dog"]
    plain = own.translate(lines)
    terms = own.translate(lines, glossary={"dog": "toutou", "boys": "x"})
    assert terms[0].text == plain[0].text
    assert terms[1].text.split(" ").count("toutou") == 1
