"""
Recipes of ConvS2S: shapes from fairseq, training settings from its guide or from the paper.

A comment names the source; “ours” marks a choice for which no source was found. The shapes of
fairseq (`fairseq/models/fconv.py` at 3d262bb2) differ from those in the later version of the paper.
There, embeddings have width 512, and the layers form groups of 10, 3 and 2, each with one width
(English-German). “README” is fairseq's examples/translation/README.md, and sections are those of
Gehring et al. (2017). Two things differ in heedful. The output matrix has no weight normalization.
Both languages share one vocabulary, whose size is the number of joint BPE codes in fairseq's
scripts.
"""

from typing import Any

from heedful.families.family import Recipe

Settings = dict[str, Any]

_ALL: Settings = {
    "model.encoder": "convs2s",
    "model.decoder": "convs2s",
    "model.positions": "learned",
    "model.tie_embeddings": "none",  # share_input_output_embed is off
    "model.output_bias": True,  # fc3
    "model.decoder_start": "end",  # as in every model of fairseq
    "data.max_length": 1025,  # plus the end symbol: 1,026 rows; embed_positions has 2 unused rows
    "train.optimizer": "sgd",
    "train.momentum": 0.99,  # section 4.2
    "train.nesterov": True,  # section 4.2; optimizer nag
    "train.warmup": 0,
    "train.schedule": "plateau",  # section 4.2: when validation stops improving
    "train.plateau_patience": 0,
    "train.best_by": "loss",  # section 4.2: perplexity
    "train.decay_factor": 0.1,  # section 4.2
    "train.min_learning_rate": 1e-4,  # section 4.2
    "train.learning_rate": 0.25,  # section 4.2
    "train.clip_norm": 0.1,  # section 4.2
    "train.label_smoothing": 0.0,  # section 4.2 has none; README 0.1
    "search.beam": 5,  # section 4.3
    "search.length_penalty": "power:1",  # section 4.3: divided by the length
}

_GERMAN_EPOCH = 4_500_000 * 30 // 4000  # pairs of WMT 2014; 30 subwords per sentence are ours
_FRENCH_EPOCH = 35_500_000 * 30 // 3000  # 30 subwords per sentence are ours

_ENGLISH_GERMAN: Settings = {  # fconv_wmt_en_de
    **_ALL,
    "model.d_model": 768,  # encoder_embed_dim, decoder_embed_dim
    "model.dropout": 0.2,  # README
    "model.convs2s.encoder_layers": "9x(512,3) 4x(1024,3) 2x(2048,1)",
    "model.convs2s.decoder_layers": "9x(512,3) 4x(1024,3) 2x(2048,1)",
    "model.convs2s.out_embed_dim": 512,  # decoder_out_embed_dim
    "data.vocabulary_size": 40_000,  # section 4.1; BPE_TOKENS of prepare-wmt14en2de.sh
    "train.batch_tokens": 4000,  # README: max-tokens
    "train.validate_steps": _GERMAN_EPOCH,  # section 4.2: after every epoch
    "train.steps": 30 * _GERMAN_EPOCH,  # ours
}

_ENGLISH_FRENCH: Settings = {  # fconv_wmt_en_fr
    **_ENGLISH_GERMAN,
    "model.dropout": 0.1,  # README
    "model.convs2s.encoder_layers": "6x(512,3) 4x(768,3) 3x(1024,3) (2048,1) (4096,1)",
    "model.convs2s.decoder_layers": "6x(512,3) 4x(768,3) 3x(1024,3) (2048,1) (4096,1)",
    "train.batch_tokens": 3000,  # README: max-tokens
    "train.validate_steps": _FRENCH_EPOCH,
    "train.steps": 10 * _FRENCH_EPOCH,  # ours
}

_IWSLT_EPOCH = 160_000 * 25 // 4000  # pairs of IWSLT 2014; 25 subwords per sentence are ours

_IWSLT: Settings = {  # fconv_iwslt_de_en, trained as in docs/getting_started.rst
    **_ALL,
    "model.d_model": 256,  # encoder_embed_dim, decoder_embed_dim, decoder_out_embed_dim
    "model.dropout": 0.2,
    "model.convs2s.encoder_layers": "4x(256,3)",
    "model.convs2s.decoder_layers": "3x(256,3)",
    "data.vocabulary_size": 10_000,  # BPE_TOKENS of prepare-iwslt14.sh
    "train.batch_tokens": 4000,  # max-tokens
    "train.validate_steps": _IWSLT_EPOCH,
    "train.steps": 60 * _IWSLT_EPOCH,  # ours
}

_SMALL: dict[str, Any] = {
    "model.encoder": "convs2s",
    "model.decoder": "convs2s",
    "model.d_model": 256,
    "model.positions": "learned",
    "model.dropout": 0.2,
    "model.convs2s.encoder_layers": "4x(256,3)",
    "model.convs2s.decoder_layers": "3x(256,3)",
    "data.vocabulary_size": 4000,
    "train.steps": 4400,
    "train.batch_tokens": 1024,
    "train.schedule": "cosine",
    "train.learning_rate": 1.5e-3,
    "train.warmup": 300,
    "train.clip_norm": 1.0,
    "train.checkpoint_steps": 100,
    "train.validate_steps": 400,
}

CONVS2S_RECIPES: dict[str, Recipe] = {
    "convs2s-en-de": Recipe(
        "Gehring et al. 2017: ConvS2S English-German, with fairseq's layers.",
        _ENGLISH_GERMAN,
    ),
    "convs2s-en-fr": Recipe(
        "Gehring et al. 2017: ConvS2S English-French, with fairseq's layers.",
        _ENGLISH_FRENCH,
    ),
    "fconv-iwslt": Recipe("fairseq's fconv_iwslt_de_en: German-English on 160,000 pairs.", _IWSLT),
    "convolutional-small": Recipe(
        "Train on Multi30k with convolutions, and attention in every decoder layer.",
        _SMALL,
        base="multi30k",
    ),
}
