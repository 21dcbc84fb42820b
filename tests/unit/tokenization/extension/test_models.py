import pytest
import sentencepiece

from heedful.errors import TokenizerError
from heedful.tokenization.extension.merges import NewPiece
from heedful.tokenization.extension.models import ExtensibleModel, without
from heedful.tokenization.id_mapping import IdMapping
from heedful.tokenization.imported_model import ImportedModel
from heedful.tokenization.sentencepiece_model import SentencePieceModel
from heedful.tokenization.train import SubwordOptions, learn_subwords
from heedful.tokenization.vocabulary import Vocabulary
from heedful.tokenization.vocabulary_model import VocabularyModel
from tests.support.marian import subwords, text, vocabulary

OLD = [line for pair in text() for line in pair]
NEW = [
    *["der große Hund schläft nicht", "die Katzen schlafen und der Hund lacht"] * 20,
    *["собака спит", "кошка и собака спят"] * 20,
]
KINDS = ("bpe", "unigram", "character", "word")


def trained(kind, folder, size=250):
    file = folder / "old.txt"
    file.write_text("".join(f"{line}\n" for line in OLD), encoding="utf-8")
    content = learn_subwords(
        [file], "text", kind=kind, vocabulary_size=size, seed=1, threads=1,
        options=SubwordOptions(at_most=True),
    )  # fmt: skip
    return SentencePieceModel(content, kind)


def extend(side, count, keep=()):
    new = side.learn(NEW, keep, count)
    listed = [">>de<<", *(n.piece for n in new if n.piece not in side.ids)]
    return new, side.extended(new, listed)


@pytest.mark.parametrize("kind", KINDS)
def test_text_that_is_kept_keeps_its_ids_and_new_text_gets_shorter(kind, tmp_path):
    side = ExtensibleModel(trained(kind, tmp_path))
    assert side.kind == kind
    new, longer = extend(side, 60, keep=OLD)
    assert new
    assert longer.size == side.model.size + len(new) + 1
    assert longer.encode(OLD) == side.model.encode(OLD)
    assert list(side.changed_by(longer, OLD)) == []
    for number in range(side.model.size):
        assert longer.piece(number) == side.model.piece(number)
    before, after = side.model.encode(NEW), longer.encode(NEW)
    if kind in ("bpe", "unigram"):
        assert sum(map(len, after)) < sum(map(len, before))
    assert 1 in side.model.encode(["собака спит"])[0]
    assert 1 not in longer.encode(["собака спит"])[0]
    assert longer.tags == {">>de<<": side.model.size}
    assert all(longer.piece(n) != ">>de<<" for row in longer.encode([">>de<< Hund"]) for n in row)
    assert SentencePieceModel(longer.files()["model"], kind).encode(NEW) == after


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_each_new_subword_is_met_where_it_was_learned(kind, tmp_path):
    side = ExtensibleModel(trained(kind, tmp_path))
    new, longer = extend(side, 40)
    used = {longer.piece(number) for row in longer.encode(NEW) for number in row}
    last = new[-1].piece
    assert last in used
    unknown = {n.piece for n in new if len(n.piece) == 1 and not n.parts}
    assert unknown
    for piece in new:
        known = "".join(letter for letter in piece.piece if letter not in unknown)
        assert "".join(map(side.model.piece, side.old_ids(piece))) == known


def test_without_text_that_is_kept_only_new_subwords_change_old_lines(tmp_path):
    side = ExtensibleModel(trained("bpe", tmp_path))
    new = side.learn(OLD, (), 40)
    longer = side.extended(new, [n.piece for n in new])
    numbers = set(range(side.model.size, longer.size))
    changed = list(side.changed_by(longer, OLD))
    assert changed
    assert all(numbers.intersection(row) for row in changed)


def test_characters_start_from_their_bytes(tmp_path):
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(OLD), model_prefix=tmp_path / "bytes", vocab_size=400,
        model_type="bpe", byte_fallback=True, pad_id=0, unk_id=1, bos_id=2, eos_id=3,
        num_threads=1, minloglevel=2,
    )  # fmt: skip
    model = SentencePieceModel((tmp_path / "bytes.model").read_bytes(), "bpe")
    side = ExtensibleModel(model)
    new = side.learn(NEW, OLD, 100)
    letter = next(n for n in new if n.piece == "с")
    assert [model.piece(n) for n in side.old_ids(letter)] == ["<0xD1>", "<0x81>"]
    _, longer = extend(side, 100, OLD)
    assert "<0x" not in " ".join(longer.piece(n) for n in longer.encode(["собака"])[0])


def imported():
    content = subwords(0, 170)
    numbers = vocabulary(content, subwords(1, 150))
    special = {"pad": "<pad>", "unknown": "<unk>", "end": "</s>"}
    return ImportedModel(IdMapping.of(numbers, special, len(numbers)), "sentencepiece", content)


def test_an_imported_model_keeps_the_ids_of_its_toolkit():
    model = imported()
    side = ExtensibleModel(model)
    english = [pair[0] for pair in text()]
    _, longer = extend(side, 40, english)
    assert longer.encode(english) == model.encode(english)
    assert longer.id_mapping.origins[: model.size] == model.id_mapping.origins
    last = model.id_mapping.rows
    assert longer.id_mapping.origins[model.size :] == tuple(
        range(last, last + longer.size - model.size)
    )
    assert longer.tags[">>de<<"] == model.size
    assert sum(map(len, longer.encode(NEW))) < sum(map(len, model.encode(NEW)))


def test_other_vocabularies_are_refused():
    words = VocabularyModel(Vocabulary(["a", "b"]))
    with pytest.raises(TokenizerError, match=r"kind word-list.*--reset tokenizer"):
        ExtensibleModel(words)
    model = imported()
    mapping = model.id_mapping
    sentinel = IdMapping((*mapping.pieces, "<extra_id_0>"), (*mapping.origins, mapping.rows))
    with pytest.raises(TokenizerError, match=r"this vocabulary of T5 ends with <extra_id_0>"):
        ExtensibleModel(ImportedModel(sentinel, "sentencepiece", subwords(0, 170)))


def test_what_is_made_of_a_dropped_subword_is_dropped():
    pieces = [
        NewPiece("ab", ("a", "b"), ("a", "b")),
        NewPiece("abc", ("a", "b", "c"), ("ab", "c")),
        NewPiece("cd", ("c", "d"), ("c", "d")),
    ]
    assert [new.piece for new in without(pieces, {"ab"})] == ["cd"]
