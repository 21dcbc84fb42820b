import logging

import pytest
from sacrebleu.tokenizers import tokenizer_ja_mecab

from heedful.errors import TextError
from heedful.evaluation.bleu import evaluate_texts, text_metrics
from heedful.evaluation.languages import (
    bleu_tokenizer,
    check_language,
    language_code,
    written_language,
)
from heedful.evaluation.mbr_utility import bleu_table, utility

JAPANESE = ["私は赤い大きな犬が好きです。", "彼女は私の娘です。"]
SIMILAR = ["私は赤い小さな犬が好きです。", "彼女は私の娘です。"]
KOREAN = ["나는 큰 빨간 개를 좋아한다."]
UNSPACED = {
    "th": "นี่คือหนังสือเล่มหนึ่ง",
    "lo": "ນີ້ແມ່ນປຶ້ມ",
    "bo": "འདི་དཔེ་ཆ་ཞིག་རེད།",
    "my": "ဒါက စာအုပ်တစ်အုပ်ပါ",
    "km": "នេះគឺជាសៀវភៅ",
}
CHINESE = ["我喜欢红色的大狗。"]


@pytest.mark.parametrize("language", ["zh", "zh-TW", "ZH_cn", "zho_Hans", "yue", "zt"])
def test_a_region_is_no_part_of_the_code(language):
    assert language_code(language) == "zh"


@pytest.mark.parametrize(
    ("language", "lines", "name"),
    [
        ("ja", JAPANESE, "ja-mecab"),
        ("jpn_Jpan", JAPANESE, "ja-mecab"),
        ("ko-KR", KOREAN, "ko-mecab"),
    ],
)
def test_japanese_and_korean_have_their_segmenters(language, lines, name):
    scores = evaluate_texts(lines, [lines], language=language)
    assert f"tok:{name}" in scores.bleu.signature
    assert scores.bleu.score == pytest.approx(100)


def test_without_its_segmenter_japanese_is_scored_by_characters_and_said_once(monkeypatch, caplog):
    bleu_tokenizer.cache_clear()
    monkeypatch.setattr(tokenizer_ja_mecab, "MeCab", None)
    with caplog.at_level(logging.WARNING):
        scores = evaluate_texts(SIMILAR, [JAPANESE], language="ja")
        evaluate_texts(SIMILAR, [JAPANESE], language="ja")
    bleu_tokenizer.cache_clear()
    assert "tok:char" in scores.bleu.signature
    assert 50 < scores.bleu.score < 100
    (said,) = caplog.messages
    assert "pip install 'heedful[ja]'" in said
    assert "\n" not in said


@pytest.mark.parametrize("language", ["xx", "japanese", "d", "12"])
def test_what_is_no_code_is_refused(language):
    with pytest.raises(TextError, match=f"got “{language}”"):
        check_language(language)


@pytest.mark.parametrize("language", ["", "de", "pt-BR", "eng_Latn", "gsw"])
def test_codes_of_two_and_three_letters_are_taken(language):
    check_language(language)


def test_languages_without_spaces_and_korean_are_known_by_their_script():
    found = [written_language(lines) for lines in (JAPANESE, KOREAN, CHINESE, ["the dog"], [""])]
    assert found == ["ja", "ko", "zh", "", ""]
    assert [written_language([line]) for line in UNSPACED.values()] == [*UNSPACED]


@pytest.mark.parametrize("language", ["th", "th_TH", "tha", "km", "lo", "my", "bo", "dz"])
def test_other_languages_without_spaces_are_counted_in_characters(language):
    line = UNSPACED.get(language[:2], UNSPACED["th"])
    scores = evaluate_texts([line[:-1]], [[line]], language=language)
    assert 50 < scores.bleu.score < 100
    assert "tok:char" in scores.bleu.signature


def test_agreement_of_translations_counts_words_of_the_language():
    table = utility("bleu", "ja")([JAPANESE[0], SIMILAR[0]], [JAPANESE[0]])
    assert 10 < table[1, 0] < table[0, 0] == pytest.approx(100)
    assert bleu_table([SIMILAR[0]], [JAPANESE[0]])[0, 0] == 0


def test_edits_of_japanese_are_counted_in_characters():
    ter = text_metrics([JAPANESE], language="ja")["ter"]
    assert 0 < ter.corpus_score(SIMILAR, None).score < 50
    assert "asian:yes" in str(ter.get_signature())
