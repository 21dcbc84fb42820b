import json

import pytest

from heedful.errors import SettingError, TokenizerError
from heedful.tokenization.frame import Frame
from heedful.tokenization.id_mapping import IdMapping
from heedful.tokenization.imported_model import ImportedModel
from heedful.tokenization.special_symbols import END, START
from heedful.tokenization.tokenizer import Tokenizer

NAMES = ["<pad>", "<unk>", "<s>", "</s>", "a", "b", "de_DE", "en_XX", "zh_CN"]
SPECIAL = dict(zip(("pad", "unknown", "start", "end"), NAMES, strict=False))
LANGUAGES = {"de_DE": 6, "en_XX": 7, "zh_CN": 8}


def framed(source="before", target="first", languages=LANGUAGES, pair=("de_DE", "en_XX")):
    mapping = IdMapping.of({name: n for n, name in enumerate(NAMES)}, SPECIAL, len(NAMES))
    return Tokenizer(
        ImportedModel(mapping, "spaces"),
        source_language=pair[0],
        target_language=pair[1],
        frame=Frame(source, target, languages),
    )


def test_tokens_stand_around_each_text_and_are_not_shown():
    tokenizer = framed()
    assert tokenizer.encode_source(["a b", ""]) == [[6, 4, 5], []]
    assert tokenizer.encode_target(["b", ""]) == [[7, 5], []]
    assert tokenizer.encode_phrases(["b"]) == [[5]]
    assert tokenizer.decode([7, 4, 5, END]) == "a b"
    assert tokenizer.decode_source([6, 4, 5]) == "a b"
    assert tokenizer.start == START
    behind = framed("behind", "start")
    assert behind.encode_source(["a"]) == [[4, END, 6]]
    assert behind.encode_target(["b"]) == [[5]]
    assert behind.start == 7
    assert behind.decode_source([4, END, 6]) == "a"


def test_text_does_not_spell_a_language():
    tokenizer = framed()
    assert 8 not in tokenizer.encode_phrases(["zh_CN a"])[0]


def test_a_frame_without_languages_is_the_start_symbol():
    tokenizer = framed(languages={}, pair=("x", "y"))
    assert tokenizer.encode_source(["a"]) == [[START, 4]]
    assert tokenizer.before_target == [START]
    assert tokenizer.languages == ()


@pytest.mark.parametrize("name", ["de", "deu", "de-AT", "DE_de", "deu_Latn"])
def test_languages_are_found_by_any_code(name):
    assert framed().between("en", name, ("", "")).target_language == "de_DE"


def test_an_unknown_language_names_the_near_ones():
    with pytest.raises(SettingError, match=r"--to must be a language .*similar ones are zh_CN"):
        framed().between("", "zh-TW", ("--from", "--to"))
    with pytest.raises(SettingError, match="some of its 3 languages are de_DE"):
        framed().between("", "tlh", ("--from", "--to"))


def test_a_model_of_one_direction_has_no_choice():
    tokenizer = framed(languages={}, pair=("de", "en"))
    assert tokenizer.between("de-DE", "", ("", "")).source_language == "de"
    with pytest.raises(SettingError, match="single direction, de to en"):
        tokenizer.between("fr", "", ("--from", "--to"))


def test_it_is_saved_and_read_again(tmp_path):
    tokenizer = framed("behind", "start")
    tokenizer.save(tmp_path)
    again = Tokenizer.load(tmp_path)
    assert again.frame == tokenizer.frame
    assert again.fingerprint == tokenizer.fingerprint
    assert again.fingerprint == again.between("en", "zh", ("", "")).fingerprint
    assert again.fingerprint != framed().fingerprint
    place = tmp_path / "tokenizer.json"
    record = json.loads(place.read_text())
    assert record["format"] == 6
    record["target_language"] = "fr_XX"
    place.write_text(json.dumps(record))
    with pytest.raises(TokenizerError, match="languages that have a token"):
        Tokenizer.load(tmp_path)


@pytest.mark.parametrize(
    "record",
    [
        None,
        {},
        {"source": "before", "target": "first", "languages": [["de", 99]]},
        {"source": "before", "target": "first", "languages": [["de", 1]]},
        {"source": "before", "target": "first", "languages": [["de", 6], ["de", 7]]},
        {"source": "above", "target": "first", "languages": []},
        {"source": "before", "target": "first", "languages": [["de"]]},
    ],
)
def test_a_damaged_frame_is_refused(record):
    with pytest.raises(TokenizerError, match=r"`frame` in tokenizer\.json"):
        Frame.from_record(record, 9)
