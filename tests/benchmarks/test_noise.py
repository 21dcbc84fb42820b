"""Noisy copies of a test set, and the page of what they cost."""

from types import SimpleNamespace

import pytest
from benchmarks import noise, report
from benchmarks.noise import ALONE, PAGE
from benchmarks.noisy_copy import NAMES, noisy_copies

from heedful.config.recipes import recipe, recipe_names
from heedful.config.schema import RunConfig
from heedful.data.toy_grammar.corpus import sample_pairs
from heedful.settings.registries import augmentation_shares

PAIRS = sample_pairs(100, seed=2)
SOURCES, REFERENCES = [source for source, _ in PAIRS], [target for _, target in PAIRS]


def test_copies_depend_on_the_seed_alone():
    first, again, other = (noisy_copies(SOURCES, REFERENCES, seed) for seed in (1, 1, 2))
    assert first == again
    assert first.keys() == {"clean", *NAMES, "mixed"}
    assert first["clean"] == (SOURCES, REFERENCES) == other["clean"]
    for name in ("blanks", "typos", "punctuation", "symbols", "tags", "mixed"):
        assert first[name] != other[name] != first["clean"]


def test_only_what_belongs_to_the_content_is_in_the_references():
    copies = noisy_copies(SOURCES, REFERENCES)
    assert copies["blanks"][1] == copies["typos"][1] == REFERENCES
    for old, new in zip(SOURCES, copies["blanks"][0], strict=True):
        assert new.replace("\u200b", "").split() == old.split()
    assert copies["capitals"][1] == [line.upper() for line in REFERENCES]
    for old, new in zip(REFERENCES, copies["symbols"][1], strict=True):
        assert old in new and len(new) == len(old) + 2
    for source, target in zip(*copies["punctuation"], strict=True):
        assert source[-1].isalpha() == target[-1].isalpha()


def run_scores(clean: float, copy: float, names=("capitals",)) -> dict:
    """What is measured of a run, the same with both readings but one on the copies."""
    scores = {"clean": clean, **dict.fromkeys(names, copy)}
    exact = {"clean": clean, **dict.fromkeys(names, copy - 1)}
    kept = {"symbols": 0.5, "tags": 0.25, "numbers": 0.125}
    return {
        "scores": {"exact": exact, "text": scores},
        "kept": {"exact": kept, "text": dict.fromkeys(kept, 1.0)},
        "changed": 3,
    }


def measured_text(**alone: dict) -> dict:
    """What is measured of a text: every augmentation is worthless but those that are named."""
    runs = {"clean": run_scores(99, 40, NAMES), "augmented": run_scores(98.5, 90, NAMES)}
    runs |= {name: alone.get(name, run_scores(99, 40, (name,))) for name in ALONE}
    return {"steps": 1200, "lines": 1000, "runs": runs}


def page_of(measurements: dict, folder, monkeypatch) -> str:
    monkeypatch.setattr(report, "RESULTS", folder)
    PAGE.keep("noise", measurements, "abc")
    return (folder / "noise.md").read_text(encoding="utf-8")


def test_the_page_has_a_column_for_each_run_and_reading(tmp_path, monkeypatch):
    page = page_of({"grammar": measured_text()}, tmp_path, monkeypatch)
    columns = "not augmented, exact | not augmented, text | augmented, exact | augmented, text"
    assert f"| test set | {columns} |" in page
    assert "| capitals | 39.0 | 40.0 | 89.0 | 90.0 |" in page
    assert "| symbols, in the copy with symbols | 50.0 | 100.0 | 50.0 | 100.0 |" in page
    assert "Of the 1,000 translations" in page and "3 (not augmented) and 3 (augmented)" in page
    assert "| typos | 99.0 | 39.0 | 40.0 | +0.0 | +0.0 |" in page
    assert f"`data.augment = {noise.AUGMENT}`" in page and "Multi30k" not in page
    assert "Augmentation in the recipes" not in page


def test_an_augmentation_must_win_on_both_texts(tmp_path, monkeypatch):
    good, costly, weak = run_scores(98.8, 50), run_scores(98.6, 50), run_scores(99, 44.9)
    assert noise.effect(measured_text(capitals=good)["runs"], "capitals").wins
    for capitals in (costly, weak):
        assert not noise.effect(measured_text(capitals=capitals)["runs"], "capitals").wins
    texts = {
        "grammar": measured_text(capitals=good, title=run_scores(99, 60, ("title",))),
        "multi30k": measured_text(capitals=good),
    }
    assert noise.winners(texts) == ["capitals"]
    assert "These win: capitals." in page_of(texts, tmp_path, monkeypatch)
    texts["multi30k"] = measured_text(capitals=weak)
    assert noise.winners(texts) == []
    page = page_of(texts, tmp_path, monkeypatch)
    assert "None wins" in page and "together cost 0.5 and 0.5 BLEU" in page


def test_what_lost_on_the_grammar_is_not_tried_alone(monkeypatch, tmp_path):
    tried = {}

    def measure(name, task, runs, alone, every):
        tried[name] = [*alone]
        assert not every
        return measured_text(typos=run_scores(98.9, 60, ("typos",)))

    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr(noise, "measure", measure)
    monkeypatch.setattr("sys.argv", ["noise", "--commit", "abc"])
    noise.main()
    assert tried == {"grammar": [*ALONE], "multi30k": ["typos"]}


def test_recipes_for_text_switch_on_what_wins():
    won = {*noise.winners(report.measurements_of("noise"))}
    recipes = {name: recipe(name) for name in recipe_names()}
    texts = {name: config for name, config in recipes.items() if config.data.reading == "text"}
    assert {"tiny", "small", "multi30k"} <= texts.keys()
    for config in texts.values():
        assert augmentation_shares(config.data.augment).keys() == won


def test_pieces_must_be_in_the_translation_once_to_the_byte():
    assert noise.added_pieces("a dog", "<b>a dog</b>") == ["<b>", "</b>"]
    assert noise.added_pieces("a dog", "a dog #12") == ["#12"]
    assert noise.kept_pieces(["<b>", "</b>"], "<b>un chien< /b>") == (1, 2)
    assert noise.kept_pieces(["#12"], "un chien #12 #12") == (0, 1)
    assert noise.kept_numbers(["2019-02-03"], "un chien 2019 3 02") == (2, 3)
    copies = {
        "clean": (["a dog", "a cat"], ["un chien", "un chat"]),
        "symbols": (["a dog ★", "→ a cat"], ["un chien ★", "→ un chat"]),
        "tags": (["a dog {3}", "#12 a cat"], ["un chien {3}", "#12 un chat"]),
    }
    texts = {"clean": [], "symbols": ["un chien", "→ un chat"], "tags": ["un {3}", "12 chat"]}
    expected = {"symbols": 0.5, "tags": 0.5, "numbers": 1.0}
    assert noise.kept_shares(copies, texts) == expected
    assert noise.kept_shares(copies, {"clean": []}) == {}


class StubTranslator:
    """Reads a tag as text: the translation is the source, without what stands behind a “#”."""

    def __init__(self, reading: str) -> None:
        self.reading = reading
        self.run = SimpleNamespace(config=RunConfig())

    @classmethod
    def load(cls, run, *, device, precision, threads, reading):
        assert (run, device, precision, threads) == ("a run", "cpu", "fp32", 1)
        return cls(reading)

    def translate(self, lines):
        texts = lines if self.reading == "text" else [line.partition(" #")[0] for line in lines]
        return [SimpleNamespace(text=text) for text in texts]


def test_a_run_is_scored_with_both_readings(monkeypatch):
    monkeypatch.setattr(noise.heedful, "Translator", StubTranslator)
    clean = ["a very big dog sleeps", "a very small cat # runs"]
    tags = [f"{line} #{number}" for number, line in enumerate(clean)]
    result = noise.score_run("a run", {"clean": (clean, clean), "tags": (tags, tags)})
    assert result["changed"] == 1
    assert result["scores"]["text"] == pytest.approx({"clean": 100, "tags": 100})
    assert all(result["scores"]["exact"][name] < 90 for name in ("clean", "tags"))
    assert result["kept"]["text"] == {"tags": 1.0, "numbers": 1.0}
    assert result["kept"]["exact"] == {"tags": 0.0, "numbers": 0.0}


@pytest.mark.parametrize(("copy", "every"), [(94.9, False), (95.0, False), (95.0, True)])
def test_what_the_reading_solves_is_not_tried_alone(copy, every, monkeypatch, tmp_path):
    trainings, scored = [], {}

    def score_run(run, copies):
        scored[run.name] = [*copies]
        return run_scores(99, copy, NAMES)

    monkeypatch.setattr(
        noise, "train", lambda run, recipe, files, settings: trainings.append((run.name, settings))
    )
    monkeypatch.setattr(noise, "score_run", score_run)
    monkeypatch.setattr(noise, "last_line", lambda run: {"step": 7})
    result = noise.measure("grammar", noise.TASKS["grammar"], tmp_path, ALONE, every)
    alone = ALONE if copy < 95 or every else ()
    assert [name for name, _ in trainings] == ["clean", "augmented", *alone] == [*result["runs"]]
    assert scored["augmented"] == ["clean", *NAMES, "mixed"]
    if alone:
        assert dict(trainings)["typos"][-1] == "data.augment=typos:0.1" == noise.RUNS["typos"][-1]
        assert scored["typos"] == ["clean", "typos"]
    assert result["steps"] == 7 and result["lines"] > 100


def test_runs_that_are_there_are_scored(monkeypatch, capsys, tmp_path):
    scores = {"scores": {"exact": {"mixed": 1.0}, "text": {"mixed": 2.0}}}
    monkeypatch.setattr(noise, "score_run", lambda run, copies: scores)
    monkeypatch.setattr(noise, "read_copies", lambda source, reference: {})
    monkeypatch.setattr("sys.argv", ["noise", "a", "b", "--test", "s.en", "s.fr"])
    noise.main()
    printed = capsys.readouterr().out
    assert "| test set | a, exact | a, text | b, exact | b, text |" in printed
    assert "| mixed | 1.0 | 2.0 | 1.0 | 2.0 |" in printed
    monkeypatch.setattr("sys.argv", ["noise", "unknown"])
    with pytest.raises(SystemExit):
        noise.main()
