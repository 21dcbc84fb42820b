"""References and systems beside a translation, in plain files and in test sets of WMT."""

import random
from pathlib import Path

import pytest
from sacrebleu.dataset.wmt_xml import WMTXMLDataset
from sacrebleu.metrics import BLEU, CHRF, TER

from heedful.analysis.aligned_texts import AlignedTexts, scored_lines
from heedful.analysis.evaluate import as_text, evaluate
from heedful.errors import TextError
from heedful.text.corpus import one_file, read_lines
from tests.support.wmt import write_xml

DOCUMENTS = [
    {
        "src": ["a big dog", "my boy stays", "no"],
        "ref:A": ["le gros chien rouge dort", "", ""],
        "ref:B": ["", "mon fils reste toujours ici", ""],
        "hyp:x": ["le gros chien rouge", "mon fils reste ici", "non, jamais, personne"],
    },
    {"src": ["the horse"], "hyp:x": ["le cheval"]},
    {
        "src": ["a cat"],
        "ref:A": ["un chat noir et blanc"],
        "ref:B": ["le chat noir"],
        "hyp:x": ["un chat noir"],
    },
]


@pytest.fixture(scope="module")
def wmt21(corpora: Path):
    """Documents of newstest2021 with two references, each without some segments."""
    folder, sides = corpora / "fixtures-bleu/wmt21-en-de", {}
    parts = {"src": "src.en", "ref:A": "ref.A.de", "ref:C": "ref.C.de", "hyp:x": "hyp.UEdin.de"}
    for side, part in parts.items():
        sides[side] = list(read_lines(folder / f"newstest2021.en-de.{part}.xz"))[:80]
    draw = random.Random(1)
    for side in ("ref:A", "ref:C"):
        sides[side] = [line if draw.random() < 0.6 else "" for line in sides[side]]
    return [
        {side: lines[start : start + 10] for side, lines in sides.items()}
        for start in range(0, 80, 10)
    ]


def scores(found):
    return [found.scores[name].score for name in ("bleu", "chrf", "ter")]


def test_segments_without_a_reference_are_left_out_as_by_sacrebleu(tmp_path, wmt21):
    path = write_xml(tmp_path / "set.xml", *wmt21)
    theirs = WMTXMLDataset._unwrap_wmt21_or_later(str(path))
    sets = [[line or None for line in theirs[side]] for side in ("ref:A", "ref:C")]
    metrics = (BLEU(), CHRF(), TER())
    expected = [metric.corpus_score(theirs["x"], sets).score for metric in metrics]
    references = [f"{path}:ref:A", f"{path}:ref:C"]
    found = evaluate(Path(f"{path}:hyp:x"), references, language="de")
    assert scores(found) == expected
    assert found.lines == (len(theirs["x"]), 80)
    assert "nrefs:var" in found.scores["bleu"].signature
    note = f"{80 - len(theirs['x'])} of 80 segments have no reference and are not scored"
    assert as_text(found).splitlines()[6:9] == ["", note, ""]
    plain = found.to_dict()
    assert (plain["scored_lines"], plain["lines"]) == found.lines
    # One of the references alone: what it lacks is left out, though the other has it.
    ours = [(h, r) for h, r in zip(theirs["x"], sets[0], strict=True) if r is not None]
    lines, references = map(list, zip(*ours, strict=True))
    alone = evaluate(Path(f"{path}:hyp:x"), [f"{path}:ref:A"], language="de")
    assert scores(alone) == [metric.corpus_score(lines, [references]).score for metric in metrics]


def test_documents_in_another_order_are_aligned_by_their_names(tmp_path):
    first = write_xml(tmp_path / "first.xml", *DOCUMENTS)
    second = write_xml(tmp_path / "second.xml", *DOCUMENTS, order=[2, 0, 1])
    plain = tmp_path / "hyp.fr"
    plain.write_text("".join(f"{line}\n" for line in read_lines(one_file(f"{first}:hyp:x"))))
    same = scores(evaluate(Path(f"{first}:hyp:x"), [f"{first}:ref:A"], language="fr"))
    for hypothesis, reference in ((first, second), (second, first)):
        found = evaluate(
            Path(f"{hypothesis}:hyp:x"),
            [f"{reference}:ref:A"],
            against=[f"{reference}:hyp:x"],
            source=Path(f"{reference}:src"),
            language="fr",
        )
        assert scores(found) == same
        assert found.lines == (2, 5)
        assert found.rivals[0].comparisons["bleu"].difference == 0
    assert scores(evaluate(plain, [f"{first}:ref:A"], language="fr")) == same


def test_other_sets_are_refused_with_the_segment(tmp_path):
    whole = write_xml(tmp_path / "whole.xml", *DOCUMENTS)
    part = write_xml(tmp_path / "part.xml", *DOCUMENTS[:2])
    with pytest.raises(TextError, match=r"part.xml:hyp:x must have every segment of .*whole.xml:"):
        evaluate(Path(f"{part}:hyp:x"), [f"{whole}:ref:A"])
    with pytest.raises(TextError, match="but lacks segment “1” of the document “2”"):
        AlignedTexts(one_file(f"{whole}:hyp:x"), "hypothesis").read(one_file(f"{part}:src"), "so")
    # A reference may lack them.
    found = evaluate(Path(f"{whole}:hyp:x"), [f"{part}:ref:A"], language="fr")
    assert found.lines == (1, 5)


def test_an_empty_line_of_a_plain_reference_is_scored(tmp_path):
    for name, text in (("hyp", "a b\nc\n"), ("ref", "a b\n\n")):
        (tmp_path / name).write_text(text)
    texts = AlignedTexts(one_file(tmp_path / "hyp"), "hypothesis")
    reference = texts.read_reference(one_file(tmp_path / "ref"))
    assert reference == ["a b", ""]
    assert scored_lines([reference]) == [0, 1]
    assert evaluate(tmp_path / "hyp", [tmp_path / "ref"]).lines == (2, 2)


def test_sgm_files_are_aligned_by_their_documents(tmp_path):
    documents = [
        '<doc docid="b/1"><seg id="1">le chien dort</seg></doc>',
        '<doc docid=a><seg id="1">le chat</seg><seg id="2">noir</seg></doc>',
    ]
    for name, order in (("hyp.sgm", documents), ("ref.sgm", documents[::-1])):
        (tmp_path / name).write_text(f"<refset>{''.join(order)}</refset>")
    found = evaluate(tmp_path / "hyp.sgm", [tmp_path / "ref.sgm"], language="fr")
    assert found.scores["exact_match"].score == 100
