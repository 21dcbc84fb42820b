"""
Pre-tokenized text, split at spaces and looked up in a vocabulary.

With byte-pair codes, words are first split into subwords; without codes the vocabulary lists words.
This is how text for fairseq, OpenNMT and Joey NMT is prepared.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from random import Random

from heedful.errors import TextError
from heedful.text.corpus import read_lines
from heedful.text.file_formats import TextSource
from heedful.tokenization.bpe_codes import BpeCodes, join_pieces, words_of
from heedful.tokenization.special_symbols import (
    UNKNOWN,
    UNKNOWN_TEXT,
    refuse_half_characters,
    split_tag,
)
from heedful.tokenization.vocabulary import Vocabulary


class VocabularyModel:
    """
    A word vocabulary, or BPE codes with their vocabulary.

    `codes`: a codes file of subword-nmt; None for a vocabulary of words.

    Encoding is lossless for text of known words with single spaces, if no word ends in ``@@``.
    """

    def __init__(self, vocabulary: Vocabulary, codes: bytes | None = None) -> None:
        self.kind = "word-list" if codes is None else "codes"
        self.tags: Mapping[str, int] = vocabulary.tags
        self._vocabulary = vocabulary
        known = vocabulary.pieces if vocabulary.splits_others else None
        self._codes = None if codes is None else BpeCodes(codes, known)

    @property
    def size(self) -> int:
        """Number of entries, special ones included."""
        return len(self._vocabulary)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Convert lines to ids."""
        # With codes, lines are split at spaces as in subword-nmt; with a word list, at any white
        # space.
        refuse_half_characters(texts)
        if self._codes is None:
            return [self._ids(text.split()) for text in texts]
        return [self._ids(self._codes.pieces(text)) for text in texts]

    def sample(self, texts: Sequence[str], rate: float, generator: Random) -> list[list[int]]:
        """Convert lines to ids with random segmentations."""
        # A word that sampling would split into an unknown subword is split deterministically.
        if self._codes is None:
            return self.encode(texts)
        refuse_half_characters(texts)
        lines = []
        for text in texts:
            ids: list[int] = []
            for word in words_of(text):
                sampled = self._ids(self._codes.sample(word, rate, generator))
                ids += self._ids(self._codes.cut(word)) if UNKNOWN in sampled else sampled
            lines.append(ids)
        return lines

    def decode(self, ids: Sequence[int]) -> str:
        """Convert ids to text, which stays tokenized."""
        piece = self._vocabulary.piece
        return join_pieces(UNKNOWN_TEXT if number == UNKNOWN else piece(number) for number in ids)

    def piece(self, number: int) -> str:
        """Return the text of one id, including special symbols such as ``</s>``."""
        return self._vocabulary.piece(number)

    def files(self) -> dict[str, bytes]:
        """Return the files to save."""
        codes = {} if self._codes is None else {"codes": self._codes.content}
        return codes | {"vocabulary.json": self._vocabulary.to_bytes()}

    def _ids(self, pieces: Iterable[str]) -> list[int]:
        """Look up subwords."""
        number = self._vocabulary.ids.get
        return [number(piece, UNKNOWN) for piece in pieces]


def learn_codes_vocabulary(
    codes: bytes,
    files: Sequence[TextSource | Path],
    text: str,
    *,
    vocabulary_size: int,
    tagged: int = 0,
    threshold: int = 0,
    complete: bool = False,
) -> VocabularyModel:
    """
    Build a vocabulary of the subwords into which codes split a text.

    `vocabulary_size`: maximum number of entries, special ones included.

    Subwords rarer than `threshold`, often parts of names in the other language, are split further.
    This equals ``--vocabulary-threshold`` of subword-nmt with a vocabulary of the same text.

    Raises `TextError` if the text is empty or cannot be read. Raises `TokenizerError` if the codes
    cannot be read, or the vocabulary has no room for a subword.
    """
    words, tags = _count_words(files, text, words_of, tagged)
    merges = BpeCodes(codes)
    counts = _count_pieces(words, merges)
    if threshold:
        known = {piece for piece, count in counts.items() if count >= threshold}
        merges = BpeCodes(codes, known)
        counts = _count_pieces(words, merges)
    if complete:
        counts.update(dict.fromkeys(merges.possible_subwords(words), 0))
    return VocabularyModel(
        Vocabulary.from_counts(counts, vocabulary_size, tags, threshold > 0), codes
    )


def learn_word_vocabulary(
    words: Collection[str],
    files: Sequence[TextSource | Path],
    text: str,
    *,
    vocabulary_size: int,
    tagged: int = 0,
) -> VocabularyModel:
    """
    Build a vocabulary of the allowed words that occur in a text.

    `vocabulary_size`: maximum number of entries, special ones included.

    Words that are not in the text are left out, because their embeddings would never be trained.

    Raises `TextError` if the text is empty, cannot be read, or has none of the words. Raises
    `TokenizerError` if the vocabulary has no room for a word.
    """
    word_counts, tags = _count_words(files, text, str.split, tagged)
    counts = {word: word_counts[word] for word in words if word in word_counts}
    if not counts:
        raise TextError(
            f"A list of words must contain words of the text, but none of its {len(words):,} "
            f"words is in the {text}; give text that is tokenized like the list."
        )
    return VocabularyModel(Vocabulary.from_counts(counts, vocabulary_size, tags))


def learn_symbols(files: Sequence[TextSource | Path]) -> VocabularyModel:
    """Build a vocabulary of the space-separated symbols of a text, the most frequent first."""
    counts, _ = _count_words(files, "target text", str.split, 0)
    return VocabularyModel(Vocabulary(sorted(counts, key=lambda piece: (-counts[piece], piece))))


def _count_words(
    files: Sequence[TextSource | Path], text: str, parted: Callable[[str], list[str]], tagged: int
) -> tuple[Counter[str], list[str]]:
    """Count the words of a text, and list the language tags of its lines."""
    words: Counter[str] = Counter()
    tags: set[str] = set()
    for number, file in enumerate(files):
        for line in read_lines(file):
            tag, rest = split_tag(line) if number < tagged else ("", line)
            tags.update([tag] if tag else [])
            words.update(parted(rest))
    if not words:
        raise TextError(
            f"A vocabulary is built from text, but the {text} is empty; give files with sentences."
        )
    return words, sorted(tags)


def _count_pieces(words: Mapping[str, int], codes: BpeCodes) -> Counter[str]:
    """Count subwords, given the count of each word."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for piece in codes.cut(word):
            counts[piece] += count
    return counts
