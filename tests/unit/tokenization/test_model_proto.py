import io

import pytest
import sentencepiece

from heedful.tokenization.model_proto import kind_of, with_our_ids
from heedful.tokenization.sentencepiece_model import load_processor


def trained(**options):
    content = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the low road", "le chemin bas"] * 5),
        model_writer=content,
        vocab_size=40,
        hard_vocab_limit=False,
        minloglevel=2,
        **options,
    )
    return content.getvalue()


@pytest.mark.parametrize(
    ("kind", "name"),
    [("bpe", "bpe"), ("unigram", "unigram"), ("char", "character"), ("word", "word")],
)
def test_a_model_says_its_kind(kind, name):
    assert kind_of(trained(model_type=kind)) == name


@pytest.mark.parametrize("broken", [b"\x12", b"\x80" * 99, b"\x0b\x01"])
def test_a_broken_model_has_the_usual_kind(broken):
    assert kind_of(broken) == "bpe"


def test_a_model_with_our_ids_keeps_its_bytes():
    model = trained(pad_id=0, unk_id=1, bos_id=2, eos_id=3)
    assert with_our_ids(model, load_processor(model)) == model


def test_symbols_are_moved_and_added_and_scores_kept():
    model = trained(model_type="bpe", eos_id=0, unk_id=5, bos_id=-1)
    before = load_processor(model)
    after = load_processor(with_our_ids(model, before))
    assert (after.pad_id(), after.unk_id(), after.bos_id(), after.eos_id()) == (0, 1, 2, 3)
    assert after.get_piece_size() == before.get_piece_size() + 2

    def scores(processor):
        return [
            (processor.id_to_piece(n), processor.get_score(n))
            for n in range(processor.get_piece_size())
            if not (processor.is_control(n) or processor.is_unknown(n))
        ]

    assert scores(after) == scores(before)
