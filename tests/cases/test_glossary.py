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


def test_a_term_may_contain_what_would_be_held_back(heedful_cli, toy_run, tmp_path):
    terms = {"{0} dogs": "{0} toutous", "C++17": "C++ 17", "a@b.org": "a@b.fr"}
    lines = "".join(f"{term}\t{put}\n" for term, put in terms.items())
    (tmp_path / "terms.tsv").write_text(lines, "utf-8")
    typed = "".join(f"my boy sees {term} too\n" for term in terms)
    options = ("--glossary", tmp_path / "terms.tsv", *QUICK)
    done = heedful_cli("translate", toy_run, *options, stdin=typed)
    for line, (term, put) in zip(done.stdout.splitlines(), terms.items(), strict=True):
        assert line.count(put) == 1 and term not in line
