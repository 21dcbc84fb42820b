from heedful.exchange.bart.renumber import renumber_pieces
from heedful.tokenization.frame import Frame
from heedful.tokenization.id_mapping import IdMapping
from heedful.tokenization.imported_model import ImportedModel
from heedful.tokenization.model_proto import AddedPiece, build_model, with_pieces
from heedful.tokenization.tokenizer import Tokenizer

NAMES = {"unknown": "<unk>", "start": "<s>", "end": "</s>"}
FIRST = ("<s>", "<pad>", "</s>", "<unk>", "▁a", "b")


def tokenizer(listed, subwords=("▁a", "b")):
    """A tokenizer whose rows are `listed`, in this order; None for one without a token."""
    content = build_model("bpe", [("▁a", 0.0), ("b", -1.0)], b"", NAMES)
    content = with_pieces(content, [AddedPiece(piece, -9.0) for piece in subwords[2:]])
    numbers = {piece: number for number, piece in enumerate(listed) if piece is not None}
    mapping = IdMapping.of(numbers, {**NAMES, "pad": "<pad>"}, len(listed))
    ours = {piece: number for number, piece in enumerate(mapping.pieces)}
    languages = {piece: ours[piece] for piece in listed if piece and "_" in piece}
    return Tokenizer(
        ImportedModel(mapping, "sentencepiece", content),
        source_language="en_XX",
        target_language="fr_XX",
        frame=Frame("before", "first", languages),
    )


def order(made):
    mapping = made.models[0].id_mapping
    places = {number: piece for piece, number in zip(mapping.pieces, mapping.origins, strict=True)}
    return [places[number] for number in range(len(places))]


def test_languages_and_mask_come_behind_all_subwords_and_other_rows_last():
    old = (*FIRST, "en_XX", "fr_XX", "<mask>", None)
    longer = tokenizer((*old, "xx_XX", "▁ab", "yy_XX", "c"), ("▁a", "b", "▁ab", "c"))
    made = renumber_pieces(longer)
    expected = [*FIRST, "▁ab", "c", "en_XX", "fr_XX", "<mask>", "xx_XX", "yy_XX", None]
    assert order(made) == expected
    assert made.encode_source(["ab c"]) == longer.encode_source(["ab c"])
    assert made.frame == longer.frame


def test_what_was_not_extended_keeps_its_numbers():
    for behind in (
        ("en_XX", "fr_XX", "<mask>", None),
        ("<mask>", "en_XX", "fr_XX", None),
        ("spare", None, "en_XX", "fr_XX"),
    ):
        made = tokenizer((*FIRST, *behind))
        assert renumber_pieces(made) is made


def test_a_vocabulary_without_languages_stays():
    model = tokenizer((*FIRST, "en_XX", "fr_XX")).models[0]
    made = Tokenizer(model, source_language="en", target_language="fr")
    assert renumber_pieces(made) is made
