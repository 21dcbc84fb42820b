"""A unigram model in tokenizer.json becomes sentencepiece's."""

import base64
import json
import shutil

import pytest
import sentencepiece

from heedful.errors import ExchangeError
from heedful.exchange.huggingface.unigram import sentencepiece_of, unigram_pieces
from tests.support.t5 import make, subwords, text

SPECIAL = {"pad": 0, "end": 1, "unknown": 2}
TEXTS = ["  Two   spaces\tand a tab", "Ünknown ☃☃, ﬁne １２３", *(pair[0] for pair in text(30))]


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """What transformers 5 saves of a tokenizer."""
    from transformers import T5Tokenizer

    folder = tmp_path_factory.mktemp("unigram")
    make(folder / "theirs")
    T5Tokenizer.from_pretrained(folder / "theirs").save_pretrained(folder / "saved")
    return folder / "saved"


@pytest.fixture
def folder(original, tmp_path):
    return shutil.copytree(original, tmp_path / "saved")


def change(folder, **values):
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | values), encoding="utf-8")


def test_text_is_cut_as_by_the_model_that_it_was_made_of(folder):
    pieces = unigram_pieces(folder)
    assert pieces[-1] == ("<extra_id_0>", 0.0)
    content = sentencepiece_of(folder, pieces[:-20], SPECIAL)
    made, original = (
        sentencepiece.SentencePieceProcessor(model_proto=model) for model in (content, subwords())
    )
    assert made.get_piece_size() == original.get_piece_size()
    assert [made.pad_id(), made.eos_id(), made.unk_id(), made.bos_id()] == [0, 1, 2, -1]
    assert made.encode(TEXTS) == original.encode(TEXTS)
    assert made.decode(made.encode(TEXTS)) == original.decode(original.encode(TEXTS))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ({"vocab": {"a": 1}}, "a unigram model"),
        ({"vocab": [["a", "b"]]}, "a unigram model"),
        ({"vocab": [["a", float("nan")]]}, "a unigram model"),
        ([], "a unigram model"),
    ],
    ids=str,
)
def test_other_models_are_refused(folder, model, words):
    change(folder, model=model)
    with pytest.raises(ExchangeError, match=words):
        unigram_pieces(folder)


@pytest.mark.parametrize(
    "normalizer",
    [
        {"type": "Lowercase"},
        {"type": "Sequence", "normalizers": [{"type": "Precompiled"}, {"type": "NFKC"}]},
        {"type": "Sequence", "normalizers": [{"type": "Precompiled"}] * 2},
        {"type": "Precompiled", "precompiled_charsmap": "no base 64!"},
        {"type": "Precompiled", "precompiled_charsmap": 3},
        "text",
    ],
    ids=str,
)
def test_other_rewritings_are_refused(folder, normalizer):
    pieces = unigram_pieces(folder)
    change(folder, normalizer=normalizer)
    with pytest.raises(ExchangeError, match="must be sentencepiece's"):
        sentencepiece_of(folder, pieces, SPECIAL)


def test_spaces_and_no_map_at_all_are_fine(folder):
    pieces = unigram_pieces(folder)
    steps = [{"type": "Precompiled", "precompiled_charsmap": base64.b64encode(b"").decode()}]
    steps += [{"type": "Replace"}]
    for normalizer in (None, {"type": "Sequence", "normalizers": steps}):
        change(folder, normalizer=normalizer)
        content = sentencepiece_of(folder, pieces[:-20], SPECIAL)
        made = sentencepiece.SentencePieceProcessor(model_proto=content)
        assert made.encode("the dog", out_type=str) == ["▁the", *made.encode("dog", out_type=str)]


def test_bytes_are_refused(folder):
    model = json.loads((folder / "tokenizer.json").read_text("utf-8"))["model"]
    change(folder, model=model | {"byte_fallback": True})
    with pytest.raises(ExchangeError, match="byte_fallback"):
        sentencepiece_of(folder, unigram_pieces(folder), SPECIAL)
