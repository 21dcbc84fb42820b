import lzma

from benchmarks import new_language, report
from benchmarks.new_language import LINES, PAGE, PAIRS, SHOWN


def scores(chrf):
    return {"bleu": chrf / 2, "chrf": chrf, "signature": "nrefs:1"}


def test_the_page_has_a_row_for_each_model(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    runs = {name: {"fr": scores(40), "de": scores(10)} for name in SHOWN}
    del runs["old"]["de"]
    measurements = {
        "pairs": PAIRS,
        "steps": {"old": 1500, "tuned": 500},
        "vocabulary": {"old": 2000, "pieces": 2504},
        "runs": runs,
    }
    PAGE.keep("new-language", measurements, "abc")
    page = (tmp_path / "new-language.md").read_text(encoding="utf-8")
    assert "| the old model | 40.0, 20.0 | – |" in page
    assert "| or fine-tuned on both languages in equal shares | 40.0, 20.0 | 10.0, 5.0 |" in page
    assert "from 2,000 to 2,504 rows" in page


def test_the_text_has_tags_in_the_test_sets_alone(tmp_path, monkeypatch):
    corpus = tmp_path / "tatoeba-en-de"
    corpus.mkdir()
    for part in ("train", "test"):
        for side in ("en", "de"):
            with lzma.open(corpus / f"{part}.{side}.xz", "wt", encoding="utf-8") as file:
                file.write(f"{side}\n" * (LINES + 9))
    monkeypatch.setattr(new_language, "data_folder", lambda: tmp_path)
    new_language.write_text(tmp_path, "de")
    assert (tmp_path / "test-de.en").read_text() == ">>de<< en\n" * LINES
    assert (tmp_path / "test-de.de").read_text() == "de\n" * LINES
    assert (tmp_path / "train-de.en").read_text() == "en\n" * (LINES + 9)
