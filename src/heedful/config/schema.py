"""
Every setting: its type, its range, its default, and one sentence of help.

The defaults of `ModelConfig`, `TrainConfig` and `SearchConfig` are the paper's base model. The
sentence below a setting is its help text on the command line and its comment in a TOML file. A
setting that is wrong is a `SettingError` wherever it comes from, never pydantic's own error.
"""

from collections.abc import Collection, Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator
from pydantic.fields import FieldInfo

from heedful.config.conditions import ActsIf, Conditions, acts, flat, idle_settings
from heedful.config.field_types import (
    Count,
    CountOrZero,
    Device,
    Ids,
    Language,
    LengthPenalty,
    Name,
    Norm,
    NotNegative,
    OutputLength,
    Positive,
    Share,
)
from heedful.config.recurrent import ATTENTION, RecurrentConfig
from heedful.config.recurrent import DECODER as RECURRENT_DECODER
from heedful.config.recurrent_clashes import recurrent_clashes
from heedful.config.settings_table import SettingsTable, walk
from heedful.errors import SettingError

Family = Literal["transformer", "recurrent"]
FAMILIES = ("model.encoder", "model.decoder")
TRANSFORMER = ActsIf(FAMILIES, ("transformer",))
ENCODER, DECODER = (ActsIf(side, ("transformer",)) for side in FAMILIES)


class ModelConfig(SettingsTable):
    """The shape of the model and every choice inside it."""

    table: ClassVar[str] = "model"

    encoder: Family = "transformer"
    """Family of the encoder."""
    decoder: Family = "transformer"
    """Family of the decoder."""
    d_model: Count = 512
    """Width of the states between layers."""
    d_ff: Annotated[Count, TRANSFORMER] = 2048
    """Inner width of the position-wise feed-forward networks."""
    heads: Annotated[Count, TRANSFORMER] = 8
    """Attention heads of every layer."""
    d_k: Annotated[Count | None, TRANSFORMER] = None
    """Width of one head's queries and keys. None means d_model / heads."""
    d_v: Annotated[Count | None, TRANSFORMER] = None
    """Width of one head's values. None means d_model / heads."""
    encoder_layers: Count = 6
    """Layers of the encoder."""
    decoder_layers: Count = 6
    """Layers of the decoder."""
    encoder_heads: Annotated[Count | None, ENCODER] = None
    """Attention heads of the encoder. None means heads."""
    decoder_heads: Annotated[Count | None, DECODER] = None
    """Attention heads of the decoder. None means heads."""
    encoder_d_ff: Annotated[Count | None, ENCODER] = None
    """Inner width of the encoder's feed-forward networks. None means d_ff."""
    decoder_d_ff: Annotated[Count | None, DECODER] = None
    """Inner width of the decoder's feed-forward networks. None means d_ff."""
    activation: Annotated[Literal["relu", "gelu", "gelu_tanh", "silu"], TRANSFORMER] = "relu"
    """Non-linearity of the feed-forward networks; gelu_tanh is the approximation by tanh."""
    dropout: Share = 0.1
    """Dropout probability of each sub-layer's output and of the sum of embedding and position."""
    norm: Annotated[Norm, TRANSFORMER] = "post"
    """Layer norm: post each sum (paper), pre each sub-layer, or pre and no final one."""
    encoder_norm: Annotated[Norm | None, ENCODER] = None
    """Where the encoder normalises. None means norm."""
    decoder_norm: Annotated[Norm | None, DECODER] = None
    """Where the decoder normalises. None means norm."""
    norm_epsilon: Annotated[Positive, TRANSFORMER] = 1e-6
    """Added to the variance inside every layer norm."""
    positions: Annotated[Literal["interleaved", "halves", "grouped", "learned"], TRANSFORMER] = (
        "interleaved"
    )
    """Sines and cosines alternating (paper), in halves (its code), grouped (Marian); or learned."""
    position_offset: Annotated[CountOrZero, TRANSFORMER] = 0
    """Number of the first position; the paper does not define it."""
    tie_embeddings: Literal["all", "output", "none"] = "all"
    """Shared matrices: both embeddings and output (all), target and output (output), or none."""
    projection_bias: Annotated[bool, TRANSFORMER] = True
    """Whether the query, key, value and output projections have a bias."""
    output_bias: bool = False
    """Whether the logits have a bias."""
    scale_embeddings: Annotated[bool, TRANSFORMER] = True
    """Whether a Transformer's embeddings are multiplied by the square root of d_model."""
    decoder_start: Literal["symbol", "zero", "pad", "end"] = "symbol"
    """First input of the decoder: a start symbol, a zero vector, padding or the end symbol."""
    source_end: bool = True
    """Whether the source ends in the end symbol."""
    recurrent: Annotated[RecurrentConfig, ActsIf(FAMILIES, ("recurrent",))] = RecurrentConfig()
    """Recurrent encoders and decoders."""

    @property
    def cross_attention(self) -> tuple[int, int]:
        """Layers and heads of the decoder's attention to the source; none without attention."""
        if self.decoder == "recurrent":
            return (0, 0) if self.recurrent.score == "none" else (1, 1)
        return self.decoder_layers, self.decoder_heads or self.heads

    @model_validator(mode="after")
    def _widths_fit(self) -> "ModelConfig":
        """Check that heads divide the width and that sinusoids come in pairs."""
        if wrong := recurrent_clashes(self):
            raise ValueError("; ".join(wrong))
        if "transformer" not in (self.encoder, self.decoder):
            return self
        wrong = [self._near_divisors(name) for name in self._heads_that_do_not_divide()]
        if self.positions != "learned" and self.d_model % 2:
            wrong.append(
                f"`model.d_model` must be even for sines and cosines, but {self.d_model} came "
                "(or set `model.positions` to learned)"
            )
        if wrong:
            raise ValueError("; ".join(wrong))
        return self

    def _heads_that_do_not_divide(self) -> list[str]:
        """List the settings whose number of heads does not divide the width."""
        if self.d_k is not None and self.d_v is not None:
            return []
        deciding = [
            "heads" if getattr(self, f"{side}_heads") is None else f"{side}_heads"
            for side in ("encoder", "decoder")
        ]
        return [name for name in dict.fromkeys(deciding) if self.d_model % getattr(self, name)]

    def _near_divisors(self, name: str) -> str:
        """Report that the heads must divide the width, with the nearest numbers that do."""
        heads = getattr(self, name)
        most = min(self.d_model, 100_000)  # bounds the time; no model has so many heads
        divisors = [n for n in range(1, most + 1) if self.d_model % n == 0]
        near = [max(n for n in divisors if n < heads), *[n for n in divisors if n > heads][:1]]
        return (
            f"`model.{name}` must divide `model.d_model` ({self.d_model}) unless "
            f"`model.d_k` and `model.d_v` are both set, but it is {heads}; "
            f"near it, {' and '.join(map(str, near))} would do"
        )


class DataConfig(SettingsTable):
    """Languages, subwords, and which pairs are kept."""

    table: ClassVar[str] = "data"

    source_language: Language = ""
    """Code of the source language. Empty means the ending of the source files."""
    target_language: Language = ""
    """Code of the target language. Empty means the ending of the target files."""
    vocabulary_size: Count = 37_000
    """Subwords in the vocabulary, of each language if it is not shared."""
    vocabulary_multiple: Count = 8
    """Pad the embedding with unused rows to a multiple of this."""
    subwords: Literal["bpe", "unigram", "character", "word"] = "bpe"
    """How text is split into subwords."""
    subword_sampling: Share = 0.0
    """Sample subwords anew in every epoch: BPE-dropout for bpe, alpha for unigram. 0 means off."""
    vocabulary_threshold: CountOrZero = 0
    """With given BPE codes: split subwords that occur less often in the text. 0 means none."""
    shared_vocabulary: bool = True
    """Whether both languages share one vocabulary."""
    max_length: Count = 256
    """Most subwords of a sentence; pairs with a longer one are dropped."""
    max_length_ratio: Annotated[float, Field(ge=1)] | None = None
    """Drop pairs whose length ratio is larger, longer side over shorter. None means no limit."""
    min_script_share: Annotated[float, Field(gt=0, le=1)] | None = None
    """Drop pairs with a smaller share of letters in the language's script. None means any."""
    drop_duplicates: bool = False
    """Whether repeated pairs are dropped."""
    mixing_temperature: Annotated[float, Field(ge=1)] = 1.0
    """Sampling of corpora without weights: 1 in proportion to size, larger values more evenly."""


_WITH_ADAM = ActsIf("train.optimizer", ("adam",))


class TrainConfig(SettingsTable):
    """Batches, schedule, loss, checkpoints."""

    table: ClassVar[str] = "train"

    steps: Count = 100_000
    """Updates until training ends."""
    minutes: Positive | None = None
    """Minutes until training ends, resumed runs included. None means no limit."""
    batch_tokens: Count = 25_000
    """Tokens of one update, counted on the side that has more."""
    batch_counting: Literal["real", "padded"] = "real"
    """Count tokens without padding, or rows times the longest side as the authors' code did."""
    block_tokens: Count | None = None
    """Padded tokens of a block of pairs of similar length. None means one block per batch."""
    micro_batch_tokens: Count | None = None
    """Most padded tokens computed at once; the batch stays the same. None means automatic."""
    schedule: Literal["paper", "constant", "inverse_sqrt", "cosine", "plateau", "step"] = "paper"
    """Course of the learning rate after the warm-up; paper is equation 3."""
    warmup: CountOrZero = 4000
    """Updates during which the learning rate rises. 0 means none."""
    learning_rate_factor: Annotated[Positive, ActsIf("train.schedule", ("paper",))] = 1.0
    """Factor of the paper's learning rate."""
    learning_rate: Annotated[Positive | None, ActsIf("train.schedule", unless=("paper",))] = None
    """Peak of the learning rate, reached at the end of the warm-up."""
    min_learning_rate: Annotated[
        NotNegative, ActsIf("train.schedule", ("inverse_sqrt", "cosine", "plateau", "step"))
    ] = 0.0
    """Lowest learning rate after the warm-up; cosine ends with it."""
    decay_factor: Annotated[
        float, Field(gt=0, lt=1), ActsIf("train.schedule", ("plateau", "step"))
    ] = 0.5
    """Factor of the learning rate at each decay."""
    plateau_patience: Annotated[CountOrZero, ActsIf("train.schedule", ("plateau",))] = 1
    """Validations without a better result that are let pass; one more lowers the learning rate."""
    decay_steps: Annotated[Count | None, ActsIf("train.schedule", ("step",))] = None
    """Updates between two decays."""
    decay_start: Annotated[Count | None, ActsIf("train.schedule", ("step",))] = None
    """Updates before the first decay, those of the warm-up included. None means decay_steps."""
    optimizer: Literal["adam", "sgd"] = "adam"
    """Optimizer of the whole training; adam with a weight_decay is AdamW."""
    beta1: Annotated[Share, _WITH_ADAM] = 0.9
    """Adam's decay of the mean of gradients."""
    beta2: Annotated[Share, _WITH_ADAM] = 0.98
    """Adam's decay of the mean of squared gradients."""
    epsilon: Annotated[Positive, _WITH_ADAM] = 1e-9
    """Epsilon in the denominator of Adam's update."""
    momentum: Annotated[Share, ActsIf("train.optimizer", ("sgd",))] = 0.0
    """Momentum of SGD: each update adds this share of the one before. 0 means none."""
    nesterov: Annotated[bool, ActsIf("train.momentum", unless=(0.0,))] = False
    """Whether the momentum is Nesterov's."""
    label_smoothing: Share = 0.1
    """Probability moved from the correct subword to the others."""
    smoothing_target: Literal["uniform", "others"] = "uniform"
    """Smooth over all subwords (Szegedy et al.) or over all except the correct one."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    """Random seed."""
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """Precision of the matrix products. Auto means the faster one, measured once."""
    device: Device = "auto"
    """Where to compute: auto, cpu, cuda or cuda:N."""
    threads: CountOrZero = 0
    """CPU threads. 0 means one for each core."""
    checkpoint_steps: Count | None = None
    """Updates between checkpoints. None means none by updates, only by minutes."""
    checkpoint_minutes: Positive | None = 10.0
    """Minutes between checkpoints. None means none by minutes, only by updates."""
    keep_last: Count = 5
    """Number of newest checkpoints to keep."""
    keep_best: CountOrZero = 1
    """Number of best validated checkpoints to keep in addition."""
    validate_steps: Count | None = 1000
    """Updates between validations; the last update is validated too. None means no validation."""
    validation_samples: CountOrZero = 3
    """Number of held-out sentences whose translations each validation prints. 0 means none."""
    best_by: Literal["bleu", "chrf", "loss", "exact_match", "cer"] = "bleu"
    """Metric of the best checkpoint: BLEU, chrF, loss, exactly correct lines, character errors."""
    patience: Count | None = None
    """Validations without a better result before training stops. None means no such stop."""
    clip_norm: Positive | None = None
    """Clip the gradient to this norm. None means no clipping."""
    weight_decay: NotNegative = 0.0
    """Decoupled weight decay: each update multiplies the weights by 1 - learning rate x this."""
    ema_decay: Share | None = None
    """Decay of the exponential moving average of the weights. None means off."""

    @model_validator(mode="after")
    def _patience_has_validations(self) -> "TrainConfig":
        """Check that patience has validations to count."""
        if self.patience is not None and self.validate_steps is None:
            raise ValueError(
                "`train.patience` counts validations and needs `train.validate_steps`, but none "
                "came; set it, or set `train.patience` to none"
            )
        return self

    @model_validator(mode="after")
    def _schedule_is_complete(self) -> "TrainConfig":
        """Check that the schedule has what its formula needs."""
        wrong = []
        if self.schedule in ("paper", "inverse_sqrt") and self.warmup == 0:
            wrong.append(
                f"`train.warmup` must be at least 1 for `train.schedule` = {self.schedule}, whose "
                "rate is a function of it, but 0 came; set it, or set `train.schedule` to constant"
            )
        if self.schedule != "paper" and self.learning_rate is None:
            wrong.append(
                f"`train.learning_rate` must be set for `train.schedule` = {self.schedule}, but "
                "none came; it is the peak, such as 0.0005 for Adam or 1.0 for SGD"
            )
        if self.learning_rate is not None and self.min_learning_rate > self.learning_rate:
            wrong.append(
                f"`train.min_learning_rate` must be at most `train.learning_rate` "
                f"({self.learning_rate}), but {self.min_learning_rate} came"
            )
        if self.schedule == "step" and self.decay_steps is None:
            wrong.append(
                "`train.decay_steps` must be set for `train.schedule` = step, but none came; it is "
                "the number of updates between two decays"
            )
        if self.schedule == "plateau" and self.validate_steps is None:
            wrong.append(
                "`train.schedule` = plateau decays at validations and needs "
                "`train.validate_steps`, but none came; set it, or take another schedule"
            )
        if wrong:
            raise ValueError("; ".join(wrong))
        return self


class SearchConfig(SettingsTable):
    """How translations are found."""

    table: ClassVar[str] = "search"

    beam: Annotated[int, Field(ge=1, le=10_000)] = 4
    """Beam size: hypotheses kept at every step."""
    length_penalty: LengthPenalty = "gnmt:0.6"
    """Length penalty: gnmt:ALPHA (the paper), power:ALPHA or none."""
    coverage_penalty: Annotated[
        float,
        Field(ge=0, le=10),
        RECURRENT_DECODER,
        ATTENTION,
        ActsIf("search.beam", unless=(1,)),
    ] = 0.0
    """Beta of GNMT's coverage penalty, for source positions with little attention; 0 is off."""
    eos_candidates: Literal["beam", "twice"] = "beam"
    """EOS finishes a hypothesis if it ranks within the best `beam` candidates, or 2 x `beam`."""
    stop: Literal[
        "when-none-can-win",
        "when-beam-finished",
        "as-ctranslate2",
        "as-transformers",
        "as-joey",
        "as-opennmt",
    ] = "when-none-can-win"
    """Stop when no open hypothesis can win, when `beam` have finished, or as another toolkit."""
    length_limit_policy: Literal["cut", "end", "force", "keep"] = "cut"
    """At the length limit: cut and rank last, end at no cost, end at the cost of EOS, or keep."""
    renormalise: bool = False
    """Whether the probabilities of the allowed subwords are normalised to a sum of one."""
    forbidden_ids: Ids = ""
    """Ids that are never written, separated by spaces; padding and start symbol always belong."""
    min_length: CountOrZero = 0
    """Fewest subwords of a translation; `max_length` wins if the two conflict."""
    max_length: OutputLength = "input+50"
    """Most subwords of a translation: input+N or N, without the end symbol."""
    max_source_length: Count = 1024
    """Most subwords of a source line; a longer one is cut with a warning."""


class RunConfig(SettingsTable):
    """All settings of one run."""

    recipe: Name = "custom"
    """Recipe that these settings are based on."""
    reading: Literal["paper", "t2t", "own"] = "own"
    """Source of the details: the paper's text, the authors' code, or neither."""
    model: ModelConfig = ModelConfig()
    """The model."""
    data: DataConfig = DataConfig()
    """Text, subwords and cleaning."""
    train: TrainConfig = TrainConfig()
    """Training."""
    search: SearchConfig = SearchConfig()
    """How translations are found."""

    @model_validator(mode="after")
    def _one_table_needs_one_vocabulary(self) -> "RunConfig":
        """Check that tied embeddings of both languages have one vocabulary."""
        if self.model.tie_embeddings == "all" and not self.data.shared_vocabulary:
            raise ValueError(
                "`model.tie_embeddings` = all is one table for both languages and needs "
                "`data.shared_vocabulary` = true, but false came; share the vocabulary, or set "
                "`model.tie_embeddings` to output or none"
            )
        return self

    @model_validator(mode="after")
    def _idle_settings_have_their_defaults(self) -> "RunConfig":
        """Refuse a setting that would change nothing; files that hold its default can be read."""
        wrong = idle_settings(flat(self.to_dict()), setting_defaults(), setting_conditions())
        if wrong:
            raise ValueError("; ".join(wrong))
        return self

    def to_dict(self) -> dict[str, Any]:
        """Convert all settings to plain values, as ``config.json`` of a run folder stores them."""
        return self.model_dump(mode="json")

    @classmethod
    def from_dict(cls, values: Any) -> "RunConfig":
        """
        Build checked settings from plain values.

        Types are strict: text that looks like a number is not one.

        Raises `SettingError` if a setting is unknown or out of range; the message names each by its
        dotted name.
        """
        if not isinstance(values, Mapping):
            raise SettingError(f"settings must be tables of names and values, but {values!r} came")
        return cls(**values)

    def with_settings(
        self, settings: Mapping[str, Any], inherited: Mapping[str, Any] | None = None
    ) -> "RunConfig":
        """
        Return a changed copy, checked again as a whole.

        `inherited`: changes below `settings`.

        All changes are made before the check, so that dependent settings may change together. A
        setting that `settings` does not name and that no longer acts is reset to its default.

        Raises `SettingError` if a setting is unknown or out of range; the message names each by its
        dotted name.
        """
        values = self.to_dict()
        for name, value in {**(inherited or {}), **settings}.items():
            table, last = _table_of(name, values)
            if table is None:
                values[name] = value
            else:
                table[last] = value
        return self.from_dict(without_idle(values, given=flat(settings)))


def setting_fields() -> dict[str, FieldInfo]:
    """
    List all settings by their dotted names.

    Suggestions, help texts and the TOML writer all use this list.
    """
    return {name: field for name, field, _ in walk(RunConfig)}


@cache
def setting_conditions() -> Conditions:
    """List the conditions of all settings that have one, those of their tables included."""
    return {name: conditions for name, _, conditions in walk(RunConfig) if conditions}


@cache
def setting_defaults() -> dict[str, Any]:
    """List the defaults of all settings by their dotted names."""
    return {name: field.default for name, field in setting_fields().items()}


def acting_settings(config: RunConfig) -> set[str]:
    """List the settings that act in a configuration, by their dotted names."""
    values, conditions = flat(config.to_dict()), setting_conditions()
    return {name for name in values if acts(name, values, conditions)}


def without_idle(values: dict[str, Any], given: Collection[str]) -> dict[str, Any]:
    """
    Reset settings that do not act and were not given, in place, and return them.

    `values`: tables of unchecked values. `given`: dotted names that are left alone, so that a
    check can refuse them.
    """
    known = {**setting_defaults(), **flat(values)}
    for name in setting_conditions():
        if name in given or acts(name, known, setting_conditions()):
            continue
        table, last = _table_of(name, values)
        if table is not None and last in table:
            table[last] = setting_defaults()[name]
    return values


def _table_of(name: str, values: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """Find the table that holds a setting, and its name there; None if there is no such table."""
    table: Any = values
    *above, last = name.split(".")
    for part in above:
        table = table.get(part) if isinstance(table, dict) else None
    return table if isinstance(table, dict) else None, last
