"""What a BART folder may say of its text; tests/parity compare the ids."""

import json

import pytest

from heedful.errors import ExchangeError
from heedful.exchange.bart.bytes import is_spaced, read_bytes

SPECIAL = {"start": "<s>", "pad": "<pad>", "end": "</s>", "unknown": "<unk>"}
NUMBERS = {name: number for number, name in enumerate([*SPECIAL.values(), "a", "b", "ab"])}
WHOLE = {"model": {"vocab": NUMBERS, "merges": [["a", "b"]]}, "added_tokens": []}


def test_both_layouts_say_the_same(tmp_path):
    (tmp_path / "vocab.json").write_text(json.dumps(NUMBERS))
    (tmp_path / "merges.txt").write_bytes(b"#version: 0.2\na b\n")
    separate = read_bytes(tmp_path, {}, SPECIAL, {})
    assert separate == read_bytes(tmp_path, {}, SPECIAL, WHOLE)
    assert separate == (NUMBERS, b"#version: 0.2\na b\n")
    strings = {**WHOLE, "model": {"vocab": NUMBERS, "merges": ["a b"]}}
    assert read_bytes(tmp_path, {}, SPECIAL, strings) == separate
    assert is_spaced({"add_prefix_space": True})
    assert not is_spaced({})


@pytest.mark.parametrize(
    ("spelled", "whole", "message"),
    [
        ({}, {}, "lacks vocab.json and merges.txt"),
        ({"tokenizer_class": "BertTokenizer"}, WHOLE, "but is BertTokenizer"),
        ({"cls_token": "<cls>"}, WHOLE, "cls_token differs from bos_token"),
        ({"added_tokens_decoder": {"9": {"content": "<new>"}}}, WHOLE, "'<new>' were added"),
        ({}, {**WHOLE, "added_tokens": [{"content": "<new>"}]}, "'<new>' were added"),
        ({}, {"model": {"vocab": []}}, "describes another tokenizer"),
        ({}, {"model": {"vocab": NUMBERS}}, "must list merges"),
        ({}, {"model": {"vocab": NUMBERS, "merges": [["a", "b", "c"]]}}, "one is 'a b c'"),
        ({}, {"model": {"vocab": NUMBERS, "merges": ["a b\nc"]}}, "merges of two subwords"),
    ],
)
def test_other_text_is_refused_in_a_paragraph(spelled, whole, message, tmp_path):
    with pytest.raises(ExchangeError, match=message) as caught:
        read_bytes(tmp_path, spelled, SPECIAL, whole)
    assert "\n" not in str(caught.value)
