"""A target of symbols, split at spaces, beside a source of subwords."""

import json
from pathlib import Path

import pytest

from heedful.data.coverage import unknown_parts
from heedful.errors import TokenizerError
from heedful.tokenization.tokenizer import UNKNOWN, Tokenizer
from heedful.tokenization.vocabulary_model import learn_symbols

WORDS = "the dog sees a cat\n" * 5
SYMBOLS = "(S (NP XX XX )NP )S\n(S XX )S\n"


@pytest.fixture
def tokenizer(tmp_path: Path) -> Tokenizer:
    (tmp_path / "words").write_text(WORDS)
    (tmp_path / "symbols").write_text(SYMBOLS)
    return Tokenizer.train(
        [tmp_path / "words"],
        [tmp_path / "symbols"],
        kind="bpe",
        vocabulary_size=30,
        shared=False,
        symbols=True,
        source_language="words",
        target_language="trees",
        seed=1,
    )


def test_symbols_come_back_as_they_were(tokenizer: Tokenizer) -> None:
    assert (tokenizer.kind, tokenizer.target_kind, tokenizer.shared) == ("bpe", "word-list", False)
    assert tokenizer.target_size == 4 + 5
    lines = SYMBOLS.splitlines()
    assert [tokenizer.decode(ids) for ids in tokenizer.encode_target(lines)] == lines
    assert tokenizer.pieces_target([4]) == ["XX"]  # the most frequent


def test_it_is_saved_and_read_again(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path)
    record = json.loads((tmp_path / "tokenizer.json").read_text())
    assert (record["format"], record["kind"], record["target_kind"]) == (4, "bpe", "word-list")
    read = Tokenizer.load(tmp_path)
    assert read.fingerprint == tokenizer.fingerprint
    assert read.encode_target([SYMBOLS[:5]]) == tokenizer.encode_target([SYMBOLS[:5]])
    record["target_kind"] = "other"
    (tmp_path / "tokenizer.json").write_text(json.dumps(record))
    with pytest.raises(TokenizerError, match=r"sha256\), but does not"):
        Tokenizer.load(tmp_path)


def test_subwords_of_a_run_meet_new_symbols(tokenizer: Tokenizer, tmp_path: Path) -> None:
    again = tokenizer.with_symbols([tmp_path / "words"])  # those of this text alone
    assert again.models[0] is tokenizer.models[0]
    assert again.pieces_target(range(again.target_size)) != tokenizer.pieces_target(
        range(tokenizer.target_size)
    )
    plain = Tokenizer(
        tokenizer.models[0], tokenizer.models[0], source_language="a", target_language="b"
    )
    other = plain.with_symbols([tmp_path / "symbols"])
    assert other.models[0] is tokenizer.models[0]
    assert other.encode_target(["(S"]) == tokenizer.encode_target(["(S"])


def test_unknown_symbols_are_named_whole(tokenizer: Tokenizer) -> None:
    assert unknown_parts(tokenizer, ["(S (VP XX"], "target") == ["(VP"]
    assert tokenizer.encode_target(["(VP"]) == [[UNKNOWN]]
    assert unknown_parts(tokenizer, ["zoo"], "source") == ["z"]


def test_equally_frequent_symbols_are_in_the_order_of_the_alphabet(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("b a c c\n")
    model = learn_symbols([tmp_path / "text"])
    assert [model.piece(number) for number in range(4, model.size)] == ["c", "a", "b"]
