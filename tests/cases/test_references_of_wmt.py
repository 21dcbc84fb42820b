"""WMT's XML: segments without a reference are not scored, in whatever order they stand."""

import sacrebleu
from sacrebleu.dataset.wmt_xml import WMTXMLDataset

from heedful.analysis.evaluate import as_text, evaluate

SET = """<?xml version='1.0' encoding='utf-8'?>
<dataset id="x"><doc origlang="en" id="d1">
<src lang="en"><p><seg id="1">a small black cat</seg><seg id="2">it rains</seg></p></src>
<ref lang="fr" translator="A"><p><seg id="1">un petit chat noir</seg></p></ref>
<hyp lang="fr" system="S"><p><seg id="2">il pleut</seg><seg id="1">un gros chat noir</seg></p></hyp>
</doc>
<doc origlang="fr" id="d2">
<src lang="en"><p><seg id="10">the horse</seg><seg id="9">a dog</seg></p></src>
<hyp lang="fr" system="S"><p><seg id="9">un chien</seg><seg id="10">le cheval</seg></p></hyp>
</doc></dataset>
"""


def test_the_scores_are_those_of_sacrebleu_and_the_rest_is_counted(tmp_path):
    path = tmp_path / "w.xml"
    path.write_text(SET, encoding="utf-8")
    evaluation = evaluate(f"{path}:hyp:S", f"{path}:ref:A", language="fr")
    assert "3 of 4 segments have no reference and are not scored" in as_text(evaluation)
    sides = WMTXMLDataset._unwrap_wmt21_or_later(str(path))
    expected = sacrebleu.corpus_bleu(sides["S"], [sides["ref:A"]])
    assert evaluation.scores["bleu"].score == expected.score
