"""
Models trained by Joey NMT itself, imported and compared with it.

    make bench-joey

Writes `docs/results/joey.json`, and what is written from it. The unit tests read checkpoints that
they write themselves, in Joey's layout; here the toolkit writes them, in an environment of its own.
"""

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import sentencepiece
from tests.oracles.originals import compare_import

from benchmarks.figures import rewrite
from benchmarks.report import ROOT, commit, heedful, keep
from heedful.data.toy_grammar.corpus import split_pairs

JOEY = ROOT / "benchmarks" / "peers" / "joey" / ".venv" / "bin" / "python"
VERSION = "2.3.0"
LANGUAGES = ("en", "fr")
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
SPECIAL = {"unk": "<unk>", "pad": "<pad>", "bos": "<s>", "eos": "</s>"}


def main() -> None:
    """Train, import and compare once for each place of the norms and each recurrent wiring."""
    if not JOEY.exists():
        raise SystemExit("Joey NMT must be installed in its own environment: run make peers")
    measured = commit()
    found: dict[str, Any] = {"version": VERSION, "rows": [], "recurrent": []}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_text(folder)
        for name, sides in TRANSFORMERS.items():
            given = settings(folder, *(transformer(side) for side in sides))
            found["rows"].append({"norms": name, **compare(folder, given)})
        for name, sides in RECURRENT.items():
            given = settings(folder, *(recurrent(side) for side in sides))
            found["recurrent"].append({"wiring": name, **compare(folder, given)})
    keep("joey", found, measured)
    rewrite()
    print(body(found))
    if any(row["equal"] != row["sentences"] for row in found["rows"] + found["recurrent"]):
        raise SystemExit("all translations must be equal")


def body(found: dict[str, Any]) -> str:
    """Lay the figures out."""

    def table(kind: str, name: str) -> str:
        return "\n".join(
            f"| {row[name]} | {row['difference']:.1e}{in_double(row)} "
            f"| {row['equal']} of {row['sentences']} |"
            for row in found.get(kind, [])
        )

    def in_double(row: dict[str, Any]) -> str:
        precise = row.get("precise")
        return "" if precise is None else f", in double precision {precise:.1e}"

    heads = "largest difference of log-probabilities | equal translations |\n| --- | --- | --- |\n"
    recurrent_models = (
        "Recurrent models of width 64, with one layer where no other number is named, are trained "
        f"and compared in the same way.\n\n| recurrent model | {heads}"
    )
    return (
        f"Joey NMT {found['version']} trains two layers of width 64 for ten epochs of the embedded "
        "corpus; `heedful import --from joey` makes a run of each. Both translate the same "
        f"{found['rows'][0]['sentences']} sentences greedily.\n\n"
        f"| norms (`layer_norm`) | {heads}{table('rows', 'norms')}\n\n"
        + f"{recurrent_models}{table('recurrent', 'wiring')}\n\n" * ("recurrent" in found)
        + "```sh\nmake bench-joey\n```"
    )


def compare(folder: Path, given: dict[str, Any]) -> dict[str, Any]:
    """Train one model and say how equal the two sides are."""
    place = Path(tempfile.mkdtemp(dir=folder))
    config, there, run = place / "config.json", place / "joey", place / "run"  # JSON is YAML
    config.write_text(json.dumps({**given, "model_dir": str(there)}), encoding="utf-8")
    joey(folder, "train", config, "--skip-test")
    text = (folder / "test.en").read_text(encoding="utf-8")
    theirs = joey(folder, "translate", config, input=text).splitlines()
    heedful("import", there, "--from", "joey", "--out", run)
    parity = compare_import("joey", there, run, text.splitlines())
    ours = heedful("translate", run, "--precision", "fp32", input=text).stdout.splitlines()
    equal = sum(one == other for one, other in zip(ours, theirs, strict=True))
    return {
        "difference": parity.difference,
        "precise": parity.precise,
        "equal": equal,
        "sentences": len(ours),
    }


def joey(folder: Path, *arguments: object, **options: Any) -> str:
    """Run a command of Joey NMT and return what it printed."""
    command = [str(JOEY), "-m", "joeynmt", *map(str, arguments)]
    done = subprocess.run(
        command, check=True, encoding="utf-8", stdout=subprocess.PIPE, cwd=folder, **options
    )
    return done.stdout


def write_text(folder: Path) -> None:
    """Write the embedded corpus, and learn subwords for Joey NMT."""
    trained, held_out = split_pairs(6000, 240, seed=1)
    parts = {"train": trained, "valid": held_out[:40], "test": held_out[40:]}
    for part, pairs in parts.items():
        for language, lines in zip(LANGUAGES, zip(*pairs, strict=True), strict=True):
            (folder / f"{part}.{language}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=",".join(str(folder / f"train.{language}") for language in LANGUAGES),
        model_prefix=str(folder / "subwords"),
        model_type="bpe",
        vocab_size=300,
        character_coverage=1.0,
        **{f"{name}_id": number for number, name in enumerate(SPECIAL)},
        minloglevel=2,
    )
    model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "subwords.model"))
    pieces = [model.id_to_piece(number) for number in range(len(model))]
    (folder / "vocabulary.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")


def transformer(changes: dict[str, Any]) -> dict[str, Any]:
    """Build the settings of one side of a Transformer."""
    return {
        "type": "transformer",
        "num_layers": 2,
        "num_heads": 4,
        "embeddings": {"embedding_dim": 64, "scale": True},
        "hidden_size": 64,
        "ff_size": 128,
        "dropout": 0.1,
        **changes,
    }


def recurrent(changes: dict[str, Any]) -> dict[str, Any]:
    """Build the settings of one side of a recurrent model."""
    return {
        "type": "recurrent",
        "embeddings": {"embedding_dim": 64},
        "hidden_size": 64,
        "dropout": 0.1,
        **changes,
    }


def settings(folder: Path, encoder: dict[str, Any], decoder: dict[str, Any]) -> dict[str, Any]:
    """Build the settings of a training for Joey NMT."""

    def side(language: str) -> dict[str, Any]:
        return {
            "lang": language,
            "level": "bpe",
            "voc_file": str(folder / "vocabulary.txt"),
            "tokenizer_type": "sentencepiece",
            "tokenizer_cfg": {"model_file": str(folder / "subwords.model")},
        }

    symbols = {f"{name}_token": symbol for name, symbol in SPECIAL.items()}
    numbers = {f"{name}_id": number for number, name in enumerate(SPECIAL)}
    return {
        "name": "small",
        "joeynmt_version": VERSION,
        "use_cuda": False,
        "random_seed": 1,
        "data": {
            **{part: str(folder / part) for part in ("train", "test")},
            "dev": str(folder / "valid"),
            "dataset_type": "plain",
            **dict(zip(("src", "trg"), map(side, LANGUAGES), strict=True)),
            "special_symbols": symbols | numbers,
        },
        "testing": {
            "batch_size": 50,
            "batch_type": "sentence",
            "beam_size": 1,
            "max_output_length": 30,
        },
        "training": {
            "optimizer": "adam",
            "adam_betas": [0.9, 0.98],
            "scheduling": "noam",
            "learning_rate": 0.001,
            "learning_rate_warmup": 400,
            "learning_rate_factor": 0.7,
            "normalization": "tokens",
            "loss": "crossentropy",
            "label_smoothing": 0.1,
            "batch_size": 1024,
            "batch_type": "token",
            "epochs": 10,
            "validation_freq": 100,
            "logging_freq": 100,
        },
        "model": {
            "initializer": "xavier_uniform",
            "bias_initializer": "zeros",
            "embed_initializer": "xavier_uniform",
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": encoder,
            "decoder": decoder,
        },
    }


if __name__ == "__main__":
    main()
