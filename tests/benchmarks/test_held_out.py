"""The page on held-out text in training text."""

from benchmarks import report
from benchmarks.held_out import PAGE, ComparedCorpus, compare

LONG = "one two three four five six seven eight"


def test_a_corpus_is_compared_with_each_held_out_set_and_the_page_says_so(tmp_path, monkeypatch):
    texts = {
        "a.en": f"the dog\nWell, {LONG}\nx\n",
        "b.en": "A cat\n",
        "dev.en": f"a cat\n{LONG}\nnew\n",
        "test.en": "newer\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name.replace("en", "fr")).write_text(text.replace("a cat", "un chat"))
    corpus = ComparedCorpus("mine", ("en", "fr"), ("a.*", "b.*"), ("dev.*", "test.*"))
    rows = list(compare(corpus, tmp_path))
    numbers = [(row["pairs"], row["exact"], row["both"], row["near"]) for row in rows]
    assert numbers == [(4, 1, 0, 1), (4, 0, 0, 0)]
    assert "4 = 1, 2 ~ 2" in rows[0]["note"] and rows[1]["note"] == ""

    monkeypatch.setattr(report, "RESULTS", tmp_path)
    PAGE.keep("held-out", {"rows": rows}, "abc")
    page = (tmp_path / "held-out.md").read_text(encoding="utf-8")
    assert "| mine | 4 | dev | 3 | 2 | 66.7% | 1 | 0 | 1 |" in page
    assert "| mine | 4 | test | 1 | 0 | 0.0% | 0 | 0 | 0 |" in page
