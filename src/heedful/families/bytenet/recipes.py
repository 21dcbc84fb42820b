"""
The recipe of ByteNet as published: settings that differ from the defaults, with their sources.

A comment names the source; “ours” marks a choice for which no source was found. Two
reimplementations quote the paper's sizes and search: dhpollack/bytenet.pytorch
(train_bytenet_wmt.py) and a reproduction of the paper's experiments. Encoder and decoder have equal
settings.
"""

from typing import Any

from heedful.families.family import Recipe

_BYTENET: dict[str, Any] = {  # Kalchbrenner et al. 2016
    "model.encoder": "bytenet",
    "model.decoder": "bytenet",
    "model.d_model": 1600,  # 2d between blocks, d = 800 inside
    "model.encoder_layers": 30,  # six times the dilations 1, 2, 4, 8, 16
    "model.decoder_layers": 30,
    "model.dropout": 0.0,  # none mentioned for translation
    "model.tie_embeddings": "none",  # ours
    "model.output_bias": True,  # Kyubyong/bytenet_translation, the last convolution
    "model.bytenet.join": "concatenated",  # in the same code, and in tensor2tensor's bytenet.py
    "model.bytenet.unfolding_factor": 1.2,  # a, for English-German
    "model.bytenet.unfolding_offset": 0,  # b
    "data.subwords": "character",
    "data.shared_vocabulary": False,  # ours
    "data.vocabulary_size": 4000,  # ours: an upper limit; the characters of the text decide
    "data.max_length": 400,  # ours
    "train.schedule": "constant",  # ours
    "train.learning_rate": 3e-4,
    "train.warmup": 4000,  # ours: large first steps would move 60 blocks too far
    "train.beta2": 0.999,  # Kingma and Ba 2015
    "train.epsilon": 1e-8,
    "train.label_smoothing": 0.0,  # none mentioned
    "train.batch_tokens": 64 * 150,  # ours: 64 sentences of 150 characters
    "train.steps": 500_000,  # ours
    "search.beam": 12,
    "search.length_penalty": "none",
}

BYTENET_RECIPES: dict[str, Recipe] = {
    "bytenet": Recipe("Kalchbrenner et al. 2016: dilated convolutions on characters.", _BYTENET),
}
