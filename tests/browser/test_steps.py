"""Decoding, step by step."""

import pytest

from tests.support import records


@pytest.fixture
def page(opened):
    return opened(records.record())


def written(page):
    pieces = page.locator(".he-written:not(.he-source) .he-piece:not(.he-later)")
    return [text.lstrip("▁") for text in pieces.all_inner_texts()]


def candidates(page):
    rows = page.locator(".he-candidates tbody tr").all()
    return [[cell.inner_text() for cell in row.locator("th, td").all()[:2]] for row in rows]


TOKENS = [token.lstrip("▁") for token in records.TARGET]


def test_a_step_shows_what_could_have_come_and_how_likely(page):
    first = records.record().models[0].steps[0].candidates
    shown = candidates(page)
    assert len(shown) == 11
    assert shown[0][0].startswith("▁Der")
    probability = 100 * first[0][1]
    assert shown[0][1] == f"{probability:.{0 if probability >= 9.95 else 1}f} %"
    assert shown[-1][0] == "all others"
    assert page.locator(".he-taken th").inner_text().strip().endswith("(chosen)")


def test_the_buttons_go_on_and_back(page):
    page.get_by_role("button", name="Step on").click()
    page.get_by_role("button", name="Step on").click()
    assert written(page) == TOKENS[:3]
    page.get_by_role("button", name="Step back").click()
    assert written(page) == TOKENS[:2]
    page.get_by_role("button", name="Last step").click()
    assert written(page) == TOKENS
    page.get_by_role("button", name="First step").click()
    assert written(page) == TOKENS[:1]


def test_a_candidate_that_was_not_the_likeliest_is_marked_where_it_stands(page):
    for _ in range(4):
        page.get_by_role("button", name="Step on").click()
    classes = [row.get_attribute("class") for row in page.locator(".he-candidates tbody tr").all()]
    assert classes.index("he-taken") == 1


def test_a_screen_reader_is_told_the_step(page):
    page.get_by_role("button", name="Step on").click()
    told = page.locator(".he-steps [aria-live]").text_content()
    assert told.startswith("Step 2 of 14: Hund, ")


def test_the_slider_obeys_the_keyboard(page):
    page.get_by_role("slider").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert written(page) == TOKENS[:3]
    assert page.get_by_role("slider").get_attribute("aria-valuetext") == "step 3 of 14"


def test_play_goes_to_the_end_and_stops_there(page):
    page.clock.install(time=0)
    page.clock.pause_at(3_600_000)  # else it goes on by itself while this test waits for its turn
    page.get_by_role("button", name="Play").click()
    assert page.get_by_role("button", name="Pause").count() == 1
    page.clock.run_for(2000)
    assert written(page) == TOKENS[:3]
    page.clock.run_for(20_000)
    assert written(page) == TOKENS
    page.get_by_role("button", name="Play").click()
    assert written(page) == TOKENS[:1]
    page.get_by_role("button", name="Pause").click()
    page.clock.run_for(5000)
    assert written(page) == TOKENS[:1]


def test_the_source_is_shaded_by_where_the_chosen_layer_looked(page):
    model = records.record().models[0]

    def shares():
        pieces = page.locator(".he-source .he-piece")
        return [float(p.get_attribute("title").strip("< %")) / 100 for p in pieces.all()]

    expected = model.cross[1].mean(axis=0)[0]
    assert max(abs(a - b) for a, b in zip(shares(), expected, strict=True)) < 0.01
    page.locator(".he-segments").nth(1).locator("input").nth(0).check(force=True)
    expected = model.cross[0].mean(axis=0)[0]
    assert max(abs(a - b) for a, b in zip(shares(), expected, strict=True)) < 0.01


def test_the_table_behind_has_all_steps(page):
    rows = records.opened_table(page.locator(".he-steps")).locator("tbody tr")
    assert rows.count() == len(TOKENS)
    assert "Hund" in rows.nth(1).inner_text()


ARABIC = ("▁الكلب", "▁الأحمر", "▁يرك", "ض", "▁.", "</s>")
CHINESE = (">>ara<<", "▁红", "狗", "在", "奔跑", "。", "</s>")


def lefts(page, selector):
    """Left edges of the pieces of a text, in the order of its tokens."""
    return [box.bounding_box()["x"] for box in page.locator(f"{selector} .he-piece").all()]


def test_arabic_and_hebrew_are_written_from_right_to_left(opened):
    page = opened(records.record(records.model(CHINESE, ARABIC)))
    page.get_by_role("button", name="Last step").click()
    target, source = (
        lefts(page, f".he-written{kind}") for kind in (":not(.he-source)", ".he-source")
    )
    assert target == sorted(target, reverse=True)
    assert source == sorted(source)
    # The arrow keys go where they point.
    page.locator(".he-written:not(.he-source) .he-piece").first.focus()
    for key, step in (("ArrowLeft", 1), ("ArrowLeft", 2), ("ArrowRight", 1)):
        page.keyboard.press(key)
        focused = page.evaluate(
            "[...document.activeElement.parentElement.children].indexOf(document.activeElement)"
        )
        assert focused == step
    hebrew = ("▁12", "▁הכלב", "▁רץ", "</s>")
    page = opened(records.record(records.model(hebrew, CHINESE)))
    source = lefts(page, ".he-source")
    assert source == sorted(source, reverse=True)
