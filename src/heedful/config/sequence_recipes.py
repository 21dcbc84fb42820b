"""
Recipes for small tasks other than translation, each written as differences from ``tiny``.

Their texts come from `heedful data get`. They may change until version 1.0.
"""

Settings = dict[str, object]

# Generated text has no noise.
_CLEAN: Settings = {"data.character_coverage": 1.0}

_CHARACTERS: Settings = {
    **_CLEAN,
    "data.reading": "exact",  # digits and signs must stay unchanged
    "data.subwords": "character",
    "data.vocabulary_size": 400,  # an upper limit; the text has fewer characters
    "train.best_by": "exact_match",
}

_DATES: Settings = {
    **_CHARACTERS,
    "data.max_length": 96,  # the longest of the generated dates has 78 characters
    "train.steps": 2000,
    "train.validate_steps": 500,
}

_KANA: Settings = {**_CHARACTERS, "train.steps": 1500, "train.validate_steps": 500}

# Few epochs over a lot of text need no regularization, and allow a high learning rate.
_MUCH_TEXT: Settings = {
    "model.dropout": 0.0,
    "model.norm": "pre",
    "train.steps": 3000,
    "train.schedule": "cosine",
    "train.learning_rate": 0.003,
    "train.warmup": 300,
    "train.clip_norm": 1.0,
}

_PHONEMES: Settings = {
    **_CHARACTERS,
    **_MUCH_TEXT,
    "model.d_model": 128,
    "model.d_ff": 256,
    "model.tie_embeddings": "output",
    "data.shared_vocabulary": False,
    "data.target_subwords": "symbols",
    "train.validate_steps": 1000,
}

_QUESTIONS: Settings = {
    **_CLEAN,
    **_MUCH_TEXT,
    "data.reading": "exact",
    "data.vocabulary_size": 400,  # enough for every word of the grammar
    "train.best_by": "exact_match",
    "train.validate_steps": 500,
}

SEQUENCE_RECIPES: dict[str, tuple[str, Settings]] = {
    "dates": ("Learn to convert English dates to ISO 8601, in minutes on two cores.", _DATES),
    "kana": ("Learn to transliterate Japanese kana, in minutes on two cores.", _KANA),
    "phonemes": ("Learn to write English words in phonemes, in minutes on two cores.", _PHONEMES),
    "questions": ("Learn to answer questions about short stories, in minutes.", _QUESTIONS),
}
"""The summary and the settings of each recipe, by its name."""
