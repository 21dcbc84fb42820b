"""The interface of a family of models to the rest of the program."""

from collections.abc import Iterable, Mapping
from typing import ClassVar, NamedTuple

from heedful.settings.conditions import ActsIf
from heedful.settings.model import ModelSettings
from heedful.settings.table import SettingsTable


class Recipe(NamedTuple):
    """The settings of a recipe."""

    summary: str
    """One sentence about the recipe, shown where recipes are listed."""
    settings: Mapping[str, object]
    """Settings that differ from the base, by dotted names."""
    base: str = ""
    """The recipe that this recipe changes; empty if it changes the defaults."""


class Family:
    """
    An encoder and a decoder of one kind, or a part that models of other families may have.

    This class does not need torch: `heedful.families.build` imports `builder` when it builds a
    model. Methods that a family does not define return the values of a plain Transformer.
    """

    encoders: ClassVar[tuple[str, ...]] = ()
    """Values of `model.encoder` that select this family."""
    decoders: ClassVar[tuple[str, ...]] = ()
    """Values of `model.decoder` that select this family."""
    encoder_mixers: ClassVar[tuple[str, ...]] = ()
    """Values of `model.attention.encoder` that select this family."""
    decoder_mixers: ClassVar[tuple[str, ...]] = ()
    """Values of `model.attention.decoder` that select this family."""
    norms: ClassVar[tuple[str, ...]] = ()
    """Values of `model.norm_kind` that select this family."""
    qk_norms: ClassVar[tuple[str, ...]] = ()
    """Values of `model.attention.qk_norm` that select this family."""
    positions: ClassVar[tuple[str, ...]] = ()
    """Values of `model.positions` for this family; only the Transformer's act outside attention."""
    help: ClassVar[Mapping[str, str]] = {}
    """Help texts of these values, by the dotted names of their settings."""
    traits: ClassVar[frozenset[str]] = frozenset()
    """
    Traits, which determine which settings outside of the family's table have an effect.

    `layers`: `model.encoder_layers`, `model.decoder_layers`; `positions`: `model.positions`;
    `networks`: networks of other families; `coverage`: `search.coverage_penalty`; `heads`:
    `model.heads`; `window`: `model.attention.window`. `unscored` disables `model.attention.score`.
    `one-state` means that all source positions have the same state, and disables
    `search.coverage_penalty`. `batch statistics` means that normalization depends on the batch, and
    excludes the objective simcut.
    """
    settings: ClassVar[type[SettingsTable] | None] = None
    """The family's table of settings, a part of ``[model]``; None if it has no table."""
    condition: ClassVar[ActsIf | None] = None
    """When the table has an effect; by default, if the encoder or decoder is of this family."""
    conditions: ClassVar[Mapping[str, tuple[ActsIf, ...]]] = {}
    """More conditions for settings outside of the family's table, by their dotted names."""
    token_shares: ClassVar[Mapping[str, str]] = {}
    """Names of running averages that `heedful info` shows as percentages of tokens, by heading."""
    recipes: ClassVar[Mapping[str, Recipe]] = {}
    """The family's recipes by name."""
    table1: ClassVar[str] = ""
    """The module with `LAYER`, the family's row of the paper's Table 1; empty if there is none."""
    builder: ClassVar[str] = ""
    """
    The module that builds its parts; empty if the family itself has these functions, as in plugins:
    `build_encoder(settings)`, `build_decoder(settings, encoder)`.

    With the trait `networks` both also take `parts`, a `LayerParts`. A family of networks has
    `build_networks(settings, side)`, mixers have `build_mixer(side, layer_config)`, norms
    `build_norm(d_model, epsilon)`, and norms of queries and keys `build_qk_norm(d_k, epsilon)`. A
    family of positions has one of three functions of `(settings, side, layer_config)`:
    `build_score_bias` returns a `heedful.model.score_bias.ScoreBias`. `build_rotation` returns a
    `Rotation`, and `build_relation` a `Relation`, of `heedful.model.relations`.
    """

    readers: ClassVar[Mapping[str, str]] = {}
    """
    The modules that read other toolkits' models of this family, by the name after ``--from``
    (`heedful.families.foreign.FamilyReader`).
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The values of `model.encoder` and `model.decoder` that select this family."""
        return tuple(dict.fromkeys((*self.encoders, *self.decoders)))

    @property
    def choices(self) -> Mapping[str, tuple[str, ...]]:
        """Values that select this family, by dotted setting name; none for families of networks."""
        values = {
            "model.encoder": self.encoders,
            "model.decoder": self.decoders,
            "model.attention.encoder": self.encoder_mixers,
            "model.attention.decoder": self.decoder_mixers,
            "model.norm_kind": self.norms,
            "model.attention.qk_norm": self.qk_norms,
            "model.positions": self.positions,
        }
        return {name: names for name, names in values.items() if names}

    def clashes(self, model: ModelSettings, memory: int) -> Iterable[str]:
        """
        List invalid combinations of settings, each with a correction.

        Called for each family that a setting names, and always for a family without such names,
        like the mixture of experts. `memory`: width of the encoder's states.
        """
        del model, memory
        return ()

    def part_layers(self, model: ModelSettings, side: str) -> tuple[int, ...]:
        """List the layers (from 1) with this family's part in the encoder or decoder."""
        del model, side
        return ()

    def memory_width(self, model: ModelSettings) -> int:
        """Compute the width of the states of the family's encoder."""
        return model.d_model

    def cross_attention(self, model: ModelSettings) -> tuple[int, int]:
        """Return the numbers of layers and heads of cross-attention, if the decoder attends."""
        return model.decoder_layers, model.decoder_heads or model.heads

    def no_attention(self, model: ModelSettings) -> str:
        """Name the setting that keeps the decoder from attending; empty if it attends."""
        del model
        return ""

    def module_counts(self, model: ModelSettings) -> Mapping[str, int]:
        """Return the settings that count modules of one kind, such as experts, by dotted names."""
        del model
        return {}

    def beyond_transformer(self, model: ModelSettings) -> list[tuple[str, object]]:
        """List settings of a part that the paper's Transformer does not have, with their values."""
        del model
        return []

    def training_notes(self, model: ModelSettings, ranks: int) -> Iterable[str]:
        """List notes for the user at the start of training."""
        del model, ranks
        return ()

    def no_alignment(self, model: ModelSettings) -> str:
        """Name the setting that keeps attention from aligning words; empty if it aligns them."""
        del model
        return ""
