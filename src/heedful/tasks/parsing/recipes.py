"""
Published parsers and small ones, as settings that differ from the defaults.

Comments name the sources; “ours” marks a choice for which no source was found. All parsers read
words without tags; their trees have no traces and no function tags.
"""

from typing import Any

from heedful.families.family import Recipe
from heedful.tasks.parsing.config import PARSER_SETTINGS

_PAPER: dict[str, Any] = {  # Vaswani et al. 2017, section 6.3; other settings as in the base model
    **PARSER_SETTINGS,
    "reading": "paper",
    "parsing.linearisation": "t2t",  # tensor2tensor wsj_parsing.py; the paper does not state it
    "model.encoder_layers": 4,
    "model.decoder_layers": 4,
    "model.d_model": 1024,
    "data.vocabulary_size": 16_000,  # 32,000 in the semi-supervised setting
    "search.beam": 21,
    "search.length_penalty": "gnmt:0.3",
}
_T2T: dict[str, Any] = {  # tensor2tensor, transformer_parsing_base_dr6 and wsj_parsing_tokens_16k
    **_PAPER,
    "reading": "t2t",
    "model.encoder_layers": 6,  # inherited from transformer_base
    "model.decoder_layers": 6,
    "model.dropout": 0.2,  # residual_dropout; its attention_dropout of 0.2 is not set
    "model.positions": "halves",  # as in t2t-base
    "model.decoder_start": "zero",
    "data.vocabulary_size": 2**14,  # words; tensor2tensor has 2^9 subwords for symbols
    "train.batch_tokens": 8 * 4096,  # this and the next settings as in t2t-base
    "train.batch_counting": "padded",
    "train.block_tokens": 4096,
    "train.smoothing_target": "others",
    "search.eos_candidates": "twice",
    "train.warmup": 16_000,
    "train.learning_rate_factor": 5.0,  # learning_rate is 0.5 instead of 0.1 in its base
    "search.beam": 4,  # tensor2tensor's default
    "search.length_penalty": "gnmt:0.6",
}
_VINYALS: dict[str, Any] = {  # Vinyals et al. 2015, arXiv 1412.7449
    **PARSER_SETTINGS,
    "model.encoder": "recurrent",
    "model.decoder": "recurrent",
    "model.encoder_layers": 3,  # section 3.2
    "model.decoder_layers": 3,
    "model.d_model": 512,  # section 3.2; its word vectors are pretrained with word2vec
    "model.dropout": 0.3,  # ours; section 3.2 does not state its dropout rate
    "model.recurrent.hidden_size": 256,  # section 3.2
    "model.recurrent.direction": "forward",
    "model.recurrent.reverse_source": True,  # section 3.2
    "model.recurrent.score": "additive",  # section 2.1
    "model.recurrent.query": "current",
    "model.recurrent.readout": "state-context",  # section 2.1: both predict and are fed back
    "model.recurrent.feed": "readout",
    "model.recurrent.start": "final",
    "data.subwords": "word",
    "data.vocabulary_size": 90_000,  # section 3.2
    "train.schedule": "constant",
    "train.warmup": 0,
    "train.learning_rate": 1e-3,  # ours, with Adam
    "train.label_smoothing": 0.0,  # the source mentions none
    "search.beam": 10,  # section 3.4
    "search.length_penalty": "none",
}
_SMALL_TRAINING: dict[str, Any] = {
    **PARSER_SETTINGS,
    "parsing.linearisation": "t2t",
    "parsing.next_word": True,
    "model.d_model": 128,
    "model.dropout": 0.2,
    "data.vocabulary_size": 2000,
    "data.subword_sampling": 0.1,
    "train.steps": 4000,  # 32 epochs of the Penn Treebank's sample
    "train.batch_tokens": 2048,
    "train.schedule": "cosine",
    "train.learning_rate": 2e-3,
    "train.warmup": 300,
    "train.clip_norm": 1.0,
    "train.checkpoint_steps": 100,
    "train.checkpoint_minutes": None,
    "train.keep_last": 10,
    "train.validate_steps": 250,
    "search.beam": 16,
}
_SMALL_TRANSFORMER: dict[str, Any] = {
    **_SMALL_TRAINING,
    "model.encoder_layers": 3,
    "model.decoder_layers": 3,
    "model.d_ff": 512,
    "model.heads": 4,
    "model.norm": "pre",
}
_SMALL: dict[str, Any] = {  # an LSTM encoder and a Transformer decoder
    **_SMALL_TRANSFORMER,
    "model.encoder": "recurrent",
    "model.encoder_layers": 2,
    "model.recurrent.encoder_hidden_size": 64,  # in each direction
    "train.steps": 3200,
    "train.learning_rate": 1.2e-2,  # the best of five in docs/results/parsers.md
}
_SMALL_LSTM: dict[str, Any] = {
    **_SMALL_TRAINING,
    "model.encoder": "recurrent",
    "model.decoder": "recurrent",
    "model.encoder_layers": 2,
    "model.decoder_layers": 1,
    "model.recurrent.encoder_hidden_size": 128,
    "model.recurrent.decoder_hidden_size": 256,
    "model.recurrent.score": "general",
    "train.steps": 2000,
}

PARSING_RECIPES: dict[str, Recipe] = {
    "paper-parsing": Recipe("Constituency parsing as in section 6.3 of the paper.", _PAPER),
    "t2t-parsing": Recipe("Constituency parsing as in the authors' first public code.", _T2T),
    "vinyals-parsing": Recipe("Vinyals et al. 2015: an LSTM with attention that parses.", _VINYALS),
    "parsing-small": Recipe(
        "Parse with an LSTM encoder and a Transformer decoder that learn from few trees.",
        _SMALL,
    ),
    "parsing-small-transformer": Recipe("A small Transformer that parses.", _SMALL_TRANSFORMER),
    "parsing-small-lstm": Recipe("A small LSTM with attention that parses.", _SMALL_LSTM),
}
