"""
Tensor names of Hugging Face's T5 class.

::

    shared                                                 both embeddings, and lm_head if tied
    {encoder,decoder}.block.N.layer.0.SelfAttention.{q,k,v,o}
    decoder.block.N.layer.1.EncDecAttention.{q,k,v,o}
    ….layer.{1,2}.DenseReluDense.{wi,wo}                   wi_0 and wi_1 if the network is gated
    ….layer.K.layer_norm, {encoder,decoder}.final_layer_norm
    {encoder,decoder}.block.0.layer.0.SelfAttention.relative_attention_bias    for all layers

No linear layer has a bias.
"""

from collections.abc import Iterator

from heedful.config.model import ModelConfig
from heedful.families.keymap import Entry, KeyMap, RowMap, Stacked

SHARED, HEAD = "shared.weight", "lm_head.weight"
_COPIES = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
# A table of cross-attention in old checkpoints, which nothing reads.
_UNUSED = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"


def t5_map(config: ModelConfig, rows: RowMap) -> KeyMap:
    """Build the key map; a tied output uses the table of the embeddings."""
    entries = [Entry("embed_source.weight", (SHARED,), rows)]
    tied = list(_COPIES)
    if config.tie_embeddings == "embeddings":
        entries.append(Entry("output.weight", (HEAD,), rows))
    else:
        tied.append(HEAD)
    for side, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for number in range(layers):
            entries += _layer(config, f"{side}.layers.{number}", f"{side}.block.{number}", side)
        scaled = side == "decoder" and config.scale_output
        last = f"{side}.norm.norm.weight" if scaled else f"{side}.norm.weight"
        entries.append(Entry(last, (f"{side}.final_layer_norm.weight",)))
        table = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        entries.append(Entry(f"{side}.score_bias.weight", (table,)))
    return KeyMap(tuple(entries), (_UNUSED,), dict.fromkeys(tied, SHARED))


def _layer(config: ModelConfig, ours: str, theirs: str, side: str) -> Iterator[Entry]:
    """Map one layer."""
    attentions = [("self_attention", "self_residual", "SelfAttention")]
    if side == "decoder":
        attentions.append(("cross_attention", "cross_residual", "EncDecAttention"))
    for number, (name, residual, there) in enumerate(attentions):
        place = f"{theirs}.layer.{number}"
        inward = tuple(f"{place}.{there}.{part}.weight" for part in "qkv")
        yield Entry(f"{ours}.{name}.qkv_proj.weight", inward, Stacked(count=3))
        yield Entry(f"{ours}.{name}.out_proj.weight", (f"{place}.{there}.o.weight",))
        yield Entry(f"{ours}.{residual}.norm.weight", (f"{place}.layer_norm.weight",))
    place = f"{theirs}.layer.{len(attentions)}"
    gates = ("wi_0", "wi_1") if config.gated else ("wi",)
    inward = tuple(f"{place}.DenseReluDense.{gate}.weight" for gate in gates)
    yield Entry(f"{ours}.feed_forward.linear1.weight", inward, Stacked(count=len(gates)))
    yield Entry(f"{ours}.feed_forward.linear2.weight", (f"{place}.DenseReluDense.wo.weight",))
    yield Entry(f"{ours}.feed_forward_residual.norm.weight", (f"{place}.layer_norm.weight",))
