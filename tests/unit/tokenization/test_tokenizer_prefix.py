"""A text before every source line, which is part of the tokenizer."""

import json

import pytest

from heedful.data.toy_grammar.corpus import split_pairs
from heedful.errors import TokenizerError
from heedful.tokenization.from_files import could_have_given, tokenizer_from_files
from heedful.tokenization.tokenizer import Tokenizer

PREFIX = "to french: "
LINES = [PREFIX + pair[0] for pair in split_pairs(200, 1, seed=1)[0]]


@pytest.fixture
def plain(tmp_path):
    text = tmp_path / "text.en"
    text.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return Tokenizer.train(
        [text],
        [text],
        kind="unigram",
        vocabulary_size=70,
        shared=True,
        source_language="en",
        target_language="fr",
        seed=1,
    )


def with_prefix(plain):
    return Tokenizer(
        plain.models[0], source_language="en", target_language="fr", source_prefix=PREFIX
    )


def test_every_source_line_begins_with_it_and_no_target(plain):
    tokenizer = with_prefix(plain)
    assert tokenizer.encode_source(["the dog"]) == plain.encode_source([f"{PREFIX}the dog"])
    assert tokenizer.encode_target(["the dog"]) == plain.encode_target(["the dog"])
    assert tokenizer.encode_source(["", "  "]) == [[], []]


def test_source_text_comes_back_without_it(plain):
    tokenizer = with_prefix(plain)
    (ids,) = tokenizer.encode_source(["the big dog"])
    assert tokenizer.decode_source(ids) == "the big dog"
    assert tokenizer.encode_source([tokenizer.decode_source(ids)]) == [ids]
    (bare,) = plain.encode_source(["the big dog"])
    assert tokenizer.decode_source(bare) == "the big dog"


def test_it_is_saved_with_the_models_and_part_of_the_fingerprint(plain, tmp_path):
    tokenizer = with_prefix(plain)
    for name in ("run", "plain"):
        (tmp_path / name).mkdir()
    tokenizer.save(tmp_path / "run")
    again = Tokenizer.load(tmp_path / "run")
    assert again.source_prefix == PREFIX
    assert again.fingerprint == tokenizer.fingerprint != plain.fingerprint
    record = json.loads((tmp_path / "run/tokenizer.json").read_text())
    assert (record["format"], record["source_prefix"]) == (5, PREFIX)
    plain.save(tmp_path / "plain")
    record = json.loads((tmp_path / "plain/tokenizer.json").read_text())
    assert record["format"] == 1 and "source_prefix" not in record


def test_a_run_s_tokenizer_that_is_used_again_keeps_it(plain, tmp_path):
    (tmp_path / "run").mkdir()
    with_prefix(plain).save(tmp_path / "run")
    options = {"vocabulary_size": 70, "shared": True}
    languages = {"source_language": "en", "target_language": "de"}
    again = tokenizer_from_files(tmp_path / "run", [], [], **options, **languages)
    assert (again.source_prefix, again.target_language) == (PREFIX, "de")
    assert could_have_given(tmp_path / "run", again)


@pytest.mark.parametrize("prefix", [3, "x" * 1001, None])
def test_a_damaged_record_is_refused(plain, tmp_path, prefix):
    with_prefix(plain).save(tmp_path)
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"source_prefix": prefix}))
    with pytest.raises(TokenizerError, match=r"must have the fields of format \d"):
        Tokenizer.load(tmp_path)
