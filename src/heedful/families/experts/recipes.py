"""
Recipes of the translation models of Shazeer et al. 2017, with the source of each setting.

A comment names the appendix; “ours” marks a choice for which no source was found. The largest model
has 2,048 experts; each token uses two in each of two groups.
"""

from typing import Any

from heedful.families.family import Recipe

_MOE: dict[str, Any] = {
    "model.encoder": "recurrent",
    "model.decoder": "recurrent",
    "model.d_model": 512,  # appendix E: width of all inputs and outputs of layers
    "model.encoder_layers": 3,  # appendix E: GNMT with fewer layers
    "model.decoder_layers": 2,
    "model.dropout": 0.4,  # appendix E: of embeddings, and of outputs of LSTMs and mixtures
    "model.tie_embeddings": "none",  # ours
    "model.recurrent.hidden_size": 2048,  # appendix E
    "model.recurrent.projection_size": 512,
    "model.recurrent.direction": "forward",  # ours: the paper mentions no bidirectional layer
    "model.recurrent.residual_from": 1,  # appendix E: around all LSTM layers and mixtures
    "model.recurrent.score": "product",  # appendix G
    "model.recurrent.attention_size": 512,  # ours
    "model.recurrent.query": "previous",  # appendix E: the decoder's first layer gives the query
    "model.recurrent.feed": "context",  # the first layer also reads the context
    "model.recurrent.readout": "state",  # ours, as in GNMT
    "model.recurrent.start": "zero",  # ours
    "model.experts.count": 32,
    "model.experts.per_token": 4,
    "model.experts.gating": "balanced",  # appendix F
    "model.experts.d_ff": 2048,  # appendix E: two million weights per expert
    "model.experts.encoder_layers": "2",  # appendix E: between layers 2 and 3
    "model.experts.decoder_layers": "1",  # and between 1 and 2
    "model.experts.sigmoid": True,  # appendix E
    "data.vocabulary_size": 32_000,  # appendix E: one for both languages
    "data.subwords": "unigram",  # stands in for word-piece
    "data.shared_vocabulary": True,
    "train.schedule": "inverse_sqrt",  # appendix E: up for 2,000 steps, constant for 8,000
    "train.learning_rate": 1e-3,  # ours
    "train.warmup": 2000,
    "train.beta2": 0.999,  # ours, Kingma and Ba 2015
    "train.epsilon": 1e-8,
    "train.label_smoothing": 0.0,  # none mentioned
    "train.batch_tokens": 16_000,  # appendix E: words per device; one device is ours
    "train.steps": 200_000,  # ours
    "search.beam": 8,  # ours, as in GNMT
    "search.length_penalty": "gnmt:0.2",  # ours, as in GNMT
}

_SMALL: dict[str, Any] = {
    "model.encoder_layers": 3,
    "model.decoder_layers": 3,
    "model.d_model": 192,
    "model.norm": "pre",
    "model.dropout": 0.15,
    "model.experts.count": 8,
    "model.experts.per_token": 2,
    "model.experts.d_ff": 192,
    "data.vocabulary_size": 4000,
    "train.steps": 6000,
    "train.batch_tokens": 1024,
    "train.schedule": "cosine",
    "train.learning_rate": 1.5e-3,
    "train.warmup": 400,
    "train.clip_norm": 1.0,
    "train.checkpoint_steps": 100,
    "train.validate_steps": 1000,
}

EXPERTS_RECIPES: dict[str, Recipe] = {
    "moe": Recipe("Shazeer et al. 2017: LSTMs with two mixtures of 32 experts.", _MOE),
    "moe-2048": Recipe(
        "Shazeer et al. 2017: two mixtures of 2,048 experts, 8.7 billion weights.",
        _MOE
        | {
            "model.experts.count": 2048,
            "model.experts.per_token": 2,  # on each of two levels
            "model.experts.groups": 32,  # ours
        },
    ),
    "moe-small": Recipe(
        "Train on Multi30k with mixtures of 8 experts, in an hour on two cores.",
        _SMALL,
        base="multi30k",
    ),
}
