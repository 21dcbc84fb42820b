"""Reading text as people write it must not change the translation of clean text."""

import json

from heedful.runs.run import Run, recorded_settings
from heedful.translation.translator import Translator


def test_clean_text_has_the_same_translations_with_both_readings(translator, toy_run, grammar):
    lines = [pair[0] for pair in grammar[1]]
    exact = Translator.load(toy_run, device="cpu", precision="fp32", reading="exact")
    results = zip(translator.translate(lines), exact.translate(lines), strict=True)
    # A model of so few steps repeats itself now and then; nothing else may be done to a line.
    differing = [one.reading.to_dict() for one, other in results if one.text != other.text]
    assert len(differing) < len(lines) / 2
    assert all(note.keys() == {"loops"} for note in differing)


def test_a_run_records_text_and_a_run_that_records_nothing_is_exact(toy_run, tmp_path):
    run = Run.open(toy_run)
    assert run.config.data.reading == "text"
    recorded = json.loads((toy_run / "config.json").read_text("utf-8"))
    assert recorded["settings"]["data"]["reading"] == "text"
    exact = run.with_reading("exact")
    assert "reading" not in recorded_settings(exact.config)["data"]
    assert exact.read_sources(["\ufeffthe  dog"]) == ["\ufeffthe dog"]
    assert run.read_sources(["\ufeffthe  dog"]) == ["the dog"]
