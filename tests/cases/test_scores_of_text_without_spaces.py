"""Validation scores of Chinese, Japanese and Korean are senseless by the rule for spaces."""

import pytest

from heedful.analysis.evaluate import evaluate
from heedful.evaluation.validation import ValidationScorer

TEXT = {
    "zh": ["一只红色的大狗在雪地里奔跑。", "两个男人坐在长椅上。"],
    "ja": ["大きな赤い犬が雪の中を走っている。", "二人の男がベンチに座っています。"],
    "ko": ["큰 빨간 개가 눈 속을 달린다.", "두 남자가 벤치에 앉아 있다."],
    "th": ["สุนัขสีแดงตัวใหญ่วิ่งในหิมะ", "ชายสองคนนั่งบนม้านั่ง"],
}
CODES = {
    "zh": ("zh", "ZH", "zh_CN", "zh-Hant", "zho", "zho_Hans", "chi", "cmn-Hans-CN", "yue", "nan"),
    "ja": ("ja", "ja_JP", "jpn", "jpn_Jpan", "JA-jp"),
    "ko": ("ko", "ko_KR", "kor", "kor_Hang"),
    "th": ("th", "tha", "th-TH"),
}
RULES = {"zh": ("zh",), "ja": ("ja-mecab", "char"), "ko": ("ko-mecab", "char"), "th": ("char",)}


@pytest.mark.parametrize(
    ("language", "code"), [(language, code) for language, codes in CODES.items() for code in codes]
)
def test_every_spelling_of_a_code_has_the_rule_of_its_language(language, code):
    references = TEXT[language] * 4
    scorer = ValidationScorer(references, code)
    found = scorer([line[:-3] for line in references])
    if language != "ko":  # by rule 13a each line is one word, and none is equal
        assert found["bleu"] > 20
    assert any(f"tok:{rule}" in found["bleu_signature"] for rule in RULES[language])
    assert scorer(references)["bleu"] == pytest.approx(100)


@pytest.mark.parametrize("language", TEXT)
def test_the_ending_of_a_file_that_is_no_code_leaves_the_script_to_decide(language):
    signature = ValidationScorer(TEXT[language] * 4, "tgt").signature
    assert any(f"tok:{rule}" in signature for rule in RULES[language])


@pytest.mark.parametrize(
    ("ending", "rule"),
    [
        ("zh_CN", "zh"),
        ("zho_Hans", "zh"),
        ("zh-Hant", "zh"),
        ("ZH", "ja-mecab"),
        ("txt", "ja-mecab"),
    ],
)
def test_the_ending_of_a_file_may_have_a_region_or_a_script(tmp_path, ending, rule):
    # Kana decide only where the ending is not a code; capitals alone name a system, as in out.MT.
    for name in ("out", "ref"):
        (tmp_path / f"{name}.{ending}").write_text("\n".join(TEXT["ja"]) + "\n", encoding="utf-8")
    evaluation = evaluate(tmp_path / f"out.{ending}", tmp_path / f"ref.{ending}")
    rules = {rule, "char"} if rule == "ja-mecab" else {rule}
    signature = evaluation.scores["bleu"].signature
    assert any(f"tok:{name}" in signature for name in rules)


def test_the_papers_bleu_knows_the_language_of_a_regional_ending(tmp_path):
    for name in ("out", "ref"):
        (tmp_path / f"{name}.pt_BR").write_text("um cão vermelho dorme aqui\n", encoding="utf-8")
    evaluation = evaluate(tmp_path / "out.pt_BR", tmp_path / "ref.pt_BR")
    assert "tok:moses-pt" in evaluation.scores["paper_bleu"].signature
