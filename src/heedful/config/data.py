"""The settings of text: languages, subwords, and filters for sentence pairs."""

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from heedful.settings.conditions import ActsIf
from heedful.settings.field_types import Count, CountOrZero, Language, Share
from heedful.settings.registries import augmentation_shares
from heedful.settings.table import SettingsTable


def _check_augmentations(shares: str) -> str:
    """Refuse unregistered augmentations, and shares that add up to more than 1."""
    augmentation_shares(shares)
    return shares


class DataConfig(SettingsTable):
    """Languages, subwords, and filters for sentence pairs."""

    table: ClassVar[str] = "data"

    source_language: Language = ""
    """Code of the source language. Empty means the extension of the source files."""
    target_language: Language = ""
    """Code of the target language. Empty means the extension of the target files."""
    reading: Literal["exact", "text"] = "exact"
    """Read lines exactly, or handle capitals, emoji and placeholders; see docs/howto/text.md."""
    vocabulary_size: Count = 37_000
    """Size of the vocabulary, or of each language's vocabulary if the two are separate."""
    vocabulary_multiple: Count = 8
    """Unused rows pad the embedding matrix to a multiple of this number."""
    subwords: Literal["bpe", "unigram", "character", "word"] = "bpe"
    """How text is split into subwords."""
    character_coverage: Annotated[float, Field(gt=0.5, le=1)] = 1.0
    """Minimum share of lines whose characters are all in the vocabulary; 1 means all lines."""
    target_subwords: Annotated[
        Literal["as-source", "symbols"], ActsIf("data.shared_vocabulary", (False,))
    ] = "as-source"
    """How target text is split: as-source (like source text), or symbols (at spaces)."""
    normalization: Literal["identity", "nfc", "nmt_nfkc", "nmt_nfkc_cf"] = "identity"
    """Unicode normalization: none, NFC, sentencepiece's NFKC, or its NFKC with case folding."""
    subword_sampling: Share = 0.0
    """Rate of BPE-dropout, or alpha of unigram sampling. 0 means that splits are fixed."""
    augment: Annotated[str, AfterValidator(_check_augmentations)] = ""
    """Share of pairs that each augmentation changes per epoch, such as capitals:0.05 typos:0.1."""
    vocabulary_threshold: CountOrZero = 0
    """With given BPE codes, split subwords that the text has fewer times than this; 0 is off."""
    shared_vocabulary: bool = True
    """Whether both languages share one vocabulary."""
    max_length: Count = 256
    """Maximum number of subwords in a sentence; pairs with a longer sentence are dropped."""
    max_length_ratio: Annotated[float, Field(ge=1)] | None = None
    """Maximum length ratio of the two sides; pairs above it are dropped. None means no limit."""
    min_script_share: Annotated[float, Field(gt=0, le=1)] | None = None
    """Minimum share of letters in the language's script, on each side. None means no limit."""
    drop_duplicates: bool = False
    """Whether repeated pairs are dropped."""
    unescape: bool = False
    """Whether escapes of Moses' tokenizer, such as &apos; and @-@, are undone."""
    mixing_temperature: Annotated[float, Field(ge=1)] = 1.0
    """Sampling temperature for corpora without weights; 1 samples in proportion to their sizes."""
