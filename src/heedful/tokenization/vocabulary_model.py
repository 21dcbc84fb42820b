"""
Text that is already tokenised, cut at its spaces and looked up in a list.

With byte-pair codes words are cut into subwords first; without, the list is one of words. This is
how the preparation for fairseq, OpenNMT and Joey NMT cuts text.
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
    A vocabulary, and codes if words are cut.

    Parameters
    ----------
    vocabulary : Vocabulary
        What has an id.
    codes : bytes or None
        A codes file of subword-nmt; None if the vocabulary is one of words.

    Notes
    -----
    Lossless for text with single spaces whose words do not end in ``@@``.
    """

    def __init__(self, vocabulary: Vocabulary, codes: bytes | None = None) -> None:
        self.kind = "word-list" if codes is None else "codes"
        self.tags: Mapping[str, int] = vocabulary.tags
        self._vocabulary = vocabulary
        known = vocabulary.pieces if vocabulary.splits_others else None
        self._codes = None if codes is None else BpeCodes(codes, known)

    @property
    def size(self) -> int:
        """Entries, special ones included."""
        return len(self._vocabulary)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """
        Turn lines into ids.

        Parameters
        ----------
        texts : sequence of str
            Lines of tokenised text.

        Returns
        -------
        list of list of int
            The ids of each line.

        Notes
        -----
        Codes part words at spaces as subword-nmt does, a list of words at any white space.
        """
        refuse_half_characters(texts)
        if self._codes is None:
            return [self._ids(text.split()) for text in texts]
        cut = self._codes.cut
        return [self._ids([p for word in words_of(text) for p in cut(word)]) for text in texts]

    def sample(self, texts: Sequence[str], rate: float, generator: Random) -> list[list[int]]:
        """
        Turn lines into ids that are other ones each time.

        Parameters
        ----------
        texts : sequence of str
            Lines of tokenised text.
        rate : float
            Probability that a possible merge is left out.
        generator : Random
            Where chance comes from.

        Returns
        -------
        list of list of int
            The ids of each line; those of `encode` without codes.

        Notes
        -----
        A word that would get an unknown subword by chance alone is cut as always.
        """
        if self._codes is None:
            return self.encode(texts)
        refuse_half_characters(texts)
        lines = []
        for text in texts:
            ids: list[int] = []
            for word in words_of(text):
                found = self._ids(self._codes.sample(word, rate, generator))
                ids += self._ids(self._codes.cut(word)) if UNKNOWN in found else found
            lines.append(ids)
        return lines

    def decode(self, ids: Sequence[int]) -> str:
        """
        Turn ids into text.

        Parameters
        ----------
        ids : sequence of int
            Ids of this model.

        Returns
        -------
        str
            Words with single spaces, “⁇” for what is unknown.

        Notes
        -----
        Still tokenised text, as it came in.
        """
        piece = self._vocabulary.piece
        return join_pieces(UNKNOWN_TEXT if number == UNKNOWN else piece(number) for number in ids)

    def piece(self, number: int) -> str:
        """
        Spell one id.

        Parameters
        ----------
        number : int
            An id of this model.

        Returns
        -------
        str
            Its subword, with ``@@`` if the word goes on, or its word.

        Notes
        -----
        Special symbols are spelled too, such as ``</s>``.
        """
        return self._vocabulary.piece(number)

    def files(self) -> dict[str, bytes]:
        """
        Give what has to be saved.

        Returns
        -------
        dict of str to bytes
            Codes and vocabulary, by the endings of their files.

        Notes
        -----
        Codes are kept as they were given.
        """
        codes = {} if self._codes is None else {"codes": self._codes.content}
        return codes | {"vocabulary.json": self._vocabulary.to_bytes()}

    def _ids(self, pieces: Iterable[str]) -> list[int]:
        """Look subwords up."""
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
    List the subwords that codes cut a text into.

    Parameters
    ----------
    codes : bytes
        A codes file of subword-nmt.
    files : sequence of Path
        The text.
    text : str
        What to call it in messages.
    vocabulary_size : int
        The most entries, special ones included.
    tagged : int, default 0
        How many of the files, from the first, may have language tags before their lines.
    threshold : int, default 0
        Subwords that occur less often are split again by the merges that made them.
    complete : bool, default False
        Whether subwords are listed, behind all others, that only sampling can produce.

    Returns
    -------
    VocabularyModel
        Cuts and looks up.

    Raises
    ------
    TextError
        If the text is empty or cannot be read.
    TokenizerError
        If the codes are none, or the vocabulary has no room.

    Notes
    -----
    What ``--vocabulary-threshold`` of subword-nmt does with a vocabulary of the same text: rare
    subwords, often parts of names in the other language, are left to smaller ones.
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
    List the words that are allowed and occur in a text.

    Parameters
    ----------
    words : collection of str
        The words that are allowed.
    files : sequence of Path
        The text.
    text : str
        What to call it in messages.
    vocabulary_size : int
        The most entries, special ones included.
    tagged : int, default 0
        How many of the files, from the first, may have language tags before their lines.

    Returns
    -------
    VocabularyModel
        Looks up words.

    Raises
    ------
    TextError
        If the text is empty, cannot be read, or has not one of the words.
    TokenizerError
        If the vocabulary has no room.

    Notes
    -----
    A word that the text does not have would get a row that nothing is ever learned for.
    """
    found, tags = _count_words(files, text, str.split, tagged)
    counts = {word: found[word] for word in words if word in found}
    if not counts:
        raise TextError(
            f"A list of words must have words of the text, but the {text} has not one of the "
            f"{len(words):,} in the list; give text that is tokenised like the list."
        )
    return VocabularyModel(Vocabulary.from_counts(counts, vocabulary_size, tags))


def _count_words(
    files: Sequence[TextSource | Path], text: str, parted: Callable[[str], list[str]], tagged: int
) -> tuple[Counter[str], list[str]]:
    """Count the words of a text, and list the language tags before its lines."""
    words: Counter[str] = Counter()
    tags: set[str] = set()
    for number, file in enumerate(files):
        for line in read_lines(file):
            tag, rest = split_tag(line) if number < tagged else ("", line)
            tags.update([tag] if tag else [])
            words.update(parted(rest))
    if not words:
        raise TextError(
            f"A vocabulary is made from text, but the {text} is empty; give files with sentences."
        )
    return words, sorted(tags)


def _count_pieces(words: Mapping[str, int], codes: BpeCodes) -> Counter[str]:
    """Count the subwords of counted words."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for piece in codes.cut(word):
            counts[piece] += count
    return counts
