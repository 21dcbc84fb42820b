"""
A new language in an old model: the gain of `heedful extend`, and its cost for the old language.

    python -m benchmarks.new_language [--runs DIR]

A small model learns English to French from Tatoeba. German is added from fewer pairs, with new
subwords or with a language tag alone. The model is fine-tuned on German alone, and on both
languages. Test sets of both languages are scored before and after. Writes
`docs/results/new-language.json` and builds the page from it. Runs that already exist in DIR are not
trained again.
"""

import lzma
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.report import ResultPage, arguments, data_folder, heedful
from benchmarks.training import info, train
from heedful.evaluation.bleu import evaluate_texts
from heedful.experiments.page import table
from heedful.experiments.record import Record

OLD, NEW = "fr", "de"
PAIRS = {OLD: 60_000, NEW: 15_000}
LINES = 500
"""Number of lines of each test set."""
PIECES = 500
STEPS = {"old": 1_500, "tuned": 500}
_SETTINGS = (
    *("data.vocabulary_size=2000", "data.max_length=24", "train.batch_tokens=2000"),
    *("train.threads=1", "train.precision=fp32", "train.device=cpu", "train.checkpoint_steps=100"),
)
EXTENDED = {"pieces": PIECES, "tag": 0}
"""Runs with an extended vocabulary, and the number of their new subwords."""
TUNED = {
    "pieces, new alone": ("pieces", ("new",)),
    "pieces, both": ("pieces", ("old", "new")),
    "tag, both": ("tag", ("old", "new")),
}
"""Fine-tuned runs: for each, the run from which it starts, and its corpora."""
SHOWN = {
    "old": "the old model",
    "pieces": f"extended by {PIECES} subwords, not trained",
    "pieces, new alone": "then fine-tuned on German alone",
    "pieces, both": "or fine-tuned on both languages in equal shares",
    "tag, both": "extended by the tag alone, fine-tuned on both",
}


def main() -> None:
    """Train, extend, score, and write the page."""
    options = arguments(__doc__, "new-language").parse_args()
    runs: Path = options.runs
    runs.mkdir(parents=True, exist_ok=True)
    for language in (OLD, NEW):
        write_text(runs, language)
    _write_corpora(runs)
    train(runs / "old", "tiny", ("--corpora", runs / "old.toml"), _settings("old"))
    for name, pieces in EXTENDED.items():
        if not (runs / name).exists():
            extend(runs, name, pieces)
    for name, (start, corpora) in TUNED.items():
        files = ("--corpora", runs / f"{'-'.join(corpora)}.toml")
        more = ("--finetune-from", runs / start)
        train(_folder(runs, name), "tiny", files, _settings("tuned"), more)
    scores = {name: score(runs, name) for name in SHOWN}
    sizes = {name: info(runs / name)["vocabulary"]["target"] for name in ("old", "pieces")}
    measurements = {"pairs": PAIRS, "steps": STEPS, "vocabulary": sizes, "runs": scores}
    PAGE.keep("new-language", measurements, options.commit)


def write_text(folder: Path, language: str) -> None:
    """Write the training and test pairs of a language."""
    corpus = data_folder() / f"tatoeba-en-{language}"
    for part, count in (("train", PAIRS[language]), ("test", LINES)):
        for side in ("en", language):
            with lzma.open(corpus / f"{part}.{side}.xz", "rt", encoding="utf-8") as file:
                lines = list(islice(file, count))
            tag = f">>{language}<< " if side == "en" and part == "test" else ""
            path = folder / f"{part}-{language}.{side}"
            path.write_text("".join(tag + line for line in lines), encoding="utf-8")


def extend(runs: Path, name: str, pieces: int) -> None:
    """Add German to the old model; the subwords of French and English do not change."""
    words: list[object] = ["extend", runs / "old", "--out", runs / name, "--tag", NEW]
    words += ["--pieces", pieces]
    if pieces:
        words += ["--target", runs / f"train-{NEW}.{NEW}"]
        words += [w for side in ("en", OLD) for w in ("--keep", runs / f"train-{OLD}.{side}")]
    heedful(*words)


def score(runs: Path, name: str) -> dict[str, Any]:
    """Score the test sets of both languages; the old model has no tag for the new language."""
    run = _folder(runs, name)
    scores = {}
    for language in (OLD,) if name == "old" else (OLD, NEW):
        output = runs / f"{run.name}.{language}"
        source, reference = (runs / f"test-{language}.{side}" for side in ("en", language))
        heedful("translate", run, "--input", source, "--output", output, "--threads", 1)
        texts = [path.read_text("utf-8").splitlines() for path in (output, reference)]
        measured = evaluate_texts(texts[0], [texts[1]], language=language)
        scores[language] = {"bleu": measured.bleu.score, "chrf": measured.chrf.score}
        scores[language]["signature"] = measured.chrf.signature
    return scores


def body(record: Record) -> str:
    """Format the scores as Markdown."""
    values = record.measurements
    runs, pairs, steps = values["runs"], values["pairs"], values["steps"]
    rows = [
        {"model": text} | {language: _cell(runs[name], language) for language in (OLD, NEW)}
        for name, text in SHOWN.items()
        if name in runs
    ]
    signature = runs["old"][OLD]["signature"]
    head = (
        f"Each cell has chrF and BLEU on {LINES} test sentences of Tatoeba. Models use the recipe "
        f"`tiny`. The old model learned English to French from {pairs[OLD]:,} pairs in "
        f"{steps['old']:,} steps. To learn German, it was extended, then fine-tuned "
        f"for {steps['tuned']:,} steps with {pairs[NEW]:,} English-German pairs, alone or together "
        f"with the French pairs. With {PIECES} new subwords, the new tag, and unused rows up to a "
        f"multiple of 8, the embedding matrix grew from {values['vocabulary']['old']:,} to "
        f"{values['vocabulary']['pieces']:,} rows. Each model was trained once."
    )
    cells = f"{{model}} | {{{OLD}}} | {{{NEW}}}"
    return "\n\n".join(
        [
            head,
            table("model | English to French | English to German", cells, rows),
            f"Signature of chrF: `{signature}`. See [how to add a "
            "language](../howto/new-language.md).",
        ]
    )


def _cell(scores: dict[str, Any], language: str) -> str:
    """Format chrF and BLEU of a language, or a dash if there are no scores."""
    if language not in scores:
        return "–"
    return "{chrf:.1f}, {bleu:.1f}".format(**scores[language])


def _settings(name: str) -> Sequence[str]:
    """List the settings of a training run."""
    steps = STEPS[name]
    rate = ("train.learning_rate_factor=0.5", "train.warmup=50") if name == "tuned" else ()
    return (*_SETTINGS, f"train.steps={steps}", *rate)


def _folder(runs: Path, name: str) -> Path:
    """Return the folder of a run."""
    return runs / name.replace(", ", "-").replace(" ", "-")


def _write_corpora(runs: Path) -> None:
    """Write the corpora of each training run; two corpora have equal shares."""
    tables = {
        name: f'[{name}]\nsource = "train-{language}.en"\ntarget = "train-{language}.{language}"\n'
        f'tag = "{language}"\nweight = 1\n'
        for name, language in (("old", OLD), ("new", NEW))
    }
    for names in (("old",), ("new",), ("old", "new")):
        path = runs / f"{'-'.join(names)}.toml"
        path.write_text("\n".join(tables[name] for name in names), encoding="utf-8")


PAGE = ResultPage("new-language", "Adding a language to a trained model", {"new-language": body})


if __name__ == "__main__":
    main()
