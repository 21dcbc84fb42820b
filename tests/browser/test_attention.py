"""Lines between tokens, small multiples, averages and rollout."""

import base64
from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest

from heedful.visualise.record import Phrase
from tests.support import records

KINDS = ("encoder", "decoder", "cross")
LINES = ".he-lines g:nth-child({}) path"


def lines(page, group=2):
    """Lines that are drawn: for each, its color. Group 1 is all tokens', 2 that in focus."""
    return page.locator(LINES.format(group)).evaluate_all(
        "paths => paths.flatMap(p => p.getAttribute('d').slice(1).split('M')"
        ".map(() => p.getAttribute('stroke')))"
    )


def choose(page, value):
    page.locator(f".he-segments input[value='{value}']").check(force=True)


def queries(page):
    return page.locator(".he-queries .he-word")


def table_behind(page):
    return records.opened_table(page.locator(".he-picture"))


def percents(table):
    """The numbers of a table's cells, as parts of one."""
    texts = table.locator("tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.querySelectorAll('td')].map(cell => cell.textContent))"
    )
    return np.array([[float(t.replace("%", "").replace("<", "")) / 100 for t in r] for r in texts])


def close(shown, weights):
    """Weights come in 256 levels and are shown with two digits."""
    return np.abs(shown - weights).max() < 0.01


@pytest.mark.parametrize("kind", KINDS)
def test_every_layer_and_head_is_shown_with_its_true_weights(opened, kind):
    record = records.record()
    page = opened(record)
    choose(page, kind)
    weights = getattr(record.models[0], kind)
    assert page.locator(".he-multiple").count() == 2 * (4 + 2)
    for layer in range(2):
        for head in range(4):
            page.locator(f".he-multiple[data-layer='{layer}'][data-which='{head}']").click()
            assert close(percents(table_behind(page)), weights[layer, head])


def test_the_average_is_the_mean_of_all_heads(opened):
    record = records.record()
    page = opened(record)
    choose(page, "average")
    assert close(percents(table_behind(page)), record.models[0].cross[1].mean(axis=0))


def test_one_head_has_no_average_and_a_recurrent_decoder_no_rollout(opened):
    """Only what means something is offered: `records.model` with cross-attention alone."""
    model = records.model(layers=1, heads=1)
    page = opened(records.record(replace(model, encoder=None, decoder=None)))
    assert page.locator(".he-segments input").evaluate_all("all => all.map(one => one.value)") == [
        "cross",
        "0",
    ]
    assert page.locator(".he-multiple").count() == 1
    assert page.get_by_text("Where layer 1 looked", exact=True).count() == 1


def unpacked(packed, is_lower):
    """The weights that a document holds."""
    shape = [packed[name] for name in ("layers", "heads", "queries", "keys")]
    codes = np.frombuffer(base64.b64decode(packed["weights"]), np.uint8)
    weights = np.zeros(shape)
    if is_lower:
        weights[:, :, *np.tril_indices(shape[2])] = codes.reshape(*shape[:2], -1)
    else:
        weights[:] = codes.reshape(shape)
    return (weights / 255) ** 2


def slow_rollout(weights, layer):
    """Abnar and Zuidema, one product and one row after the other."""
    found = np.eye(weights.shape[-1])
    for each in range(layer + 1):
        mixed = weights[each].mean(axis=0) + np.eye(weights.shape[-1])
        found = np.stack([row / row.sum() for row in mixed]) @ found
    return found


def slow_rollout_of_cross(encoder, decoder, cross, layer):
    """Rollout to the source: half of a sub-layer's state is its input, half its output."""
    memory = slow_rollout(encoder, len(encoder) - 1)
    found = np.zeros(cross.shape[-2:])
    for each in range(layer + 1):
        mixed = decoder[each].mean(axis=0) + np.eye(decoder.shape[-1])
        found = np.stack([row / row.sum() for row in mixed]) @ found
        found = 0.5 * found + 0.5 * cross[each].mean(axis=0) @ memory
    return found


@pytest.fixture(scope="module")
def blank(browser):
    """A page to compute in: functions leave nothing behind."""
    page = browser.new_page()
    yield page
    page.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layer", [0, 1, 2])
def test_rollout_equals_a_slow_twin(blank, kind, layer):
    document = records.record(records.model(layers=3, heads=5)).document()["models"][0]
    code = (files("heedful.visualise") / "web" / "weights.js").read_text(encoding="utf-8")
    got = blank.evaluate(
        f"(given) => {{ {code}\nconst [model, kind, layer] = given;\n"
        "return Array.from(rollout(readModel(model), kind, layer).values); }",
        [document, kind, layer],
    )
    weights = {name: unpacked(document[name], name == "decoder") for name in KINDS}
    if kind == "cross":
        expected = slow_rollout_of_cross(*(weights[name] for name in KINDS), layer)
    else:
        expected = slow_rollout(weights[kind], layer)
    assert np.abs(np.reshape(got, expected.shape) - expected).max() < 1e-5


def test_rollout_is_shown_as_the_others_are(opened):
    page = opened(records.record())
    choose(page, "encoder")
    choose(page, "rollout")
    model = records.record().models[0]
    assert close(percents(table_behind(page)), slow_rollout(model.encoder, 1))


def test_heads_are_switched_on_and_off(opened):
    page = opened(records.record())
    heads = page.get_by_role("toolbar", name="Heads").get_by_role("button")
    assert len(set(lines(page, 1))) == 4
    heads.nth(1).click()
    assert len(set(lines(page, 1))) == 3
    assert heads.nth(1).get_attribute("aria-pressed") == "false"
    heads.nth(2).dblclick()
    assert len(set(lines(page, 1))) == 1
    page.get_by_role("button", name="none").click()
    assert lines(page, 1) == []
    assert "No head is switched on" in page.locator(".he-picture .he-readout").inner_text()
    page.get_by_role("button", name="all", exact=True).click()
    assert len(set(lines(page, 1))) == 4


def test_the_pointer_on_a_token_shows_its_lines_only(opened):
    record = records.record()
    page = opened(record)
    page.get_by_role("toolbar").get_by_role("button").nth(0).dblclick()
    everything = lines(page, 1)
    queries(page).nth(3).hover()
    row = record.models[0].cross[1, 0, 3]
    assert len(lines(page)) == np.sum(row >= 0.01)
    assert not page.locator(".he-lines g").nth(0).is_visible()
    best = record.models[0].source[row.argmax()].lstrip("▁")
    assert f"der looks at {best}" in page.locator(".he-picture .he-readout").inner_text()
    page.locator(".he-keys .he-word").nth(2).hover()
    assert len(lines(page)) == np.sum(record.models[0].cross[1, 0, :, 2] >= 0.01)
    page.mouse.move(1, 1)
    assert lines(page) == []
    assert lines(page, 1) == everything


def test_a_click_keeps_the_lines_until_another_or_escape(opened):
    page = opened(records.record())
    queries(page).nth(3).click()
    page.mouse.move(1, 1)
    assert lines(page)
    assert queries(page).nth(3).get_attribute("aria-pressed") == "true"
    queries(page).nth(5).hover()
    assert queries(page).nth(3).get_attribute("aria-pressed") == "true"
    caption = table_behind(page).locator("caption").inner_text()
    assert caption == "Where it looks: der"
    assert percents(table_behind(page)).shape == (len(records.SOURCE), 4)
    page.keyboard.press("Escape")
    page.mouse.move(1, 1)
    assert lines(page) == []


def test_everything_can_be_reached_from_the_keyboard(opened):
    page = opened(records.record())

    def here(script):
        return page.evaluate(f"document.activeElement.{script}")

    for _ in range(3):  # kind, layer, what to show
        page.keyboard.press("Tab")
    assert here("value") == "heads"
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    assert here("textContent") == "2"
    page.keyboard.press("Space")
    assert len(set(lines(page, 1))) == 3
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert (here("dataset.side"), here("dataset.index")) == ("query", "2")
    assert lines(page)
    page.keyboard.press("ArrowRight")
    assert (here("dataset.side"), here("dataset.index")) == ("key", "2")
    page.keyboard.press("End")
    assert here("textContent") == "</s>"
    page.keyboard.press("Enter")
    assert here("ariaPressed") == "true"
    page.keyboard.press("Tab")
    assert here("tagName") == "SUMMARY"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert "Layer 1, head 1" in here("ariaLabel")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    assert "Layer 2, rollout" in here("ariaLabel")
    page.keyboard.press("Enter")
    assert page.locator("input[value=rollout]").is_checked()


def test_a_kind_that_is_not_there_cannot_be_chosen(opened):
    whole = records.model()
    bare = records.ModelRecord("engine", whole.source, whole.target, "<s>", cross=whole.cross)
    page = opened(records.record(bare))
    assert page.locator("input[value=cross]").count() == 1
    assert page.locator("input[value=encoder]").count() == 0
    assert page.locator("section").count() == 1


def test_a_layer_that_a_kind_lacks_is_its_last_layer(opened):
    shallow = records.model(layers=1)
    count = len(records.SOURCE)
    page = opened(records.record(replace(shallow, encoder=records.weights(3, 4, count, count))))
    for kind, layer in (("cross", 0), ("encoder", 2), ("decoder", 0)):
        choose(page, kind)
        assert page.get_by_role("group", name="Layer").locator(f"[value='{layer}']").is_checked()
        chosen = page.locator(".he-chosen").evaluate_all("all => all.map(m => +m.dataset.layer)")
        assert chosen == [layer] * 4
        caption = table_behind(page).locator("caption").inner_text()
        assert caption.startswith(f"{kind}, layer {layer + 1}: ")


def test_two_models_stand_side_by_side_and_share_the_token_in_focus(opened):
    left = records.model(name="left")
    right = records.model(name="right", layers=1, heads=2, seed=7)
    page = opened(records.record(left, right))
    both = page.locator(".he-attention .he-side")
    boxes = [both.nth(at).bounding_box() for at in range(2)]
    assert boxes[0]["y"] == boxes[1]["y"]
    assert boxes[0]["x"] + boxes[0]["width"] < boxes[1]["x"]
    assert [both.nth(at).locator(".he-multiple").count() for at in range(2)] == [12, 4]
    both.nth(0).locator(".he-queries .he-word").nth(4).hover()
    told = both.locator(".he-picture .he-readout").all_inner_texts()
    assert [text.split(" looks at ")[0] for text in told] == ["▁die", "▁die"]
    assert told[0] != told[1]


def test_tokens_that_differ_are_not_shared(opened):
    other = records.model(target=("▁Hunde", "</s>"), name="other")
    page = opened(records.record(records.model(), other))
    both = page.locator(".he-attention .he-side")
    both.nth(0).locator(".he-queries .he-word").nth(0).hover()
    assert "Point at" in both.nth(1).locator(".he-picture .he-readout").inner_text()
    both.nth(0).locator(".he-keys .he-word").nth(0).hover()
    assert "is looked at by" in both.nth(1).locator(".he-picture .he-readout").inner_text()


def test_each_head_is_described_in_a_table(opened):
    record = records.record()
    page = opened(record)
    choose(page, "encoder")
    table = records.opened_table(page.locator(".he-overview"))
    row = table.locator("tbody tr").nth(1).locator("th, td").all_inner_texts()
    weights = record.models[0].encoder[0, 1]
    entropy = -(weights * np.log(weights)).sum(axis=-1)
    assert row[0] == "layer 1, head 2"
    assert abs(float(row[1]) - np.exp(entropy).mean()) < 0.15
    assert abs(float(row[2].rstrip(" %")) / 100 - np.diag(weights).mean()) < 0.01


def test_the_words_of_a_phrase_are_marked_with_their_share(opened):
    record = records.record()
    model = replace(record.models[0], phrases=(Phrase(1, 4, 2, 6),))
    page = opened(replace(record, models=(model,)))
    choose(page, "cross")
    inside = page.locator(".he-keys .he-phrase")
    for symbol in (1, 4):
        queries(page).nth(symbol).click()
        assert inside.evaluate_all("all => all.map(one => +one.dataset.index)") == [2, 3, 4, 5]
        share = model.cross[1, :, symbol, 2:6].sum(axis=-1).mean()
        said = page.locator(".he-readout").first.inner_text().split("its words ")[1]
        assert close(np.array([float(said.split()[0]) / 100]), share)
    queries(page).nth(2).click()
    assert inside.count() == 0
    choose(page, "encoder")
    queries(page).nth(1).click()
    assert inside.count() == 0
