"""CTranslate2, the fastest engine on CPUs, with heedful's weights in CTranslate2's format."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import protocol

# CTranslate2's variants on a CPU; on AMD its default instruction set is not the fastest.
VARIANTS = {
    "translate": [
        {"name": f"{compute}{instructions}{workers}", "precision": precision}
        for instructions in ("", " AVX512")
        for compute, precision in (("int8", "int8"), ("float32", "fp32"))
        # one batch per thread at the same time, instead of all threads on one batch
        for workers in ("", " workers")
    ]
}

# CTranslate2's number types that are at least as fast as bf16 on a GPU.
ON_GPU = {
    "translate": [
        {"name": name, "precision": "bf16"} for name in ("float16", "bfloat16", "int8_float16")
    ]
}


def translate(request: protocol.Request) -> protocol.Answer:
    """Convert the weights and translate."""
    compute, *ways = request["variant"].split()
    workers = ways[-1:] == ["workers"]
    if ways and ways[0] != "workers":
        os.environ["CT2_FORCE_CPU_ISA"] = ways[0]  # read when the library is loaded
    import ctranslate2

    sources = [[str(token) for token in row] for row in protocol.source_ids(request)]
    limit = request["max_length"]
    longest = max(map(len, sources)) if limit["relative"] else 0
    batch = request["batch"]
    options = {
        "beam_size": request["beam"],
        "length_penalty": request["alpha"],
        "max_decoding_length": limit["tokens"] + longest,
        "max_batch_size": batch or 2048,
        "batch_type": "examples" if batch else "tokens",
    }
    with tempfile.TemporaryDirectory() as folder:
        # in another process, because this process measures the memory of translation
        subprocess.run(
            [sys.executable, __file__],
            input=json.dumps({**request, "task": "convert", "folder": folder}),
            stdout=subprocess.DEVNULL,
            encoding="utf-8",
            check=True,
        )
        started = time.perf_counter()
        translator = ctranslate2.Translator(
            folder,
            device=request["device"].partition(":")[0],
            compute_type=compute,
            inter_threads=request["threads"] if workers else 1,
            intra_threads=1 if workers else request["threads"],
        )
        loaded = time.perf_counter() - started
    filled = [row for row in range(len(sources)) if len(sources[row]) > 1]
    outputs: list[list[int]] = [[] for _ in sources]

    def search(rows: list[int]) -> None:
        results = translator.translate_batch([sources[row] for row in rows], **options)
        for row, result in zip(rows, results, strict=True):
            outputs[row] = [int(token) for token in result.hypotheses[0]]

    size = 1 if batch == 1 else 2048
    every = [filled[first : first + size] for first in range(0, len(filled), size)]
    answer = protocol.timed_search(request, search, every, filled[: batch or 32], outputs)
    if "cuda" in request["device"]:
        answer["memory"] = None  # CTranslate2 does not report its memory on a GPU
    return answer | {"load": loaded, "versions": {"ctranslate2": ctranslate2.__version__}}


def convert(request: protocol.Request) -> protocol.Answer:
    """Convert the weights and write them to a folder."""
    describe(request).save(request["folder"])
    return {}


def describe(request: protocol.Request) -> Any:
    """Describe heedful's model in CTranslate2's terms."""
    import numpy as np
    from ctranslate2.specs import TransformerSpec
    from ctranslate2.specs.common_spec import Activation
    from safetensors.numpy import load_file

    shape = request["model"]
    protocol.only_paper_shape(shape)
    weights = load_file(request["model_file"])
    spec = TransformerSpec.from_config(
        (shape["encoder_layers"], shape["decoder_layers"]),
        shape["heads"],
        pre_norm=False,
        activation=Activation[shape["activation"].upper()],
    )
    table = weights["embed_source.weight"]
    positions = np.load(request["positions"])
    spec.encoder.embeddings[0].weight = table
    spec.decoder.embeddings.weight = table
    spec.decoder.projection.weight = table
    for side in ("encoder", "decoder"):
        stack = getattr(spec, side)
        stack.scale_embeddings = True
        stack.position_encodings.encodings = positions
        for number, layer in enumerate(stack.layer):
            convert_layer(layer, f"{side}.layers.{number}", weights)
    tokens = [str(number) for number in range(len(table))]
    start, end = shape["start_token"], shape["end_token"]
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.config.unk_token, spec.config.bos_token = "1", str(start)
    spec.config.eos_token, spec.config.decoder_start_token = str(end), str(start)
    spec.config.layer_norm_epsilon = shape["norm_epsilon"]
    spec.validate()
    spec.optimize()
    return spec


def convert_layer(layer: Any, name: str, weights: dict[str, Any]) -> None:
    """Copy the weights of one layer."""

    def linear(spec: Any, place: str, rows: slice = slice(None)) -> None:
        spec.weight = weights[f"{name}.{place}.weight"][rows]
        if f"{name}.{place}.bias" in weights:
            spec.bias = weights[f"{name}.{place}.bias"][rows]

    def norm(spec: Any, place: str) -> None:
        spec.gamma = weights[f"{name}.{place}.norm.weight"]
        spec.beta = weights[f"{name}.{place}.norm.bias"]

    linear(layer.self_attention.linear[0], "self_attention.qkv_proj")
    linear(layer.self_attention.linear[1], "self_attention.out_proj")
    norm(layer.self_attention.layer_norm, "self_residual")
    if hasattr(layer, "attention"):
        width = len(weights[f"{name}.cross_attention.qkv_proj.weight"]) // 3
        linear(layer.attention.linear[0], "cross_attention.qkv_proj", slice(0, width))
        linear(layer.attention.linear[1], "cross_attention.qkv_proj", slice(width, None))
        linear(layer.attention.linear[2], "cross_attention.out_proj")
        norm(layer.attention.layer_norm, "cross_residual")
    linear(layer.ffn.linear_0, "feed_forward.linear1")
    linear(layer.ffn.linear_1, "feed_forward.linear2")
    norm(layer.ffn.layer_norm, "feed_forward_residual")


protocol.serve(VARIANTS, {"translate": translate, "convert": convert}, ON_GPU)
