"""MarianMTModel of Hugging Face's transformers, the class of most published translation models."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import protocol

VARIANTS = {
    "train": protocol.IN_FLOATS,
    "translate": [
        {"name": "fp32", "precision": "fp32"},
        {"name": "bf16", "precision": "bf16"},
    ],
}

ON_GPU = {
    "train": protocol.IN_FLOATS + protocol.COMPILED,
    # with a static cache, transformers compiles the decoding steps
    "translate": [*VARIANTS["translate"], {"name": "bf16 static", "precision": "bf16"}],
}
# Sources are padded to a multiple of this length, because each new length is compiled separately.
STATIC_SOURCE = 32


def build(request: protocol.Request) -> Any:
    """Build a model of the requested shape with random weights."""
    import torch
    from transformers import MarianConfig, MarianMTModel

    shape = request["model"]
    protocol.only_paper_shape(shape)
    torch.manual_seed(1)
    torch.set_num_threads(request["threads"])
    config = MarianConfig(
        vocab_size=shape["vocabulary"],
        d_model=shape["d_model"],
        encoder_layers=shape["encoder_layers"],
        decoder_layers=shape["decoder_layers"],
        encoder_attention_heads=shape["heads"],
        decoder_attention_heads=shape["heads"],
        encoder_ffn_dim=shape["d_ff"],
        decoder_ffn_dim=shape["d_ff"],
        activation_function=shape["activation"],
        dropout=shape["dropout"],
        attention_dropout=0.0,
        activation_dropout=0.0,
        max_position_embeddings=1100,
        scale_embedding=True,
        static_position_embeddings=True,
        init_std=shape["d_model"] ** -0.5,
        pad_token_id=shape["pad"],
        bos_token_id=shape["start_token"],
        eos_token_id=shape["end_token"],
        forced_eos_token_id=None,
        decoder_start_token_id=shape["start_token"],
    )
    return MarianMTModel(config).to(request["device"])


def train(request: protocol.Request) -> protocol.Answer:
    """Take training steps."""
    model, padding = build(request), request["model"]["pad"]

    def logits(source: Any, target_in: Any) -> Any:
        mask = (source != padding).long()
        return model(
            input_ids=source, attention_mask=mask, decoder_input_ids=target_in, use_cache=False
        ).logits

    return protocol.train_in_torch(request, model, logits, model.device, versions())


def translate(request: protocol.Request) -> protocol.Answer:
    """Translate with `generate`, using heedful's weights."""
    import torch

    model = build(request)
    load(model, request)
    model.eval()
    if request["precision"] == "bf16":
        model.to(torch.bfloat16)
    sources = protocol.source_ids(request)
    filled = [row for row in range(len(sources)) if len(sources[row]) > 1]
    special = {request["model"][name] for name in ("pad", "start_token", "end_token")}
    outputs: list[list[int]] = [[] for _ in sources]
    is_static = "static" in request["variant"].split()

    def search(rows: list[int]) -> None:
        width = max(len(sources[row]) for row in rows)
        if is_static:
            width = -(-width // STATIC_SOURCE) * STATIC_SOURCE
        ids = torch.tensor(
            protocol.pad_rows([sources[row] for row in rows], request["model"]["pad"], width),
            device=model.device,
        )
        limit = request["max_length"]
        extra = max(len(sources[row]) for row in rows) if limit["relative"] else 0
        with torch.inference_mode():
            generated = model.generate(
                input_ids=ids,
                attention_mask=(ids != request["model"]["pad"]).long(),
                num_beams=request["beam"],
                length_penalty=request["alpha"],
                max_new_tokens=limit["tokens"] + extra,
                max_length=None,
                do_sample=False,
                cache_implementation="static" if is_static else None,
            )
        for row, tokens in zip(rows, generated.tolist(), strict=True):
            outputs[row] = [token for token in tokens if token not in special]

    every = batches(sources, filled, request["batch"])
    first = filled[: request["batch"] or 32]
    answer = protocol.timed_search(request, search, every, first, outputs)
    if model.device.type == "cuda":
        answer["memory"] = torch.cuda.max_memory_allocated()
    return answer | {"versions": versions()}


def batches(sources: list[list[int]], filled: list[int], size: int | None) -> list[list[int]]:
    """Batch sentences of similar length: `size` sentences, or about 2,048 tokens if None."""
    if size == 1:
        return [[row] for row in filled]
    order = sorted(filled, key=lambda row: -len(sources[row]))
    parts: list[list[int]] = []
    for row in order:
        if parts:
            most = size or max(1, 2048 // len(sources[parts[-1][0]]))
        if not parts or len(parts[-1]) >= most:
            parts.append([])
        parts[-1].append(row)
    return parts


def load(model: Any, request: protocol.Request) -> None:
    """Copy heedful's weights to a Marian model."""
    import numpy as np
    import torch
    from safetensors.torch import load_file

    theirs = load_file(request["model_file"])
    table = theirs["embed_source.weight"]
    positions = torch.from_numpy(np.load(request["positions"]))
    inner = model.model
    with torch.no_grad():
        inner.shared.weight.copy_(table)
        model.lm_head.weight.copy_(table)
        for side in ("encoder", "decoder"):
            stack = getattr(inner, side)
            stack.embed_positions.weight.copy_(positions[: len(stack.embed_positions.weight)])
            stack.embed_tokens.weight.copy_(table)
            for number, layer in enumerate(stack.layers):
                copy_layer(layer, f"{side}.layers.{number}", theirs, request["model"])


def copy_layer(layer: Any, name: str, theirs: dict[str, Any], shape: dict[str, Any]) -> None:
    """Copy the weights of one layer."""
    attentions = {"self_attention": layer.self_attn}
    norms = {"self_residual.norm": layer.self_attn_layer_norm}
    if hasattr(layer, "encoder_attn"):
        attentions["cross_attention"] = layer.encoder_attn
        norms["cross_residual.norm"] = layer.encoder_attn_layer_norm
    norms["feed_forward_residual.norm"] = layer.final_layer_norm
    for place, attention in attentions.items():
        parts = (attention.q_proj, attention.k_proj, attention.v_proj)
        copy_linear(attention.out_proj, f"{name}.{place}.out_proj", theirs)
        weight = theirs[f"{name}.{place}.qkv_proj.weight"].chunk(3)
        bias = theirs.get(f"{name}.{place}.qkv_proj.bias")
        for number, part in enumerate(parts):
            part.weight.copy_(weight[number])
            part.bias.zero_() if bias is None else part.bias.copy_(bias.chunk(3)[number])
    copy_linear(layer.fc1, f"{name}.feed_forward.linear1", theirs)
    copy_linear(layer.fc2, f"{name}.feed_forward.linear2", theirs)
    for place, norm in norms.items():
        norm.eps = shape["norm_epsilon"]
        copy_linear(norm, f"{name}.{place}", theirs)


def copy_linear(module: Any, name: str, theirs: dict[str, Any]) -> None:
    """Copy a weight and a bias; a missing bias becomes zero."""
    module.weight.copy_(theirs[f"{name}.weight"])
    bias = theirs.get(f"{name}.bias")
    module.bias.zero_() if bias is None else module.bias.copy_(bias)


def versions() -> dict[str, str]:
    """Return the name and version of the toolkit."""
    import torch
    import transformers

    return {"transformers": transformers.__version__, "torch": torch.__version__}


protocol.serve(VARIANTS, {"train": train, "translate": translate}, ON_GPU)
