from heedful.evaluation.bleu import evaluate_texts
from heedful.evaluation.validation import ValidationScorer

ALL = ("bleu", "chrf", "exact_match", "cer")


def test_scores_are_those_of_the_evaluation():
    texts, references = ["私は犬が好きです。"], ["私は赤い犬が好きです。"]
    found = ValidationScorer(references, "ja", ALL)(texts)
    scores = evaluate_texts(texts, [references], language="ja")
    assert found["bleu"] == scores.bleu.score
    assert found["bleu_signature"] == scores.bleu.signature
    assert found["chrf"] == scores.chrf.score
    assert found["exact_match"] == scores.exact_match.score == 0
    assert found["cer"] == scores.cer.score == 200 / 11
    # what no file's ending tells, the script does
    assert ValidationScorer(references, "tgt", ALL)(texts) == found
