"""The settings of text: languages, subwords, which pairs are kept."""

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
    """Languages, subwords, and which pairs are kept."""

    table: ClassVar[str] = "data"

    source_language: Language = ""
    """Code of the source language. Empty means the ending of the source files."""
    target_language: Language = ""
    """Code of the target language. Empty means the ending of the target files."""
    reading: Literal["exact", "text"] = "exact"
    """Read lines unchanged, or handle capitals, emoji and placeholders; see docs/howto/text.md."""
    vocabulary_size: Count = 37_000
    """Subwords in the vocabulary, or in the vocabulary of each language if it is not shared."""
    vocabulary_multiple: Count = 8
    """Pad the embedding with unused rows to a multiple of this."""
    subwords: Literal["bpe", "unigram", "character", "word"] = "bpe"
    """How text is split into subwords."""
    character_coverage: Annotated[float, Field(gt=0.5, le=1)] = 1.0
    """Minimum share of lines that the vocabulary fully covers; rare characters are left out."""
    target_subwords: Annotated[
        Literal["as-source", "symbols"], ActsIf("data.shared_vocabulary", (False,))
    ] = "as-source"
    """How target text is split: like the source, or at spaces, for symbols such as brackets."""
    normalization: Literal["identity", "nfc", "nmt_nfkc", "nmt_nfkc_cf"] = "identity"
    """Rewrite text before the split: not at all, NFC, sentencepiece's NFKC, or lower-case NFKC."""
    subword_sampling: Share = 0.0
    """Sample new splits in every epoch: rate of BPE-dropout, or alpha of unigram. 0 means off."""
    augment: Annotated[str, AfterValidator(_check_augmentations)] = ""
    """Shares of the pairs to change in every epoch, such as capitals:0.05 typos:0.1."""
    vocabulary_threshold: CountOrZero = 0
    """With given BPE codes: split subwords that occur less often in the text. 0 means none."""
    shared_vocabulary: bool = True
    """Whether both languages share one vocabulary."""
    max_length: Count = 256
    """Maximum subwords of a sentence; pairs with a longer sentence are dropped."""
    max_length_ratio: Annotated[float, Field(ge=1)] | None = None
    """Drop pairs with a larger ratio of longer to shorter side. None means no limit."""
    min_script_share: Annotated[float, Field(gt=0, le=1)] | None = None
    """Drop pairs with a smaller share of letters in the language's script. None means any."""
    drop_duplicates: bool = False
    """Whether repeated pairs are dropped."""
    unescape: bool = False
    """Whether escapes of Moses' tokenizer, such as &apos; and @-@, are resolved."""
    mixing_temperature: Annotated[float, Field(ge=1)] = 1.0
    """Temperature to sample corpora without weights; 1 samples in proportion to size."""
