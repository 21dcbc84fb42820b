"""
Recipes: named sets of settings, most of them written as differences from another recipe.

A recipe called ``paper-…`` follows the text of ‘Attention Is All You Need’. Where the authors'
first public code (tensor2tensor 3d9c62f2, 2017-06-15) differs, ``t2t-…`` follows the code.
``table3-…`` is a row of the paper's Table 3. Sections and tables in the comments are from the
paper. The values of these recipes never change; a changed recipe gets a new name. Until version
1.0, three groups may change: recipes for small machines (``tiny``, ``small``, ``multi30k``,
``…-small``), models of other families (`heedful.families`), and small tasks (`sequence_recipes`).
"""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial, wraps
from math import sqrt

from heedful.arguments import checked
from heedful.config.data import DataConfig
from heedful.config.model import ModelConfig
from heedful.config.schema import REGISTRIES, RunConfig
from heedful.config.search import SearchConfig
from heedful.config.sequence_recipes import SEQUENCE_RECIPES
from heedful.config.train import TrainConfig
from heedful.errors import SettingError
from heedful.families.registry import are_offered, family_recipes
from heedful.settings.explain import did_you_mean
from heedful.tasks.registry import task_recipes

RECIPES: dict[str, Callable[[], RunConfig]] = {}
# The recipes that were used, until a registry changes and with it the classes of settings.
_built: dict[str, RunConfig] = {}
for _registry in REGISTRIES:
    _registry.watch(_built.clear)


@checked
def recipe(name: str) -> RunConfig:
    """
    Return the settings of a built-in recipe.

    Parameters
    ----------
    name : str
        Name of the recipe.

    Returns
    -------
    RunConfig
        Its settings.

    Raises
    ------
    SettingError
        If there is no such recipe; the message suggests the nearest names.

    Notes
    -----
    The settings are frozen, so a caller can change only a copy.
    """
    if name not in RECIPES:
        near = get_close_matches(name, RECIPES, n=2)
        raise SettingError(
            f"a recipe must be a built-in name or a TOML file, but `{name}` is neither; "
            + (f"{did_you_mean(near)} " if near else "")
            + "`heedful train --recipes` lists the built-in ones."
        )
    return RECIPES[name]()


def recipe_names() -> list[str]:
    """List the built-in recipes; the paper's translation recipes come first."""
    return list(RECIPES)


@checked
def describe(name: str) -> str:
    """
    Return the one-line description of a built-in recipe.

    Parameters
    ----------
    name : str
        Name of the recipe.

    Returns
    -------
    str
        One sentence.

    Raises
    ------
    SettingError
        If there is no such recipe.

    Notes
    -----
    The description is the first line of the docstring of the recipe's function.
    """
    if name not in RECIPES:
        recipe(name)
    return (RECIPES[name].__doc__ or "").strip().splitlines()[0]


def _register(name: str) -> Callable[[Callable[[], RunConfig]], Callable[[], RunConfig]]:
    """Register a function as a recipe and put its name into the settings it returns."""

    def keep(build: Callable[[], RunConfig]) -> Callable[[], RunConfig]:
        @wraps(build)
        def build_named() -> RunConfig:
            if name not in _built:
                _built[name] = build().with_settings({"recipe": name})
            return _built[name]

        RECIPES[name] = build_named
        return build_named

    return keep


def _register_changed(
    name: str, summary: str, base: Callable[[], RunConfig], settings: Mapping[str, object]
) -> None:
    """Register a recipe that changes some settings of another recipe."""

    def build() -> RunConfig:
        return base().with_settings(settings)

    build.__doc__ = summary
    _register(name)(build)


# ---------------------------------------------------------------- the paper's text


@_register("paper-base")
def _paper_base() -> RunConfig:
    """English-German base model according to the paper's text."""
    return RunConfig(
        reading="paper",
        model=ModelConfig(
            d_model=512,  # section 3.1
            d_ff=2048,  # section 3.3
            heads=8,  # section 3.2.2; d_k = d_v = d_model / heads = 64
            encoder_layers=6,  # section 3.1
            decoder_layers=6,  # section 3.1
            activation="relu",  # section 3.3
            dropout=0.1,  # section 5.4
            norm="post",  # sections 3.1 and 5.4: LayerNorm(x + Dropout(Sublayer(x)))
            norm_epsilon=1e-6,  # not in the text; tensor2tensor 3d9c62f2 common_layers.py
            positions="interleaved",  # section 3.5
            position_offset=0,  # not in the text; tensor2tensor 3d9c62f2 common_attention.py
            tie_embeddings="all",  # section 3.4
            projection_bias=True,  # not in the text; needed for the parameter counts of Table 3
            output_bias=False,  # not in the text; tensor2tensor 3d9c62f2 has no bias
            scale_embeddings=True,  # section 3.4
            decoder_start="symbol",  # section 3.1: “offset by one position”
            source_end=True,  # not in the text; tensor2tensor 3d9c62f2 adds it to every text
        ),
        data=DataConfig(
            vocabulary_size=37_000,  # section 5.1: “about 37000 tokens”
            subwords="bpe",  # section 5.1: byte-pair encoding
            shared_vocabulary=True,  # section 5.1: “shared source-target vocabulary”
            max_length=256,  # not in the text; tensor2tensor 3d9c62f2 transformer.py
        ),
        train=TrainConfig(
            steps=100_000,  # section 5.2
            batch_tokens=25_000,  # section 5.1: 25000 source and 25000 target tokens
            batch_counting="real",  # section 5.1 mentions tokens, not padding
            warmup=4000,  # section 5.3
            learning_rate_factor=1.0,  # section 5.3, equation 3
            beta1=0.9,  # section 5.3
            beta2=0.98,  # section 5.3
            epsilon=1e-9,  # section 5.3
            label_smoothing=0.1,  # section 5.4
            smoothing_target="uniform",  # section 5.4 cites Szegedy et al. 2015, their section 7
            checkpoint_minutes=10.0,  # section 6.1: “written at 10-minute intervals”
            keep_last=5,  # section 6.1: mean of the last 5 checkpoints
            clip_norm=None,  # none mentioned; tensor2tensor 3d9c62f2 transformer.py: 0
            weight_decay=0.0,  # none mentioned; tensor2tensor 3d9c62f2 transformer.py: 0
        ),
        search=SearchConfig(
            beam=4,  # section 6.1
            length_penalty="gnmt:0.6",  # section 6.1 cites Wu et al. 2016, their equation 14
            max_length="input+50",  # section 6.1
        ),
    )


@_register("paper-base-en-fr")
def _paper_base_en_fr() -> RunConfig:
    """English-French base model according to the paper's text."""
    return _paper_base().with_settings(
        {
            "data.vocabulary_size": 32_000,  # section 5.1
            "data.subwords": "unigram",  # section 5.1 has word-piece; unigram is similar
        }
    )


@_register("paper-big")
def _paper_big() -> RunConfig:
    """English-German big model according to the paper's text."""
    return _paper_base().with_settings(
        {
            "model.d_model": 1024,  # Table 3, last row
            "model.d_ff": 4096,  # Table 3, last row
            "model.heads": 16,  # Table 3, last row
            "model.dropout": 0.3,  # Table 3, last row
            "train.steps": 300_000,  # section 5.2
            "train.keep_last": 20,  # section 6.1: mean of the last 20 checkpoints
        }
    )


@_register("paper-big-en-fr")
def _paper_big_en_fr() -> RunConfig:
    """English-French big model according to the paper's text."""
    return _paper_big().with_settings(
        {
            "model.dropout": 0.1,  # section 6.1: “instead of 0.3”
            "data.vocabulary_size": 32_000,  # section 5.1
            "data.subwords": "unigram",  # section 5.1 has word-piece; unigram is similar
        }
    )


# ---------------------------------------------------------------- the authors' code

_T2T = {  # files of tensor2tensor 3d9c62f2
    "reading": "t2t",
    "model.positions": "halves",  # common_attention.py: all sines, then all cosines
    "model.decoder_start": "zero",  # transformer.py: shift_left_3d pads with zeros
    "data.vocabulary_multiple": 8192,  # 37,000 becomes 40,960, the width of its softmax
    "train.batch_tokens": 8 * 4096,  # transformer.py: batch_size 4096, on 8 devices
    "train.batch_counting": "padded",  # data_reader.py: rows times the longer side
    "train.block_tokens": 4096,  # transformer.py: batch_size; one block of a bucket per device
    "train.smoothing_target": "others",  # common_layers.py: e / (V - 1) for each incorrect class
    "search.eos_candidates": "twice",  # beam_search.py: top_k of 2 * beam_size, EOS included
    # learning_rate_factor stays 1: tensor2tensor's rate of 0.1 times 5000 * 0.002 * d^-0.5 is the
    # paper's d^-0.5, and its step counter starts at 0 and adds 1, so the schedule is the same.
}


@_register("t2t-base")
def _t2t_base() -> RunConfig:
    """English-German base model according to the authors' first public code."""
    return _paper_base().with_settings(_T2T)


@_register("t2t-big")
def _t2t_big() -> RunConfig:
    """English-German big model according to the authors' first public code."""
    return _paper_big().with_settings(_T2T)  # transformer.py: transformer_big_dr3


# ---------------------------------------------------------------- Table 3


@_register("table3-base")
def _table3_base() -> RunConfig:
    """Table 3, first row: the base model."""
    return _paper_base().with_settings(
        {
            # Section 5.1 has 37,000, but only this size gives the parameter counts of Table 3: 65
            # million here, and the counts of nine more rows. The softmax of tensor2tensor 3d9c62f2
            # has this size.
            "data.vocabulary_size": 40_960,
        }
    )


def _row(name: str, summary: str, **model: object) -> None:
    """Register a row of Table 3 that differs from the first row in the model's settings."""
    _vary(name, summary, {f"model.{key}": value for key, value in model.items()})


def _vary(name: str, summary: str, settings: Mapping[str, object]) -> None:
    """Register a row of Table 3 that differs from the first row in some settings."""
    _register_changed(name, f"Table 3, {summary}", _table3_base, settings)


# Rows (A) and (B): d_k and d_v as printed.
_row("table3-a-1", "row (A): one head, as wide as the model.", heads=1, d_k=512, d_v=512)
_row("table3-a-4", "row (A): 4 heads of width 128.", heads=4, d_k=128, d_v=128)
_row("table3-a-16", "row (A): 16 heads of width 32.", heads=16, d_k=32, d_v=32)
_row("table3-a-32", "row (A): 32 heads of width 16.", heads=32, d_k=16, d_v=16)
_row("table3-b-16", "row (B): keys of width 16.", d_k=16, d_v=64)
_row("table3-b-32", "row (B): keys of width 32.", d_k=32, d_v=64)
# Row (C): N is the number of layers of each stack.
_row("table3-c-layers-2", "row (C): 2 layers.", encoder_layers=2, decoder_layers=2)
_row("table3-c-layers-4", "row (C): 4 layers.", encoder_layers=4, decoder_layers=4)
_row("table3-c-layers-8", "row (C): 8 layers.", encoder_layers=8, decoder_layers=8)
_row("table3-c-width-256", "row (C): width 256.", d_model=256, d_k=32, d_v=32)
_row("table3-c-width-1024", "row (C): width 1024.", d_model=1024, d_k=128, d_v=128)
_row("table3-c-ff-1024", "row (C): feed-forward width 1024.", d_ff=1024)
_row("table3-c-ff-4096", "row (C): feed-forward width 4096.", d_ff=4096)
# Row (D): P_drop and the label smoothing.
_row("table3-d-dropout-0.0", "row (D): no dropout.", dropout=0.0)
_row("table3-d-dropout-0.2", "row (D): dropout 0.2.", dropout=0.2)
_vary("table3-d-smoothing-0.0", "row (D): no label smoothing.", {"train.label_smoothing": 0.0})
_vary("table3-d-smoothing-0.2", "row (D): label smoothing 0.2.", {"train.label_smoothing": 0.2})
_row("table3-e-learned", "row (E): learned positions.", positions="learned")


@_register("table3-big")
def _table3_big() -> RunConfig:
    """Table 3, last row: the big model."""
    return _paper_big().with_settings({"data.vocabulary_size": 40_960})  # as in table3-base


# ---------------------------------------------------------------- models before the paper


for _name, _recipe in (*family_recipes(), *task_recipes()):
    # A family that a recipe needs may be missing.
    if not _recipe.base and are_offered(_recipe.settings):
        _register_changed(_name, _recipe.summary, RunConfig, _recipe.settings)


# ---------------------------------------------------------------- our own small recipes


# SentencePiece's default: one line of noise in 2,000 adds no characters to the vocabulary.
_NOISY_TEXT: dict[str, object] = {"data.character_coverage": 0.9995}


@_register("tiny")
def _tiny() -> RunConfig:
    """Learn the corpus of `heedful quickstart` in a minute or two on two cores."""
    return _paper_base().with_settings(
        {
            **_NOISY_TEXT,
            "reading": "own",
            "model.encoder_layers": 2,
            "model.decoder_layers": 2,
            "model.d_model": 64,
            "model.d_ff": 128,
            "model.heads": 4,
            "data.reading": "text",
            "data.vocabulary_size": 1000,
            "data.max_length": 64,
            "train.steps": 1200,
            "train.batch_tokens": 2048,
            "train.warmup": 400,
            "train.checkpoint_steps": 50,  # close together, because the last ones are averaged
            "train.checkpoint_minutes": None,  # the same checkpoints on every machine
            "train.validate_steps": 300,
        }
    )


for _name, (_summary, _settings) in SEQUENCE_RECIPES.items():
    _register_changed(_name, _summary, _tiny, _settings)


@_register("small")
def _small() -> RunConfig:
    """Learn from a few hundred thousand pairs in hours on two cores."""
    return _paper_base().with_settings(
        {
            **_NOISY_TEXT,
            "reading": "own",
            "model.encoder_layers": 3,
            "model.decoder_layers": 3,
            "model.d_model": 256,
            "model.d_ff": 1024,
            "model.heads": 4,
            "data.reading": "text",
            "data.vocabulary_size": 8000,
            "train.steps": 20_000,
            "train.batch_tokens": 4096,
            "train.warmup": 2000,
        }
    )


@_register("multi30k")
def _multi30k() -> RunConfig:
    """Train on Multi30k, 29,000 pairs of image descriptions, in an hour on two cores."""
    return _paper_base().with_settings(
        {
            **_NOISY_TEXT,
            "reading": "own",
            "model.encoder_layers": 4,
            "model.decoder_layers": 4,
            "model.d_model": 128,
            "model.d_ff": 256,
            "model.heads": 4,
            "model.dropout": 0.3,  # few pairs, many epochs
            "data.reading": "text",
            "data.vocabulary_size": 8000,
            "train.steps": 9000,  # 75 epochs
            "train.batch_tokens": 4096,
            "train.warmup": 2000,
            # peak 0.005 = factor / sqrt(d_model * warmup)
            "train.learning_rate_factor": 0.005 * sqrt(128 * 2000),
            "train.checkpoint_steps": 240,  # about two epochs
            "train.checkpoint_minutes": None,  # the same checkpoints on every machine
            "train.keep_last": 10,  # their average has about 2 BLEU more than the last checkpoint
            "train.validate_steps": 1000,
        }
    )


for _name, _recipe in family_recipes():
    if _recipe.base:
        _register_changed(_name, _recipe.summary, partial(recipe, _recipe.base), _recipe.settings)
