import pytest

from heedful.errors import TextError
from heedful.serve.served_terms import ServedTerms


@pytest.fixture
def files(tmp_path):
    (tmp_path / "terms.tsv").write_text("dog\tchien\ncat\tchat\n", encoding="utf-8")
    (tmp_path / "names.txt").write_text("Rex\nboy\n", encoding="utf-8")
    return tmp_path / "terms.tsv", tmp_path / "names.txt"


def test_a_request_adds_terms_and_its_own_win(files):
    terms = ServedTerms(*files)
    assert terms.with_request(None, ()) == ({"dog": "chien", "cat": "chat"}, ("Rex", "boy"))
    glossary, protected = terms.with_request({"dog": "toutou", "boy": "gars"}, ["Max", "Rex"])
    assert glossary == {"dog": "toutou", "cat": "chat", "boy": "gars"}
    assert protected == ("Rex", "Max")


def test_files_are_read_again_and_a_bad_one_changes_nothing(files):
    terms = ServedTerms(*files)
    files[0].write_text("dog\ttoutou\n", encoding="utf-8")
    terms.load()
    assert terms.glossary == {"dog": "toutou"}
    files[0].write_text("dog\n", encoding="utf-8")
    with pytest.raises(TextError, match="line 1 is 'dog'"):
        terms.load()
    assert terms.glossary == {"dog": "toutou"}


def test_without_files_there_are_no_terms():
    assert ServedTerms().with_request(None, ()) == ({}, ())
