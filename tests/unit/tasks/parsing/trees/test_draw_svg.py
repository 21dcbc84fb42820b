"""Trees as pictures."""

import random
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from heedful.tasks.parsing.trees.differences import differing_phrases
from heedful.tasks.parsing.trees.draw_svg import draw_pair, draw_tree, text_width
from heedful.tasks.parsing.trees.read import parse_line
from tests.support.random_trees import changed_tree, random_tree

DOCS = Path(__file__).parents[5] / "docs"
SVG = "{http://www.w3.org/2000/svg}"
# The heights of the letters of each kind, in pixels.
SIZES = {"word": 15, "tag": 12, "label": 13, "heading": 14}


def read(text):
    tree = parse_line(text, "text")
    assert tree is not None
    return tree


GOLD = read(
    "(S (NP (PRP she)) (VP (VBD saw) (NP (NP (DT the) (NN dog)) (PP (IN with) (NP (PRP us))))))"
)
FLAT = read(
    "(S (NP (PRP she)) (VP (VBD saw) (NP (DT the) (NN dog)) (PP (IN with) (ADVP (PRP us)))))"
)


def pair(gold, predicted):
    return draw_pair(gold, predicted, differing_phrases(gold, predicted))


def boxes(picture):
    """List kind, text and box (left, top, right, bottom) of every text."""
    found = []

    def walk(node, dy):
        shift = re.match(r"translate\(0 (.*)\)", node.get("transform", ""))
        dy += float(shift[1]) if shift else 0
        if node.tag == f"{SVG}text":
            kind = node.get("class").split()[0]
            width, y = text_width(node.text, SIZES[kind]), float(node.get("y")) + dy
            left = float(node.get("x")) - (width / 2 if node.get("text-anchor") == "middle" else 0)
            found.append(
                (node.get("class"), node.text, (left, y - SIZES[kind], left + width, y + 3))
            )
        for child in node:
            walk(child, dy)

    walk(ElementTree.fromstring(picture), 0.0)
    return found


def texts(picture, kind):
    return [text for found, text, _ in boxes(picture) if found == kind]


def test_words_stand_in_one_line_below_their_tags_and_phrases():
    picture = draw_tree(GOLD)
    assert texts(picture, "word") == list(GOLD.words)
    assert texts(picture, "tag") == list(GOLD.tags)
    assert sorted(texts(picture, "label")) == sorted(label for label, *_ in GOLD.phrases())
    lines = {kind: {box[3] for found, _, box in boxes(picture) if found == kind} for kind in SIZES}
    assert (len(lines["word"]), len(lines["tag"])) == (1, 1)
    assert max(lines["label"]) < max(lines["tag"]) < max(lines["word"])


@pytest.mark.parametrize("seed", range(30))
def test_nothing_overlaps_and_nothing_is_outside(seed):
    source = random.Random(seed)
    words = ["w" * source.choice((1, 1, 2, 5, 12)) for _ in range(source.randint(1, 45))]
    labels = ("S", "NP", "WHADJP", "VP", "UCP-LONG-LABEL", "X")
    gold = random_tree(source, words, labels)
    other = random_tree(source, words[1:] or ["w"])
    for picture in (
        draw_tree(gold),
        pair(gold, changed_tree(source, gold)),
        pair(gold, None),
        pair(gold, other),
    ):
        root = ElementTree.fromstring(picture)
        left, top, width, height = map(float, root.get("viewBox").split())
        assert (root.get("width"), root.get("height")) == (f"{width:g}", f"{height:g}")
        places = [box for _, _, box in boxes(picture)]
        for number, one in enumerate(places):
            assert left <= one[0] < one[2] <= left + width
            assert top <= one[1] < one[3] <= top + height
            for other_box in places[:number]:
                apart = one[2] <= other_box[0] or other_box[2] <= one[0]
                assert apart or one[3] <= other_box[1] or other_box[3] <= one[1]


def test_differences_have_a_shape_and_the_legend_tells_it():
    picture = pair(GOLD, FLAT)
    assert texts(picture, "label missed") == ["NP", "NP"]
    assert texts(picture, "label wrong") == ["ADVP"]
    assert texts(picture, "heading") == [
        "gold: 2 of 7 phrases missed",
        "predicted: 1 of 6 phrases wrong, F1 76.9",
        "only in the gold tree",
        "only in the predicted tree",
    ]
    frames = re.findall(r'<rect class="(missed|wrong)".* rx="(\d+)"', picture)
    assert (
        sorted(frames) == [("missed", "11")] * 3 + [("wrong", "0")] * 2
    )  # one each is the legend's
    assert "stroke-dasharray" in picture
    same = pair(GOLD, GOLD)
    assert texts(same, "heading")[1:] == ["predicted: all 7 phrases right, F1 100.0"]
    assert '<rect class="missed"' not in same


def test_a_sentence_without_a_tree_or_with_other_words_is_drawn():
    assert texts(pair(GOLD, None), "heading")[1:] == ["predicted: no tree", "only in the gold tree"]
    other = pair(GOLD, read("(X (Y z))"))
    assert len(texts(other, "label missed")) == 7
    assert texts(other, "label wrong") == ["X"]


def test_words_of_a_pair_share_their_columns():
    found = [(text, box[0]) for kind, text, box in boxes(pair(GOLD, FLAT)) if kind == "word"]
    assert found[:6] == found[6:]


def test_hostile_text_stays_text():
    tree = read("(S\"><b> (X <script>alert='&amp;'</script>) (]]>\x1b (Y\ud800 \u202edog)))")
    picture = draw_tree(tree)
    root = ElementTree.fromstring(picture)
    known = {"svg", "title", "desc", "style", "rect", "g", "path", "text"}
    assert {node.tag.removeprefix(SVG) for node in root.iter()} == known
    assert texts(picture, "word") == ["<script>alert='&amp;'</script>", "\\u202edog"]
    assert texts(picture, "label") == ["]]>\\x1b", 'S"><b>']
    assert texts(picture, "tag") == ["X", "Y\\ud800"]
    picture.encode("utf-8")
    (long,) = texts(draw_tree(read(f"(S (NN {'x' * 5000}))")), "word")
    assert long == "x" * 39 + "…"


def test_a_picture_needs_no_other_file_and_knows_dark_pages():
    picture = pair(GOLD, FLAT)
    assert re.findall(r"https?://[^\"]*", picture) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"href|url\(|@import|<script", picture)
    assert "prefers-color-scheme:dark" in picture
    assert "<title>she saw the dog with us</title>" in picture
    assert str(GOLD) in picture
    styles = re.search(r"<style>(.*)</style>", picture, re.S)[1]
    rules = [rule for rule in styles.split() if "{" in rule and not rule.startswith("@media")]
    selectors = [
        one for rule in re.findall(r"([^{}\n]+)\{[^{}]*\}", styles) for one in rule.split(",")
    ]
    assert len(selectors) > 15 and rules
    assert all(one.startswith(".heedful-tree ") for one in selectors)


def test_the_picture_of_the_documentation_is_drawn_from_the_trees_beside_it():
    page = (DOCS / "explain" / "parsing.md").read_text(encoding="utf-8")
    gold, predicted = map(read, re.findall(r"^\(S \(NP \(PRP she\)\).*$", page, re.M))
    picture = (DOCS / "images" / "trees.svg").read_text(encoding="utf-8")
    assert pair(gold, predicted) == picture
