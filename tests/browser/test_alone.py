"""The stand-alone page: hostile text, sizes, colors, security policy, no network requests."""

import html

import pytest

from heedful.visualise.explorer import explorer_page, explorer_script, explorer_styles
from heedful.visualise.record import ModelRecord
from tests.support import records

HOSTILE = records.model(records.HOSTILE, records.HOSTILE, name="</script><b>run")
# What a server that allows nothing else would send.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:"
)


def test_text_never_becomes_markup(opened):
    page = opened(records.record(HOSTILE, title="</title><script>document.title='caught'</script>"))
    assert page.title() == "</title><script>document.title='caught'</script>"
    assert page.locator("script").count() == 2
    assert page.locator("img, b, iframe").count() == 0
    assert page.locator(".he-queries .he-word").count() == len(records.HOSTILE)
    first = page.locator(".he-queries .he-word").first
    assert first.inner_text() == records.HOSTILE[0]
    for word in page.locator(".he-queries .he-word").all():
        word.hover()
    for details in page.locator("details").all():
        details.locator("summary").click()
        details.locator("table").wait_for()
    page.get_by_role("button", name="Last step").click()
    assert page.title().startswith("</title>")


def test_tokens_keep_their_direction_and_show_what_is_unseen(opened):
    page = opened(records.record(HOSTILE))
    labels = page.locator(".he-queries bdi")
    assert labels.nth(2).evaluate("bdi => getComputedStyle(bdi).unicodeBidi") == "isolate"
    texts = labels.all_inner_texts()
    assert texts[4] == "👩‍👩‍👧‍👦"
    assert texts[6] == "\\u202eesrever"
    assert texts[7].startswith("\\u0000\\u001b")
    assert texts[11:13] == ["∅", "␣"]


def test_a_token_of_10000_letters_is_cut_not_spilt(opened):
    page = opened(records.record(records.model(("a" * 10_000, "</s>"), ("é" * 10_000, "</s>"))))
    assert page.evaluate("document.documentElement.scrollWidth") <= 1200


@pytest.mark.parametrize("width", [360, 768, 1440])
def test_nothing_spills_over_the_side(opened, width):
    viewport = {"width": width, "height": 800}
    page = opened(records.record(records.long(50), HOSTILE), viewport=viewport)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") == width
        colors = page.evaluate(
            "[getComputedStyle(document.documentElement).backgroundColor,"
            " getComputedStyle(document.querySelector('.heedful-explorer')).color]"
        )
        ink, paper = (sum(map(int, c.strip("rgb()").split(", "))) for c in reversed(colors))
        assert (ink < paper) == (scheme == "light")


def test_every_control_has_a_name(opened):
    page = opened(records.record(HOSTILE))
    nameless = page.locator("button, input, [tabindex]").evaluate_all(
        "all => all.filter(e => !(e.ariaLabel || e.title || e.textContent.trim()"
        " || e.labels?.[0]?.textContent.trim())).map(e => e.outerHTML)"
    )
    assert nameless == []
    assert page.locator("h1").count() == 1
    assert page.locator("section[aria-labelledby]").count() == 3


def test_small_print_and_heads_have_contrast(opened):
    page = opened(records.record(records.model(heads=16)))
    colors = page.locator(".he-head").evaluate_all(
        "all => all.map(e => getComputedStyle(e).backgroundColor)"
    )

    def light(color):
        parts = [int(part) / 255 for part in color.strip("rgb()").split(", ")[:3]]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    assert len(set(colors)) == 16
    for color in colors:
        assert 1.05 / (light(color) + 0.05) >= 4.5, "white letters on it"
        assert (light(color) + 0.05) / (light("rgb(20, 23, 27)") + 0.05) >= 2.5, "on black paper"


def test_50_tokens_of_the_base_model_are_under_two_megabytes():
    assert len(explorer_page(records.record(records.long(50))).encode()) < 2e6


@pytest.mark.soak
def test_200_tokens_of_the_base_model_can_be_used(opened):
    page = opened(records.record(records.long(200)))
    assert page.locator(".he-queries").first.locator(".he-word").count() == 200
    page.locator(".he-segments input[value=encoder]").check(force=True)
    word = page.locator(".he-queries .he-word").nth(150)
    word.hover()
    assert "looks at" in page.locator(".he-readout").first.inner_text()
    page.locator(".he-segments input[value=rollout]").check(force=True)
    table = records.opened_table(page.locator(".he-picture").first)
    assert table.locator("td").count() == 200 * 200


def test_the_code_defines_one_name_and_no_more(browser):
    page = browser.new_page()
    before = set(page.evaluate("Object.getOwnPropertyNames(globalThis)"))
    page.add_script_tag(content=explorer_script())
    after = set(page.evaluate("Object.getOwnPropertyNames(globalThis)"))
    page.close()
    assert after - before == {"heedfulExplorer"}


@pytest.fixture
def served(browser):
    """A page from a server with a strict policy, which makes its own explorer."""
    context = browser.new_context()
    complaints = []
    answers = {
        "/": (
            "text/html",
            '<link rel="stylesheet" href="s.css"><main></main><script src="s.js"></script>',
        ),
        "/s.js": ("text/javascript", explorer_script()),
        "/s.css": ("text/css", explorer_styles()),
    }

    def answer(route):
        path = route.request.url.removeprefix("https://heedful.test")
        kind, body = answers.get(path, ("text/plain", ""))
        headers = {"Content-Security-Policy": POLICY}
        route.fulfill(
            body=f"<!DOCTYPE html>{body}" if path == "/" else body,
            content_type=kind,
            headers=headers,
        )

    context.route("**/*", answer)
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto("https://heedful.test/")
    yield page
    context.close()
    assert complaints == []


def show(page, record, options):
    page.evaluate(
        "([record, options]) => { globalThis.shown = "
        "heedfulExplorer(document.querySelector('main'), record, options); }",
        [record.document(), options],
    )


def test_it_runs_under_a_strict_policy_inside_another_page(served):
    record = records.record(HOSTILE)
    show(served, record, {"header": False, "level": 3, "sections": ["attention"]})
    assert served.locator("h1, h2, h3").count() == 0
    assert served.locator("section").count() == 1
    assert served.locator("section > h4").inner_text() == "Where it looks"
    for word in served.locator(".he-word").all():
        word.hover()
    size = served.locator(".he-lines svg").bounding_box()
    assert size["height"] > 300, "the style sheet and what the code sets both count"


def test_another_page_can_choose_what_is_shown_and_take_it_away(served):
    show(served, records.record(), {"kind": "decoder", "layer": 0})
    assert served.locator("input[value=decoder]").is_checked()
    served.evaluate("shown.show({kind: 'cross', focus: {side: 'query', index: 4}})")
    assert served.locator("input[value=cross]").is_checked()
    assert served.locator(".he-here").inner_text() == "▁die"
    served.evaluate("shown.step(2)")
    assert served.locator(".he-now").inner_text() == "▁,"
    served.evaluate("shown.destroy()")
    assert served.locator("main *").count() == 0


def test_a_document_of_another_format_is_refused_in_words(served):
    served.evaluate(
        "heedfulExplorer(document.querySelector('main'), {format: 2, title: '', models: []})"
    )
    assert "format 2" in served.locator("main").inner_text()


def test_a_model_that_told_nothing_but_text_still_has_a_page(opened):
    page = opened(records.record(ModelRecord("m", ("a",), ("b",), "<s>", text="<i>b</i>")))
    assert page.locator("section").count() == 0
    assert html.escape("<i>b</i>") in page.locator(".he-text").inner_html()


def test_what_is_told_of_a_token_stays_in_sight(opened):
    page = opened(records.record(records.long(50)), viewport={"width": 768, "height": 600})
    word = page.locator(".he-queries .he-word").nth(8)
    word.scroll_into_view_if_needed()
    word.hover()
    told = page.locator(".he-picture .he-readout")
    assert "looks at" in told.inner_text()
    box = told.bounding_box()
    assert box["y"] + box["height"] <= 600


def test_a_right_to_left_token_keeps_its_share_beside_it(opened):
    page = opened(records.record(HOSTILE))
    page.locator(".he-queries .he-word").nth(2).hover()
    names = page.locator(".he-picture .he-readout > bdi")
    assert "שלום" in names.all_inner_texts()
    assert names.count() >= 3
