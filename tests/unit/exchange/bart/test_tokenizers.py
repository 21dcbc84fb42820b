import pytest

from heedful.exchange.bart import languages
from heedful.exchange.bart.tokenizers import is_wmt21, new_languages, notes_on, tokenizer_class
from heedful.tokenization.frame import Frame
from heedful.tokenization.id_mapping import IdMapping
from heedful.tokenization.imported_model import ImportedModel
from heedful.tokenization.model_proto import build_model
from heedful.tokenization.tokenizer import Tokenizer

NAMES = {"unknown": "<unk>", "start": "<s>", "end": "</s>"}


def tokenizer(codes, spelling="{}", cut="bpe", target="first", rows=("▁a", "b")):
    content = build_model(cut, [("▁a", 0.0), ("b", -1.0)], b"", NAMES)
    tokens = {code: spelling.format(code) for code in codes}
    listed = ["<s>", "<pad>", "</s>", "<unk>", *rows, *tokens.values()]
    numbers = {piece: number for number, piece in enumerate(listed)}
    mapping = IdMapping.of(numbers, {**NAMES, "pad": "<pad>"}, len(listed))
    ours = {piece: number for number, piece in enumerate(mapping.pieces)}
    return Tokenizer(
        ImportedModel(mapping, "sentencepiece", content),
        source_language=codes[0],
        target_language=codes[1],
        frame=Frame("before", target, {code: ours[token] for code, token in tokens.items()}),
    )


M2M100 = languages.M2M100.split()
WMT21 = languages.WMT21.split()


@pytest.mark.parametrize(
    ("codes", "more", "name"),
    [
        (M2M100, {}, "M2M100Tokenizer"),
        ([*M2M100, "nds"], {}, "NllbTokenizer"),
        ([*WMT21, "af"], {}, "NllbTokenizer"),
        ([*M2M100, "nds"], {"cut": "unigram"}, "M2M100Tokenizer"),
        ([*M2M100, "nds"], {"rows": ("▁a",)}, "M2M100Tokenizer"),
    ],
)
def test_an_m2m100_with_a_further_language_needs_another_class_if_it_can_be(codes, more, name):
    made = tokenizer(codes, "__{}__", **more)
    assert tokenizer_class(made, "m2m_100") == name
    new = [code for code in codes if code not in (WMT21 if is_wmt21(codes) else M2M100)]
    assert new_languages(made, "m2m_100") == new


def test_other_classes_and_what_they_list():
    nllb = tokenizer(["eng_Latn", "nds_Latn"])
    assert tokenizer_class(nllb, "m2m_100") == "NllbTokenizer"
    assert new_languages(nllb, "m2m_100") == []
    mbart = tokenizer(["en_XX", "uk_UA", "nds_DE"], target="start")
    assert tokenizer_class(mbart, "mbart") == "MBartTokenizer"
    assert new_languages(mbart, "mbart") == ["uk_UA", "nds_DE"]
    fifty = tokenizer(["en_XX", "uk_UA", "nds_DE"])
    assert tokenizer_class(fifty, "mbart") == "MBart50Tokenizer"
    assert new_languages(fifty, "mbart") == ["nds_DE"]


def test_a_note_says_how_a_new_language_is_named():
    assert notes_on("NllbTokenizer", "m2m_100", []) == ()
    assert notes_on("MBartTokenizer", "mbart", ["nds_DE"]) == ()
    for name, kind, words in (
        ("NllbTokenizer", "m2m_100", 'src_lang="__nds__"'),
        ("MBart50Tokenizer", "mbart", 'tokenizer.src_lang = "__nds__"'),
        ("M2M100Tokenizer", "m2m_100", 'convert_tokens_to_ids("__nds__")'),
    ):
        (note,) = notes_on(name, kind, ["__nds__"])
        assert words in note
