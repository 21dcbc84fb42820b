import io
import json

import pytest
import sentencepiece

from heedful.errors import TokenizerError
from heedful.tokenization.byte_level import to_symbols
from heedful.tokenization.id_mapping import IdMapping
from heedful.tokenization.imported_model import ImportedModel
from heedful.tokenization.tokenizer import Tokenizer
from heedful.translation.aligner import segment_text

NAMES = ["</s>", "<unk>", ">>fr<<", "a", "b", "c", "<pad>"]
SPECIAL = {"pad": "<pad>", "unknown": "<unk>", "end": "</s>"}
NUMBERS = {name: number for number, name in enumerate(NAMES)}
NUMBERING = IdMapping.of(NUMBERS, SPECIAL, 8)


def test_special_symbols_come_first_and_the_rest_keeps_its_order():
    assert NUMBERING.pieces == ("<pad>", "<unk>", "<s>", "</s>", ">>fr<<", "a", "b", "c", None)
    assert NUMBERING.origins == (6, 1, None, 0, 2, 3, 4, 5, 7)
    assert NUMBERING.rows == 8
    assert NUMBERING.to_ours([3, 0, 99]) == [5, 3, 1]
    assert NUMBERING.to_theirs([5, 3, 0]) == [3, 0, 6]


def test_a_missing_special_symbol_is_the_token_with_our_spelling():
    mapping = IdMapping.of({**NUMBERS, "<s>": 7}, SPECIAL, 8)
    assert mapping.pieces == ("<pad>", "<unk>", "<s>", "</s>", ">>fr<<", "a", "b", "c")
    assert mapping.origins == (6, 1, 7, 0, 2, 3, 4, 5)
    assert IdMapping.from_json(mapping.to_json()) == mapping


def test_no_text_produces_tags_special_symbols_or_nameless_rows():
    model = ImportedModel(NUMBERING, "spaces")
    assert model.encode(["a c", "</s> >>fr<< <7> <pad>", ""]) == [[5, 7], [1, 1, 1, 1], []]
    assert model.tags == {">>fr<<": 4}
    assert model.decode([5, 1, 6]) == "a ⁇ b"
    assert model.piece(8) == "<7>"


@pytest.mark.parametrize("cutter", ["spaces", "codes"])
def test_it_is_saved_and_read_again(cutter, tmp_path):
    content = b"#version: 0.2\na b\n" if cutter == "codes" else b""
    model = ImportedModel(NUMBERING, cutter, content)
    tokenizer = Tokenizer(model, source_language="en", target_language="fr")
    tokenizer.save(tmp_path)
    again = Tokenizer.load(tmp_path)
    assert (again.kind, again.fingerprint) == (tokenizer.kind, tokenizer.fingerprint)
    assert again.encode_source([">>fr<< a c"]) == tokenizer.encode_source([">>fr<< a c"])
    assert again.models[0].id_mapping == NUMBERING
    assert json.loads((tmp_path / "tokenizer.json").read_text())["format"] == 3


@pytest.mark.parametrize("cutter", ["bytes", "spaced-bytes"])
def test_bytes_are_merged_shown_and_joined_again(cutter, tmp_path):
    names = ["<s>", "<pad>", "</s>", "<unk>", *to_symbols(" acé▁"), "Ġa", "Ġac"]
    special = {"start": "<s>", "pad": "<pad>", "end": "</s>", "unknown": "<unk>"}
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    id_mapping = IdMapping.of(numbers, special, len(numbers))
    model = ImportedModel(id_mapping, cutter, "Ġ a\nĠa c\n".encode())
    tokenizer = Tokenizer(model, source_language="", target_language="")
    tokenizer.save(tmp_path)
    again = Tokenizer.load(tmp_path)
    texts = ["ac é a", "<s>é▁", ""]
    (first, *rest), *_ = shown = [again.pieces_source(ids) for ids in again.encode_source(texts)]
    assert shown == [tokenizer.pieces_source(ids) for ids in tokenizer.encode_source(texts)]
    assert [first, *rest][-2:] == ["©", "▁a"]
    assert first == ("▁ac" if cutter == "spaced-bytes" else "a")
    assert [again.decode(ids) for ids in again.encode_source(["ac é a", "é▁", ""])] == [
        "ac é a",
        "é▁",
        "",
    ]
    assert model.decode([4, 1]) == "⁇"
    assert len(segment_text(again.models[0], "é▁ a", *_ids_and_pieces(again, "é▁ a")).units) == 2


def _ids_and_pieces(tokenizer, text):
    (ids,) = tokenizer.encode_source([text])
    return ids, tokenizer.pieces_source(ids)


def test_two_models_with_one_vocabulary_share_it(tmp_path):
    models = ImportedModel(NUMBERING, "spaces"), ImportedModel(NUMBERING, "spaces")
    tokenizer = Tokenizer(*models, source_language="", target_language="")
    assert tokenizer.shared
    tokenizer.save(tmp_path)
    assert Tokenizer.load(tmp_path).shared
    other = ImportedModel(IdMapping.of({**NUMBERS, "d": 7}, SPECIAL, 8), "spaces")
    assert not Tokenizer(models[0], other, source_language="", target_language="").shared


def test_a_vocabulary_that_cannot_be_numbered_says_all_that_is_wrong():
    with pytest.raises(TokenizerError) as caught:
        IdMapping.of({**NUMBERS, "x": 99, "y": 3}, SPECIAL | {"pad": "<blank>"}, 8)
    for part in ("'x' has the id 99", "have the id of another piece: 1", "lacks '<blank>'"):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    "record",
    [
        "[",
        "[]",
        '{"pieces": ["a"], "ids": [0]}',
        '{"pieces": ["a", "b", "c", "d", "d"], "ids": [0, 1, 2, 3, 4]}',
        '{"pieces": ["a", "b", "c", "d", "e"], "ids": [0, 1, 2, 3, 3]}',
        '{"pieces": ["a", "b", "c", "d", "e"], "ids": [0, 1, 2, 3, null]}',
        '{"pieces": ["a", "b", "c", "d", 5], "ids": [0, 1, 2, 3, 4]}',
        '{"pieces": ["a", "b", null, "d", "e"], "ids": [0, 1, 2, 3, 4]}',
    ],
)
def test_a_damaged_list_is_refused(record):
    with pytest.raises(TokenizerError):
        ImportedModel.from_files("imported-spaces", {"imported.json": record.encode()})


def test_a_file_that_is_no_sentencepiece_model_is_refused():
    with pytest.raises(TokenizerError, match="sentencepiece"):
        ImportedModel(NUMBERING, "sentencepiece", b"no model")


def test_a_sentencepiece_model_with_a_subword_that_is_no_utf8_is_refused():
    content = io.BytesIO()
    lines = iter(["ab cab", "bac ab", "cc ab"])
    options = {"vocab_size": 9, "model_type": "bpe", "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=lines, model_writer=content, **options
    )
    ImportedModel(NUMBERING, "sentencepiece", content.getvalue())
    damaged = content.getvalue().replace(b"ab", b"a\xb5")
    assert damaged != content.getvalue()
    with pytest.raises(TokenizerError, match="must be a sentencepiece model in UTF-8"):
        ImportedModel(NUMBERING, "sentencepiece", damaged)


def test_sentinels_stand_anywhere_in_text():
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the dog sees the cat"] * 20),
        model_writer=made,
        vocab_size=16,
        minloglevel=2,
        hard_vocab_limit=False,
        **{"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1},
    )
    processor = sentencepiece.SentencePieceProcessor(model_proto=made.getvalue())
    size = processor.get_piece_size()
    numbers = {processor.id_to_piece(n): n for n in range(size)}
    numbers |= {"<extra_id_1>": size, "<extra_id_0>": size + 1}
    special = {"pad": "<pad>", "unknown": "<unk>", "end": "</s>"}
    mapping = IdMapping.of(numbers, special, size + 2)
    model = ImportedModel(mapping, "sentencepiece", made.getvalue())

    def pieces(text):
        return [model.piece(n) for n in model.encode([text])[0]]

    def plain(text):
        return processor.encode(text, out_type=str)

    gaps = ["<extra_id_0>", "<extra_id_1>"]
    assert pieces("the <extra_id_0> sees<extra_id_1>the cat") == [
        *plain("the"),
        *gaps[:1],
        *plain("sees"),
        *gaps[1:],
        *plain("the cat"),
    ]
    assert pieces("<extra_id_1><extra_id_0>") == gaps[::-1]
    assert set(gaps).isdisjoint(pieces("<extra_id_2> <extra_id_>"))
    assert model.decode(model.encode(["the <extra_id_0> cat"])[0]) == "the<extra_id_0> cat"
