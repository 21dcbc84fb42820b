"""
Models trained by Joey NMT, imported, and compared with the originals.

    python -m benchmarks.joey

Writes `docs/results/joey.json` and builds the page from it. The unit tests read checkpoints that
they write themselves, in Joey's layout; here Joey NMT writes them, in its own environment.
"""

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.oracles.originals import compare_import

from benchmarks.parts import write_sides
from benchmarks.peers.joey.toolkit import (
    VERSION,
    build_settings,
    learn_subwords,
    special_symbols,
    transformer,
)
from benchmarks.report import ROOT, ResultPage, arguments, heedful
from heedful.data.toy_grammar.corpus import split_pairs
from heedful.experiments.page import table
from heedful.experiments.record import Record

JOEY = ROOT / "benchmarks" / "peers" / "joey" / ".venv" / "bin" / "python"
LANGUAGES = ("en", "fr")
SIZES = (2, 4, 64, 128, 0.1)
"""Layers, heads, model width, feed-forward width and dropout of a Transformer."""
RECURRENT_SIDE = {
    "type": "recurrent",
    "embeddings": {"embedding_dim": 64},
    "hidden_size": 64,
    "dropout": 0.1,
}
TRANSFORMERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "post, as in the paper": ({"layer_norm": "post"},) * 2,
    "not set: pre in the encoder, post in the decoder": ({}, {}),
    "pre": ({"layer_norm": "pre"},) * 2,
}
RECURRENT: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "GRU, Bahdanau's score, input feeding, bridge": ({}, {}),
    "LSTM, Luong's score, input feeding, last": (
        {"rnn_type": "lstm"},
        {"rnn_type": "lstm", "attention": "luong", "init_hidden": "last"},
    ),
    "LSTM, Bahdanau's score, no input feeding, zero": (
        {"rnn_type": "lstm"},
        {"rnn_type": "lstm", "input_feeding": False, "init_hidden": "zero"},
    ),
    "GRU, Luong's score, no input feeding, bridge, two layers": (
        {"num_layers": 2},
        {"num_layers": 2, "attention": "luong", "input_feeding": False},
    ),
    "LSTM, Luong's score, input feeding, bridge, two layers": (
        {"rnn_type": "lstm", "num_layers": 2},
        {"rnn_type": "lstm", "num_layers": 2, "attention": "luong"},
    ),
    "GRU, Bahdanau's score, input feeding, last, two and three layers": (
        {"num_layers": 2},
        {"num_layers": 3, "init_hidden": "last"},
    ),
}


def main() -> None:
    """Train, import and compare a model for each norm position and each recurrent architecture."""
    options = arguments(__doc__).parse_args()
    if not JOEY.exists():
        raise SystemExit("Joey NMT must be installed in its own environment: run make peers")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        trained, held_out = split_pairs(6000, 240, seed=1)
        write_sides(folder, {"train": trained, "valid": held_out[:40], "test": held_out[40:]})
        learn_subwords(folder, LANGUAGES, 300)
        rows = [
            {"norms": name, **compare(folder, *(transformer(*SIZES, **side) for side in sides))}
            for name, sides in TRANSFORMERS.items()
        ]
        wirings = [
            {"wiring": name, **compare(folder, *(RECURRENT_SIDE | side for side in sides))}
            for name, sides in RECURRENT.items()
        ]
    measurements = {"version": VERSION, "rows": rows, "recurrent": wirings}
    PAGE.keep("joey", measurements, options.commit)
    if any(row["equal"] != row["sentences"] for row in rows + wirings):
        raise SystemExit("all translations must be equal")


def body(record: Record) -> str:
    """Format the measurements as Markdown."""
    measured = record.measurements

    rows = {
        kind: [
            row
            | {"double": f", in double precision {row['precise']:.1e}" if row["precise"] else ""}
            for row in measured[kind]
        ]
        for kind in ("rows", "recurrent")
    }
    heads = "largest difference of log-probabilities | equal translations"
    cells = "{difference:.1e}{double} | {equal} of {sentences}"
    return (
        f"The tables compare models of Joey NMT {measured['version']} with the runs into which "
        "`heedful import --from joey` converts them. Joey NMT trains each model for ten epochs on "
        "the grammar corpus; Transformers have two layers of width 64. Both toolkits translate "
        f"the same {measured['rows'][0]['sentences']} sentences greedily.\n\n"
        + table(f"norms (`layer_norm`) | {heads}", f"{{norms}} | {cells}", rows["rows"])
        + "\n\nRecurrent models have width 64, and one layer unless the row names another number."
        "\n\n"
        + table(
            f"recurrent model (cell, score, input feeding, `init_hidden`) | {heads}",
            f"{{wiring}} | {cells}",
            rows["recurrent"],
        )
    )


def compare(folder: Path, encoder: dict[str, Any], decoder: dict[str, Any]) -> dict[str, Any]:
    """Train one model with Joey NMT, and compare it with the imported run."""
    place = Path(tempfile.mkdtemp(dir=folder))
    config, there, run = place / "config.json", place / "joey", place / "run"  # JSON is YAML
    settings = build_settings(
        folder,
        LANGUAGES,
        {
            "initializer": "xavier_uniform",
            "bias_initializer": "zeros",
            "embed_initializer": "xavier_uniform",
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": encoder,
            "decoder": decoder,
        },
        data={"test": str(folder / "test"), "special_symbols": special_symbols()},
        testing={"batch_size": 50, "batch_type": "sentence", "max_output_length": 30},
        training={
            "learning_rate": 0.001,
            "learning_rate_warmup": 400,
            "learning_rate_factor": 0.7,
            "batch_size": 1024,
            "epochs": 10,
            "validation_freq": 100,
            "logging_freq": 100,
        },
        model_dir=str(there),
        use_cuda=False,
    )
    config.write_text(json.dumps(settings), encoding="utf-8")
    joey(folder, "train", config, "--skip-test")
    text = (folder / "test.en").read_text(encoding="utf-8")
    theirs = joey(folder, "translate", config, input=text).splitlines()
    heedful("import", there, "--from", "joey", "--out", run)
    parity = compare_import("joey", there, run, text.splitlines())
    ours = heedful("translate", run, "--precision", "fp32", input=text).splitlines()
    return {
        "difference": parity.difference,
        "precise": parity.precise,
        "equal": sum(mine == rival for mine, rival in zip(ours, theirs, strict=True)),
        "sentences": len(ours),
    }


def joey(folder: Path, *words: object, **options: Any) -> str:
    """Run a command of Joey NMT and return its output."""
    command = [str(JOEY), "-m", "joeynmt", *map(str, words)]
    return str(subprocess.check_output(command, encoding="utf-8", cwd=folder, **options))


PAGE = ResultPage("joey", "Models of Joey NMT", {"joey": body})


if __name__ == "__main__":
    main()
