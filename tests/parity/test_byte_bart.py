"""BART itself against transformers: equal ids, log-probabilities and translations."""

import pytest
import torch
from tests.support.byte_bart import make_bart
from tests.support.marian import text

from heedful.exchange.convert import export_model, import_model

SENTENCES = [
    *(pair[0] for pair in text(3)),
    "Naïve café's  déjà-vu… 中文 🙂",
    "\t a\u00a0b  c ",
    "it's we'll 12½ ٣٤ ",
]
# Each with something odd in the model, in its text or in its search.
KINDS = {
    "usual": {},
    "tokenizer.json, greedy": {"whole": True, "generation": {"num_beams": 1}},
    "space before each text, first token is free": {
        "spelled": {"add_prefix_space": True},
        "generation": {"forced_bos_token_id": None},
    },
    "decoding starts with the start symbol": {
        "generation": {"forced_bos_token_id": None, "decoder_start_token_id": 0},
        "scale_embedding": True,
        "activation_function": "relu",
    },
    "no repeated trigrams, at least 9 tokens": {
        "generation": {"no_repeat_ngram_size": 3, "min_length": 9, "length_penalty": 2.0},
    },
    "trained": {"steps": 40, "spread": 0.02},
}


@pytest.mark.parametrize(
    "kind",
    [kind if kind == "usual" else pytest.param(kind, marks=pytest.mark.soak) for kind in KINDS],
)
def test_bart_is_the_same_here_as_in_transformers(kind, tmp_path):
    make_bart(tmp_path / "theirs", **KINDS[kind])
    report, _ = import_model(
        "huggingface", tmp_path / "theirs", tmp_path / "run", sentences=SENTENCES
    )
    parity, count = report.parity, len(SENTENCES)
    assert parity.difference < 1e-5
    assert (parity.same_tokens, parity.same_outputs) == (count, count), parity
    _same_again(tmp_path)


def _same_again(folder):
    """Exported, it is what transformers loads: the same ids, logits and translations."""
    from transformers import BartForConditionalGeneration, BartTokenizer

    parity, _ = export_model(folder / "run", "bart", folder / "again", sentences=SENTENCES)
    assert parity.difference < 1e-5
    assert parity.same_outputs == len(SENTENCES)
    places = folder / "theirs", folder / "again"
    first, second = (BartForConditionalGeneration.from_pretrained(place).eval() for place in places)
    tokenizers = [BartTokenizer.from_pretrained(place) for place in places]
    for line in SENTENCES:
        rows = [tokenizer(line, return_tensors="pt") for tokenizer in tokenizers]
        assert rows[0].input_ids.tolist() == rows[1].input_ids.tolist()
        with torch.inference_mode():
            target = rows[0].input_ids[:, :5]
            wanted, found = (
                model(**rows[0], decoder_input_ids=target).logits for model in (first, second)
            )
        assert torch.equal(wanted, found)
        assert tokenizers[0].decode(target[0]) == tokenizers[1].decode(target[0])
