"""Joey NMT, trained end to end by its own command with its own subwords."""

import gzip
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import protocol


def end_to_end(request: protocol.Request) -> protocol.Answer:
    """
    Train for an epoch: from the start of the command to its end.

    Learning the subwords, for which it has a script of its own, is not timed.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        languages = request["languages"]
        for part in ("train", "valid"):
            for language in languages:
                lines = read(request[part][language])[: request["pairs"]]
                (folder / f"{part}.{language}").write_text("\n".join(lines) + "\n", "utf-8")
        learn_subwords(folder, languages, request["model"]["vocabulary"])
        config = folder / "config.yaml"
        config.write_text(json.dumps(settings(request, folder)), encoding="utf-8")  # JSON is YAML
        command = [sys.executable, "-m", "joeynmt", "train", str(config), "--skip-test"]
        threads = {"OMP_NUM_THREADS": str(request["threads"])}
        started = time.perf_counter()
        subprocess.run(
            command, check=True, stdout=sys.stderr, env={**os.environ, **threads}, cwd=folder
        )
        seconds = time.perf_counter() - started
        log = (folder / "run" / "train.log").read_text(encoding="utf-8")
    epoch = re.search(r"num\. of tokens: (\d+), ([\d.]+)\[sec\]", log)
    if epoch is None:
        raise SystemExit("train.log must tell the tokens of an epoch, but it does not")
    return {
        "seconds": [seconds],
        "target_tokens": int(epoch[1]),
        "own_seconds": float(epoch[2]),
        "memory": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024,
        "command": "python -m joeynmt train config.yaml --skip-test",
        "versions": versions(),
    }


def read(path: str) -> list[str]:
    """Read lines, compressed or not."""
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        return file.read().splitlines()


def learn_subwords(folder: Path, languages: list[str], size: int) -> None:
    """Learn one subword model of both sides, and write its vocabulary for Joey NMT."""
    import sentencepiece

    sentencepiece.SentencePieceTrainer.train(
        input=",".join(str(folder / f"train.{language}") for language in languages),
        model_prefix=str(folder / "subwords"),
        model_type="bpe",
        vocab_size=size,
        character_coverage=1.0,
        unk_id=0,
        pad_id=1,
        bos_id=2,
        eos_id=3,
        minloglevel=2,
    )
    model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "subwords.model"))
    pieces = [model.id_to_piece(number) for number in range(len(model))]
    (folder / "vocabulary.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")


def settings(request: protocol.Request, folder: Path) -> dict[str, Any]:
    """Convert heedful's recipe to Joey NMT's settings."""
    shape = request["model"]
    protocol.only_paper_shape(shape)
    source, target = request["languages"]

    def side(language: str) -> dict[str, Any]:
        return {
            "lang": language,
            "max_length": 256,
            "level": "bpe",
            "voc_file": str(folder / "vocabulary.txt"),
            "tokenizer_type": "sentencepiece",
            "tokenizer_cfg": {"model_file": str(folder / "subwords.model")},
        }

    def stack(layers: int) -> dict[str, Any]:
        return {
            "type": "transformer",
            "num_layers": layers,
            "num_heads": shape["heads"],
            "embeddings": {
                "embedding_dim": shape["d_model"],
                "scale": True,
                "dropout": 0.0,
            },
            "hidden_size": shape["d_model"],
            "ff_size": shape["d_ff"],
            "dropout": shape["dropout"],
            "layer_norm": "post",
            "activation": shape["activation"],
        }

    return {
        "name": "epoch",
        "joeynmt_version": "2.3.0",
        "model_dir": str(folder / "run"),
        "use_cuda": request["device"] != "cpu",
        "fp16": False,
        "random_seed": 1,
        "data": {
            "train": str(folder / "train"),
            "dev": str(folder / "valid"),
            "dataset_type": "plain",
            "src": side(source),
            "trg": side(target),
        },
        "testing": {"beam_size": 1},
        "training": {
            "optimizer": "adam",
            "adam_betas": [0.9, 0.98],
            "scheduling": "noam",
            "learning_rate": 0.0002,
            "learning_rate_min": 0.0,
            "learning_rate_factor": 1,
            "learning_rate_warmup": request["warmup"],
            "normalization": "tokens",
            "loss": "crossentropy",
            "label_smoothing": request["label_smoothing"],
            "batch_size": request["batch_tokens"],
            "batch_type": "token",
            "epochs": 1,
            "validation_freq": 1_000_000,
            "logging_freq": 20,
            "overwrite": True,
            "shuffle": True,
        },
        "model": {
            "initializer": "xavier_uniform",
            "embed_initializer": "normal",
            "embed_init_weight": shape["d_model"] ** -0.5,
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": stack(shape["encoder_layers"]),
            "decoder": stack(shape["decoder_layers"]),
        },
    }


def versions() -> dict[str, str]:
    """Return the name and version of the toolkit."""
    from importlib.metadata import version

    return {name: version(name) for name in ("joeynmt", "torch", "sentencepiece")}


protocol.serve({}, {"end_to_end": end_to_end})
