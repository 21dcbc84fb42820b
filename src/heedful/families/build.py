"""Construction of a whole model from its settings: embeddings, encoder, decoder and output."""

from functools import partial
from importlib import import_module
from typing import Any

from torch import nn

from heedful.errors import PluginError
from heedful.families.family import Family
from heedful.families.registry import (
    POSITIONS_BUILDERS,
    chosen_value,
    decoder_family,
    encoder_family,
    families,
    family_of,
)
from heedful.model.attention import MultiHeadAttention
from heedful.model.embedding import (
    NoPositions,
    Positions,
    TokenEmbedding,
    build_output,
    build_positions,
)
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.model.halves import SourceEncoder, TargetDecoder
from heedful.model.layer_config import LayerParts
from heedful.model.parts import NO_NETWORKS, Networks
from heedful.model.transformer import Transformer
from heedful.settings.model import ModelSettings
from heedful.settings.registries import SCORES


def build_model(
    settings: ModelSettings,
    source_vocabulary: int,
    target_vocabulary: int,
    *,
    max_length: int,
    padding: int = 0,
    start_token: int = 2,
    end_token: int = 3,
) -> EncoderDecoder:
    """
    Build a model from its settings.

    `source_vocabulary, target_vocabulary`: numbers of rows of the two embedding tables, including
    unused rows; equal if the tables are tied.

    `settings.decoder_start` chooses the decoder's first input: the start, end or padding symbol, or
    a zero vector (the authors' code uses padding, whose embedding is zero).
    """
    zero_token = padding if settings.decoder_start == "zero" else None
    first = {"symbol": start_token, "end": end_token, "pad": padding, "zero": padding}

    def embedding(vocabulary: int, *families: str) -> TokenEmbedding:
        scale = settings.scale_embeddings and "transformer" in families
        return TokenEmbedding(vocabulary, settings.d_model, scale, zero_token)

    encoder, source_positions = _encoder(settings, max_length)
    decoder, target_positions = _decoder(settings, max_length, encoder)
    shared = settings.tie_embeddings in ("all", "embeddings")
    readers = (settings.encoder, settings.decoder) if shared else (settings.decoder,)
    embed_target = embedding(target_vocabulary, *readers)
    output = build_output(
        embed_target,
        decoder.width,
        is_tied=settings.tie_embeddings in ("all", "output"),
        has_bias=settings.output_bias,
    )
    is_transformer = settings.encoder == settings.decoder == "transformer"
    model = (Transformer.from_parts if is_transformer else EncoderDecoder)(
        embed_target if shared else embedding(source_vocabulary, settings.encoder),
        embed_target,
        source_positions,
        target_positions,
        encoder,
        decoder,
        output,
        dropout=settings.dropout,
        padding=padding,
        start_token=first[settings.decoder_start],
        end_token=end_token,
        source_norm=_embedding_norm(settings, source_positions),
        target_norm=_embedding_norm(settings, target_positions),
    )
    _check_scores(model)
    return model


def padded_vocabulary(size: int, multiple: int) -> int:
    """
    Round the size of a vocabulary up to a multiple.

    `multiple`: the result is divisible by this number.

    Rows beyond `size` belong to no token; searches forbid their ids.
    """
    return -(-size // multiple) * multiple


def _encoder(settings: ModelSettings, max_length: int) -> tuple[SourceEncoder, Positions | None]:
    """Build the encoder and its positions."""
    family = encoder_family(settings.encoder)
    encoder = _builder(family).build_encoder(settings, **_parts(family, settings, "encoder"))
    _check_contract(family, "build_encoder", encoder, SourceEncoder)
    return encoder, _positions(family, settings, max_length)


def _decoder(
    settings: ModelSettings, max_length: int, encoder: SourceEncoder
) -> tuple[TargetDecoder, Positions | None]:
    """Build the decoder and its positions."""
    family = decoder_family(settings.decoder)
    parts = _parts(family, settings, "decoder")
    decoder = _builder(family).build_decoder(settings, encoder, **parts)
    _check_contract(family, "build_decoder", decoder, TargetDecoder)
    return decoder, _positions(family, settings, max_length)


def _check_contract(family: Family, function: str, part: Any, contract: type) -> None:
    """Refuse a plugin's encoder or decoder if it lacks a required member."""
    if family.builder:
        return
    if not isinstance(part, nn.Module):
        raise PluginError(f"{function} of {family.names[0]} must return a module, not {part!r}.")
    names = {name for name in (*contract.__annotations__, *vars(contract)) if name[0] != "_"}
    inherited = vars(contract)
    lacking = [
        name
        for name in sorted(names)
        if not hasattr(part, name)
        or (callable(inherited.get(name)) and getattr(type(part), name, 0) is inherited[name])
    ]
    if lacking:
        raise PluginError(
            f"{function} of {family.names[0]} must return a `{contract.__name__}` of "
            f"heedful.model.halves, but {type(part).__name__} has no {lacking[0]}; "
            f"derive {type(part).__name__} from `{contract.__name__}`, and define {lacking[0]}."
        )


def _check_scores(model: nn.Module) -> None:
    """Refuse a model if a plugin's attention score is not a module."""
    for module in (part for part in model.modules() if isinstance(part, MultiHeadAttention)):
        if module.score in SCORES.added() and not isinstance(module.scorer, nn.Module):
            raise PluginError(
                f"the attention score {module.score!r} must build a module, but builds "
                f"{module.scorer!r}."
            )


def _embedding_norm(settings: ModelSettings, positions: Positions | None) -> nn.LayerNorm | None:
    """Build the norm of the sum of embeddings and positions; None if the model has no such norm."""
    if not settings.embedding_norm or positions is None:
        return None
    return nn.LayerNorm(settings.d_model, eps=settings.norm_epsilon)


def _positions(family: Family, settings: ModelSettings, rows: int) -> Positions | None:
    """Build the positions of a family that adds them to its embeddings."""
    if "positions" not in family.traits:
        return None
    # a family's positions act inside attention, not in the embeddings
    if _chosen_builder(settings, "model.positions") is not None:
        return NoPositions(settings.d_model)
    return build_positions(settings.positions, settings.d_model, rows, settings.position_offset)


def _parts(family: Family, settings: ModelSettings, side: str) -> dict[str, Any]:
    """Collect parts from other families for the layers of this family, if it accepts parts."""
    if "networks" not in family.traits:
        return {}
    mixers = _chosen_builder(settings, f"model.attention.{side}")
    norms = _chosen_builder(settings, "model.norm_kind")
    qk_norms = _chosen_builder(settings, "model.attention.qk_norm")
    return {
        "parts": LayerParts(
            _networks(settings, side),
            None if mixers is None else partial(_build_part, mixers, "build_mixer", side),
            None if norms is None else partial(_build_part, norms, "build_norm"),
            None if qk_norms is None else partial(_build_part, qk_norms, "build_qk_norm"),
            **_of_positions(settings, side),
        )
    }


def _of_positions(settings: ModelSettings, side: str) -> dict[str, Any]:
    """Collect the builders that the chosen family of positions defines for a layer."""
    builder = _chosen_builder(settings, "model.positions")
    return {
        name.removeprefix("build_"): partial(_build_part, builder, name, settings, side)
        for name in POSITIONS_BUILDERS
        if hasattr(builder, name)
    }


def _build_part(builder: Any, function: str, *arguments: Any) -> Any:
    """Build a part of a layer; refuse results that are not modules."""
    part = getattr(builder, function)(*arguments)
    if not isinstance(part, nn.Module):
        owner = getattr(builder, "__name__", None) or type(builder).__name__
        raise PluginError(f"{function} of {owner} must return a module, not {part!r}.")
    return part


def _chosen_builder(settings: ModelSettings, setting: str) -> Any:
    """Import the builder of the family that a setting names; None for the Transformer."""
    family = family_of(setting, chosen_value(settings, setting))
    return None if "transformer" in family.names else _builder(family)


def _networks(settings: ModelSettings, side: str) -> Networks:
    """Build the networks that replace feed-forward networks; at most one family has networks."""
    for family in families():
        if family.part_layers(settings, side):
            return _builder(family).build_networks(settings, side)
    return NO_NETWORKS


def _builder(family: Family) -> Any:
    """Import a family's builder, which imports torch; return the family if it has none."""
    return import_module(family.builder) if family.builder else family
