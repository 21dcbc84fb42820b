"""The beam as a tree: hypotheses, their ends, and why."""

import re

import pytest

from heedful.visualise.record import ModelRecord, Node
from tests.support import records

MODEL = records.model()


@pytest.fixture
def page(opened):
    return opened(records.record(MODEL))


def node(page, step, index):
    return page.locator(f".he-node[data-step='{step}'][data-index='{index}']")


def test_every_hypothesis_has_its_place_and_its_fate(page):
    count = sum(map(len, MODEL.beam))
    assert page.locator(".he-node").count() == count + 1
    assert page.locator(".he-band .he-edge").count() == count
    for fate in ("open", "ended", "dropped", "best"):
        expected = sum(node.fate == fate for nodes in MODEL.beam for node in nodes)
        assert page.locator(f".he-node.he-{fate}").count() == expected + (fate == "open")


def test_the_way_to_the_translation_is_marked_on_top(page):
    way = page.locator(".he-node.he-way")
    assert [text.lstrip("▁") for text in way.all_inner_texts()][1:] == [
        token.lstrip("▁") for token in records.TARGET
    ]
    assert len(set(way.evaluate_all("all => all.map(one => one.style.top)"))) == 1


def test_no_two_branches_cross(page):
    placed = page.locator(".he-node").evaluate_all(
        "all => all.map(({dataset: {step, index}, style: {top}}) => [step, index, top])"
    )
    rows = {(int(step), int(index)): float(top[:-2]) for step, index, top in placed}
    for step, nodes in enumerate(MODEL.beam, start=1):
        order = sorted(range(len(nodes)), key=lambda index: rows[step, index])
        parents = [rows[step - 1, nodes[index].parent or 0] for index in order]
        assert parents == sorted(parents)


def test_a_dropped_hypothesis_says_why(page):
    step, index = next(
        (step, index)
        for step, nodes in enumerate(MODEL.beam, start=1)
        for index, one in enumerate(nodes)
        if one.fate == "dropped" and step == 3
    )
    node(page, step, index).hover()
    told = page.locator(".he-beam .he-readout").inner_text()
    assert "Dropped. The 4 places in the beam went to other hypotheses." in told
    assert "step 3" in told
    assert "score −" in told
    assert page.locator(".he-node.he-lit").count() == 4
    assert "Dropped. The 4 places" in node(page, step, index).get_attribute("aria-label")


def test_arrow_keys_follow_the_branches(page):
    def here():
        return page.evaluate(
            "[document.activeElement.dataset.step, document.activeElement.dataset.index]"
        )

    node(page, 0, 0).focus()
    page.keyboard.press("ArrowRight")
    assert here() == ["1", "0"]
    page.keyboard.press("ArrowRight")
    assert here() == ["2", "0"]
    page.keyboard.press("ArrowDown")
    step, index = here()
    assert step == "2"
    page.keyboard.press("ArrowLeft")
    assert here() == ["1", str(MODEL.beam[1][int(index)].parent)]
    page.keyboard.press("Home")
    page.keyboard.press("ArrowUp")
    assert here() == ["1", "0"]
    assert page.locator(".he-beam [tabindex='0'].he-node").count() == 1


def test_dropped_hypotheses_can_be_hidden(page):
    page.get_by_label("without dropped hypotheses").check()
    assert page.locator(".he-node.he-dropped").count() == 0
    survivors = sum(node.fate != "dropped" for nodes in MODEL.beam for node in nodes)
    assert page.locator(".he-node").count() == survivors + 1


def test_the_table_behind_has_every_hypothesis_in_whole(page):
    rows = records.opened_table(page.locator(".he-beam")).locator("tbody tr")
    assert rows.count() == sum(map(len, MODEL.beam))
    last = rows.last.locator("th, td").all_inner_texts()
    assert last[1] == "Der Hund , der die Katze jagte , war sehr müde .</s>"
    assert last[4:] == ["Ended, and is the translation.", MODEL.beam[-1][0].why]


def test_paper_gets_the_whole_tree_in_bands(page):
    assert page.locator(".he-band").count() == 1
    pdf = page.pdf(format="A4")
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 2
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    bands = page.locator(".he-band")
    assert bands.count() == 3
    assert all(box["width"] <= 660 for box in (band.bounding_box() for band in bands.all()))
    assert page.locator(".he-node").count() == sum(map(len, MODEL.beam)) + 1
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator(".he-band").count() == 1


def test_a_search_without_an_end_and_a_dropped_one_that_lived_on(opened):
    beam = (
        (
            Node("a", None, -1.0, -1.0, "dropped", "odd"),
            Node("b", None, float("-inf"), 0.0, "open"),
        ),
        (Node("c", 0, -2.0, float("nan"), "open"),),
    )
    page = opened(records.record(ModelRecord("m", (), ("a", "c"), "<s>", beam=beam)))
    page.get_by_label("without dropped hypotheses").check()
    assert page.locator(".he-node").count() == 4
    node(page, 2, 0).hover()
    assert "a c" in page.locator(".he-beam .he-readout").inner_text()
