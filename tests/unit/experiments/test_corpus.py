import pytest

from heedful.errors import TextError
from heedful.experiments.corpus import find_corpus, grammar_corpus


def test_the_grammar_writes_a_corpus(tmp_path):
    corpus = grammar_corpus(tmp_path)
    assert len(corpus.lines("train", "en")) == len(corpus.lines("train", "fr")) == 20_000
    assert corpus.file("test", "fr") == tmp_path / "test.fr"
    assert 50 < corpus.word_vocabulary() < corpus.vocabulary


def test_a_corpus_is_found_by_its_files(corpus):
    found = find_corpus(corpus.folder, "en", 400)
    assert (found.source, found.target, found.vocabulary, found.narrow) == ("en", "fr", 400, 1)
    assert find_corpus(corpus.folder, "fr").target == "en"


def test_lines_without_a_partner_are_refused(tmp_path):
    for part in ("train", "valid", "test"):
        (tmp_path / f"{part}.en").write_text("a\nb", encoding="utf-8")
        (tmp_path / f"{part}.de").write_text("a\nb\n", encoding="utf-8")
    assert find_corpus(tmp_path).lines("test", "en") == ["a", "b"]
    (tmp_path / "valid.de").write_text("a\n", encoding="utf-8")
    with pytest.raises(TextError, match=r"valid\.en and .*valid\.de must have .* have 2 and 1"):
        find_corpus(tmp_path)
    with pytest.raises(TextError, match=r"must be a folder .*nowhere is not a folder"):
        find_corpus(tmp_path / "nowhere")


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(TextError, match=r"train.en and one train.XX.*are: none"):
        find_corpus(tmp_path)
    for name in ("train.en", "train.de", "valid.en", "valid.de", "test.en"):
        (tmp_path / name).write_text("a\n", encoding="utf-8")
    with pytest.raises(TextError, match=r"test\.de is missing"):
        find_corpus(tmp_path)
    (tmp_path / "train.fr").touch()
    with pytest.raises(TextError, match=r"are: train\.de, train\.en, train\.fr"):
        find_corpus(tmp_path)
