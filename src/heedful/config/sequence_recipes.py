"""
Recipes of short tasks other than translation, each as its difference from ``tiny``.

Their texts come from `heedful data get`. They may change until version 1.0.
"""

Settings = dict[str, object]

_CHARACTERS: Settings = {
    "data.subwords": "character",
    "data.vocabulary_size": 400,  # an upper limit: the characters of the text decide
    "train.best_by": "exact_match",
}

_DATES: Settings = {
    **_CHARACTERS,
    "data.max_length": 96,  # the longest of the generated dates has 75 characters
    "train.steps": 2000,
    "train.validate_steps": 500,
}

_KANA: Settings = {**_CHARACTERS, "train.steps": 1500, "train.validate_steps": 500}

SEQUENCE_RECIPES: dict[str, tuple[str, Settings]] = {
    "dates": ("Write dates in words as ISO dates, character by character, in minutes.", _DATES),
    "kana": ("Transliterate Japanese kana, character by character, in minutes.", _KANA),
}
"""Summary and settings by name."""
