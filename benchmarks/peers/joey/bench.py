"""
Joey NMT: end-to-end training by its own command with its own subwords, and recurrent models.

Steps and searches of recurrent models call Joey NMT's functions on token ids from heedful.
"""

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
import toolkit

VARIANTS = {task: [{"name": "", "precision": "fp32"}] for task in ("train", "translate")}


def train(request: protocol.Request) -> protocol.Answer:
    """Take training steps as `TrainManager` does: forward, backward, clip, Adam."""
    import torch

    torch.set_num_threads(request["threads"])
    shape, device = request["model"], torch.device(request["device"])
    model = build(shape).to(device)
    model.loss_function = ("crossentropy", request["label_smoothing"])
    adam = torch.optim.Adam(model.parameters(), lr=1e-3)
    source, _, _ = protocol.sides(request)
    targets = [[shape["start_token"], *row, shape["end_token"]] for row in request["targets"]]
    rows = protocol.pad_rows(targets, shape["pad"])
    losses = []

    def step() -> None:
        model.train()
        batch = batch_of(shape, source, device, rows)
        batch.sort_by_src_length()
        loss, _, _, _ = model(return_type="loss", **vars(batch))
        loss = batch.normalize(loss, normalization="tokens")
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        adam.zero_grad()
        losses.append(loss.item())

    return protocol.timed_steps(request, step, losses, device) | {"versions": versions()}


def translate(request: protocol.Request) -> protocol.Answer:
    """Load heedful's weights, and translate batches of sentences with similar lengths."""
    import torch
    from joeynmt.search import search

    torch.set_num_threads(request["threads"])
    shape, device = request["model"], torch.device(request["device"])
    model = build(shape).to(device).eval()
    model.load_state_dict(weights_of(request["model_file"], shape))
    sources = protocol.source_ids(request)
    limit, size = request["max_length"], request["batch"] or 32
    order = sorted(range(len(sources)), key=lambda row: -len(sources[row]))
    outputs: list[list[int]] = [[] for _ in sources]

    def search_rows(rows: list[int]) -> None:
        batch = batch_of(
            shape, protocol.pad_rows([sources[row] for row in rows], shape["pad"]), device
        )
        longest = limit["tokens"] + limit["relative"] * max(len(sources[row]) for row in rows)
        ids_of_rows, _, _ = search(
            model,
            batch,
            max_output_length=longest,
            beam_size=request["beam"],
            beam_alpha=request["alpha"],
        )
        for row, ids in zip(rows, ids_of_rows.tolist(), strict=True):
            ended = ids.index(shape["end_token"]) if shape["end_token"] in ids else len(ids)
            outputs[row] = ids[:ended]

    every = [order[first : first + size] for first in range(0, len(order), size)]
    answer = protocol.timed_search(request, search_rows, every, order[:size], outputs)
    return answer | {"versions": versions()}


def build(shape: dict[str, Any]) -> Any:
    """Build Joey NMT's recurrent model of a shape, with heedful's special ids."""
    from types import SimpleNamespace

    from joeynmt.model import build_model
    from joeynmt.vocabulary import Vocabulary

    symbols = toolkit.special_symbols()
    known = SimpleNamespace(**symbols, sep_token=None, sep_id=None, lang_tags=[])
    words = Vocabulary([f"w{number}" for number in range(shape["vocabulary"] - 4)], known)
    model = build_model(recurrent(shape), src_vocab=words, trg_vocab=words)
    model.pad_index, model.unk_index = (
        shape["pad"],
        6 - shape["pad"] - shape["start_token"] - shape["end_token"],
    )
    model.bos_index, model.eos_index = shape["start_token"], shape["end_token"]
    for table in (model.src_embed, model.trg_embed):
        table.lut.padding_idx = shape["pad"]
    return model


def recurrent(shape: dict[str, Any]) -> dict[str, Any]:
    """Convert heedful's settings of a recurrent model to Joey NMT's."""
    ours = shape["recurrent"]
    wanted = {"direction": "bidirectional", "query": "current", "readout": "attentional"}
    different = {name: ours[name] for name, value in wanted.items() if ours[name] != value}
    scores = {"additive": "bahdanau", "general": "luong"}
    if (
        (shape["encoder"], shape["decoder"], shape["tie_embeddings"])
        != ("recurrent", "recurrent", "none")
        or different
        or ours["score"] not in scores
        or ours["cell"] == "rnn"
        or ours["start"] not in ("zero", "bridge")
        or ours["feed"] == "context"
    ):
        raise SystemExit(
            "Joey NMT supports only recurrent models with bidirectional encoders, a current "
            "query, an attentional readout and separate tables"
        )

    def width(name: str) -> int:
        return int(ours[name] or ours["hidden_size"] or shape["d_model"])

    def share(name: str) -> float:
        return float(shape["dropout"] if ours[name] is None else ours[name])

    def side(layers: int, size: int) -> dict[str, Any]:
        embeddings = {"embedding_dim": shape["d_model"], "dropout": share("embedding_dropout")}
        return {
            "type": "recurrent",
            "rnn_type": ours["cell"],
            "num_layers": layers,
            "hidden_size": size,
            "dropout": share("layer_dropout"),
            "embeddings": embeddings,
        }

    decoder = {
        "attention": scores[ours["score"]],
        "input_feeding": ours["feed"] == "readout",
        "init_hidden": ours["start"],
        "hidden_dropout": share("readout_dropout"),
    }
    return {
        "encoder": side(shape["encoder_layers"], width("encoder_hidden_size")),
        "decoder": side(shape["decoder_layers"], width("decoder_hidden_size")) | decoder,
    }


def batch_of(
    shape: dict[str, Any], source: list[list[int]], device: Any, target: Any = None
) -> Any:
    """Build Joey NMT's batch of padded ids."""
    import torch
    from joeynmt.batch import Batch

    rows = torch.tensor(source)
    return Batch(
        src=rows,
        src_length=(rows != shape["pad"]).sum(1),
        src_prompt_mask=None,
        trg=None if target is None else torch.tensor(target),
        trg_prompt_mask=None,
        indices=torch.arange(len(rows)),
        device=device,
        pad_index=shape["pad"],
        eos_index=shape["end_token"],
        is_train=target is not None,
    )


def weights_of(path: str, shape: dict[str, Any]) -> dict[str, Any]:
    """Read heedful's weights, and return them under Joey NMT's names."""
    from safetensors.torch import load_file

    names = {
        "embed_source.": "src_embed.lut.",
        "embed_target.": "trg_embed.lut.",
        "output.": "decoder.output_layer.",
        "decoder.readout.": "decoder.att_vector_layer.",
        "decoder.start_proj.": "decoder.bridge_layer.",
        "decoder.attention.query_proj.": "decoder.attention.query_layer.",
        "decoder.attention.key_proj.": "decoder.attention.key_layer.",
    }
    for place, side in (("encoder.columns.0", "encoder"), ("decoder.layers", "decoder")):
        for layer in range(shape[f"{side}_layers"]):
            names[f"{place}.{layer}.rnn."] = f"{side}.rnn.{layer}."
    weights = {}
    for name, tensor in load_file(path).items():
        if name == "decoder.attention.energy":
            weights["decoder.attention.energy_layer.weight"] = tensor.unsqueeze(0)
            continue
        ours = next(ours for ours in names if name.startswith(ours))
        theirs = names[ours] + name[len(ours) :]
        layer = re.fullmatch(r"(.*rnn\.)(\d+)\.(.*_l)0(.*)", theirs)
        if layer:
            theirs = f"{layer[1]}{layer[3]}{layer[2]}{layer[4]}"
        weights[theirs] = tensor
    return weights


def end_to_end(request: protocol.Request) -> protocol.Answer:
    """
    Time the training of an epoch, from the start of the command to its end.

    Learning the subwords, which has its own script, is not timed.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        languages = request["languages"]
        for part in ("train", "valid"):
            for language in languages:
                lines = read(request[part][language])[: request["pairs"]]
                (folder / f"{part}.{language}").write_text("\n".join(lines) + "\n", "utf-8")
        toolkit.learn_subwords(folder, languages, request["model"]["vocabulary"])
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
        raise SystemExit("train.log must have the number of tokens of an epoch, but it has none")
    return {
        "seconds": [seconds],
        "target_tokens": int(epoch[1]),
        "own_seconds": float(epoch[2]),
        "memory": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024,
        "command": "python -m joeynmt train config.yaml --skip-test",
        "versions": versions(),
    }


def read(path: str) -> list[str]:
    """Read the lines of a plain or compressed file."""
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        return file.read().splitlines()


def settings(request: protocol.Request, folder: Path) -> dict[str, Any]:
    """Convert heedful's recipe to Joey NMT's settings."""
    shape = request["model"]
    return toolkit.build_settings(
        folder,
        request["languages"],
        transformer(shape) if shape["encoder"] == "transformer" else recurrent(shape),
        data={},
        testing={},
        training={
            "learning_rate": 0.0002,
            "learning_rate_min": 0.0,
            "learning_rate_factor": 1,
            "learning_rate_warmup": request["warmup"] or 1000,
            "label_smoothing": request["label_smoothing"],
            "batch_size": request["batch_tokens"],
            "epochs": 1,
            "validation_freq": 1_000_000,
            "logging_freq": 20,
            "overwrite": True,
            "shuffle": True,
        },
        model_dir=str(folder / "run"),
        use_cuda=request["device"] != "cpu",
        fp16=False,
    )


def transformer(shape: dict[str, Any]) -> dict[str, Any]:
    """Convert heedful's settings of a Transformer to Joey NMT's."""
    protocol.only_paper_shape(shape)
    sides = {
        side: toolkit.transformer(
            shape[f"{side}_layers"],
            *(shape["heads"], shape["d_model"], shape["d_ff"], shape["dropout"]),
            embeddings={"dropout": 0.0},
            layer_norm="post",
            activation=shape["activation"],
        )
        for side in ("encoder", "decoder")
    }
    return {
        "initializer": "xavier_uniform",
        "embed_initializer": "normal",
        "embed_init_weight": shape["d_model"] ** -0.5,
        "tied_embeddings": True,
        "tied_softmax": True,
        **sides,
    }


def versions() -> dict[str, str]:
    """Return the name and version of the toolkit."""
    from importlib.metadata import version

    return {name: version(name) for name in ("joeynmt", "torch", "sentencepiece")}


protocol.serve(VARIANTS, {"train": train, "translate": translate, "end_to_end": end_to_end})
