import unicodedata
from functools import cache

import pytest

from heedful.tokenization import normalization
from heedful.tokenization.normalization import normalizer
from heedful.tokenization.tokenizer import UNKNOWN, Tokenizer
from heedful.tokenization.train import SubwordOptions

LINES = ["Çà et là", "cafe\u0301\u3000noir", "ﬁn ＡＢ", "Ελληνικά 각 각", "a\u0323\u0302x"] * 4


@pytest.fixture(scope="module", autouse=True)
def one_table():
    """Make the table of NFC once, which is the same for every model."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(normalization, "_compositions", cache(normalization._compositions))
        yield


def learned(folder, rule, kind="bpe"):
    """A tokenizer whose model rewrites text by a rule."""
    path = folder / "text"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return Tokenizer.train(
        [path],
        [path],
        kind=kind,
        vocabulary_size=90,
        shared=True,
        source_language="",
        target_language="",
        seed=1,
        options=SubwordOptions(normalization=rule, at_most=True),
    )


@pytest.mark.parametrize("kind", ["bpe", "unigram", "character", "word"])
@pytest.mark.parametrize("rule", ["identity", "nfc", "nmt_nfkc", "nmt_nfkc_cf"])
def test_text_comes_back_as_the_rule_rewrites_it(tmp_path, rule, kind):
    tokenizer = learned(tmp_path, rule, kind)
    rewrite = normalizer(rule) or str
    rows = tokenizer.encode_target(LINES)
    assert not any(UNKNOWN in row for row in rows)
    assert [tokenizer.decode(row) for row in rows] == list(map(rewrite, LINES))
    tokenizer.save(tmp_path)
    assert Tokenizer.load(tmp_path).encode_target(LINES) == rows


def test_nfc_is_unicodes(tmp_path):
    tokenizer = learned(tmp_path, "nfc")
    for form in ("NFC", "NFD"):
        lines = [unicodedata.normalize(form, line) for line in LINES]
        assert tokenizer.encode_source(lines) == tokenizer.encode_source(LINES)
    written = tokenizer.decode(tokenizer.encode_source(["x a\u0302\u0323"])[0])
    assert written == "x \u1ead"


def test_sampled_subwords_are_rewritten_too(tmp_path):
    tokenizer = learned(tmp_path, "nmt_nfkc_cf")
    (row,) = tokenizer.encode_source(["ﬁn ＡＢ"], sampling=0.5)
    assert tokenizer.decode(row) == "fin ab"


def test_only_what_the_rule_leaves_takes_a_place(tmp_path):
    tokenizer = learned(tmp_path, "nmt_nfkc_cf", "character")
    pieces = tokenizer.pieces_source(range(tokenizer.source_size))
    assert not {"Ç", "ﬁ", "Ａ", "\u3000", "\u0301"} & {*pieces}
