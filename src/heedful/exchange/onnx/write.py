"""
Export as two ONNX graphs, for programs that use neither heedful nor torch.

::

    encoder.onnx          source -> memory_keys, memory_values, memory_mask
    step.onnx             tokens, past_keys, past_values, and the encoder's outputs
                              -> log_probabilities, keys, values
    onnx.json             names, shapes, special ids and search settings; fingerprints of the
                          subwords and of this export (also in both graphs)
    tokenizer.json, …     as in a run folder

The batch size and the lengths are dynamic.
"""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from heedful._version import __version__
from heedful.exchange.formats import ExportResult, ModelBundle, WriteOptions
from heedful.exchange.onnx.graphs import encoder_nodes, step_nodes
from heedful.exchange.onnx.model import (
    DESCRIPTION,
    FINGERPRINT,
    OnnxModel,
    OnnxReference,
    never_written,
)
from heedful.exchange.onnx.nodes import OPSET, Tensors
from heedful.families.build import build_model, padded_vocabulary
from heedful.model.transformer import Transformer
from heedful.runs.checkpoint import load_weights
from heedful.runs.folder import write_json
from heedful.tokenization.tokenizer import END, PAD, UNKNOWN

EXPRESSES = frozenset(
    (
        *("model.positions=rotary", "model.norm_kind=rms", "model.attention.score=unscaled"),
        *("model.attention.kv_heads", "model.gated", "model.feed_forward_bias"),
        *("model.encoder_sharing", "model.decoder_sharing", "model.tie_embeddings"),
    )
)
"""Settings beyond the paper's Transformer that the graphs can express."""
_FORMAT = 1

_MEMORY = {
    "memory_keys": "rows layers heads source d_k",
    "memory_values": "rows layers heads source d_v",
    "memory_mask": "rows source",
}
ENCODER: dict[str, Tensors] = {"inputs": {"source": "rows source"}, "outputs": _MEMORY}
"""Inputs and outputs of the encoder graph."""
STEP: dict[str, Tensors] = {
    "inputs": {
        "tokens": "rows",
        "past_keys": "rows layers heads length d_k",
        "past_values": "rows layers heads length d_v",
        **_MEMORY,
    },
    "outputs": {
        "log_probabilities": "rows vocabulary",
        "keys": "rows layers heads length+1 d_k",
        "values": "rows layers heads length+1 d_v",
    },
}
"""Inputs and outputs of the step graph."""


def write(model: ModelBundle, folder: Path, options: WriteOptions) -> ExportResult:
    """Write both graphs and their description."""
    del options
    built = model_of(model)
    fingerprint = fingerprint_of(model)
    write_graphs(built, folder, fingerprint)
    model.tokenizer.save(folder)
    write_json(folder / DESCRIPTION, _description(model, built, fingerprint))
    return ExportResult(model.config.search)


def open_engine(folder: Path, model: ModelBundle) -> OnnxReference:
    """Open the exported graphs with onnxruntime, or raise `MissingExtra`."""
    first = model_of(model).start_token
    graphs = OnnxModel(folder, PAD, first, END)
    settings = model.config
    return OnnxReference(graphs, model.tokenizer, settings.search, settings.model.source_end)


def model_of(portable: ModelBundle) -> Transformer:
    """Build a run's model with its weights, table sizes and positions."""
    config, tokenizer = portable.config, portable.tokenizer
    multiple = config.data.vocabulary_multiple
    model = build_model(
        config.model,
        padded_vocabulary(tokenizer.source_size, multiple),
        padded_vocabulary(tokenizer.target_size, multiple),
        max_length=config.data.max_length + 1,
    )
    assert isinstance(model, Transformer)  # `export_model` refuses other families
    load_weights(model, portable.weights, Path("the run"))
    return model.float().eval()


def fingerprint_of(portable: ModelBundle) -> str:
    """Compute a digest of weights, tokenizer and settings, which identifies an export."""
    total = sha256(portable.tokenizer.fingerprint.encode())
    total.update(json.dumps(portable.config.to_dict(), sort_keys=True).encode())
    for name, weight in sorted(portable.weights.items()):
        total.update(f"{name} {tuple(weight.shape)}".encode())
        total.update(weight.detach().float().cpu().contiguous().numpy().data)
    return total.hexdigest()


def write_graphs(model: Transformer, folder: Path, fingerprint: str) -> None:
    """Write ``encoder.onnx`` and ``step.onnx``, each with the fingerprint of the export."""
    # The model comes from `model_of` or `heedful.families.build`, without prepacked weights.
    graphs = (("encoder", encoder_nodes, ENCODER), ("step", step_nodes, STEP))
    sizes = {name: str(size) for name, size in _sizes(model).items()}
    for name, nodes_of, about in graphs:
        inputs, outputs = (
            {
                tensor: " ".join(sizes.get(axis, axis) for axis in axes.split())
                for tensor, axes in about[side].items()
            }
            for side in ("inputs", "outputs")
        )
        metadata = {FINGERPRINT: fingerprint}
        nodes_of(model).save(folder / f"{name}.onnx", name, inputs, outputs, metadata)


def _sizes(model: Transformer) -> dict[str, int]:
    """Return the sizes of constant axes."""
    attention: Any = model.decoder.layers[0].cross_attention
    return {
        "layers": len(model.decoder.layers),
        "heads": attention.kv_heads,  # of the stored keys and values
        "d_k": attention.d_k,
        "d_v": attention.d_v,
        "vocabulary": model.output.weight.size(0),
    }


def _description(portable: ModelBundle, model: Transformer, fingerprint: str) -> dict[str, Any]:
    """Describe everything that a program needs to search with the graphs."""
    config = portable.config
    return {
        "format": _FORMAT,
        "heedful": __version__,
        "opset": OPSET,
        FINGERPRINT: fingerprint,
        "tokenizer": portable.tokenizer.fingerprint,
        "encoder": {"file": "encoder.onnx", **ENCODER},
        "step": {"file": "step.onnx", **STEP},
        "sizes": _sizes(model),
        "padding": PAD,
        "unknown": UNKNOWN,
        "first": model.start_token,
        "end": END,
        "behind_source": [END] if config.model.source_end else [],
        "subwords": portable.tokenizer.target_size,
        "never": list(never_written(config.search)),
        "search": config.to_dict()["search"],
    }
