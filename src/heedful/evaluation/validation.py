"""Scores of validation translations, without sacreBLEU's advice on the console."""

from collections.abc import Callable, Sequence

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from heedful.evaluation.languages import bleu_tokenizer, is_language, written_language


class ValidationScorer:
    """A scorer of translations of the validation text, whose references are prepared once."""

    def __init__(
        self, references: Sequence[str], language: str = "", names: Sequence[str] = ("bleu",)
    ) -> None:
        # endings of files such as .tgt are no languages
        language = language if is_language(language) else written_language(references)
        self.bleu = BLEU(force=True, tokenize=bleu_tokenizer(language), references=[references])
        chrf = CHRF(references=[references])
        known: dict[str, Callable[[Sequence[str]], float]] = {
            "bleu": lambda texts: float(self.bleu.corpus_score(texts, None).score),
            "chrf": lambda texts: float(chrf.corpus_score(texts, None).score),
            "exact_match": lambda texts: exact_match(texts, references),
            "cer": lambda texts: character_error_rate(texts, references),
        }
        self.scores = {name: known[name] for name in names}

    def __call__(self, translations: Sequence[str]) -> dict[str, float | str]:
        """Return each score in percent, and BLEU's signature."""
        found: dict[str, float | str] = {
            name: score(translations) for name, score in self.scores.items()
        }
        return found | {"bleu_signature": str(self.bleu.get_signature())}


def exact_match(texts: Sequence[str], references: Sequence[str]) -> float:
    """Return the percentage of lines equal to their reference, ignoring spaces at the ends."""
    pairs = zip(texts, references, strict=True)
    return 100 * sum(text.strip() == right.strip() for text, right in pairs) / len(references)


def character_error_rate(texts: Sequence[str], references: Sequence[str]) -> float:
    """Return the edits of all lines per hundred characters of the references."""
    edits = sum(edit_distance(*pair) for pair in zip(texts, references, strict=True))
    return 100 * edits / max(sum(map(len, references)), 1)


def edit_distance(text: str, reference: str) -> int:
    """Compute the edit distance of two strings."""
    # Myers (1999), “A Fast Bit-Vector Algorithm for Approximate String Matching”, in the form of
    # Hyyrö (2003): a column of the table is two long integers, whose bits mark where it rises by
    # one and where it falls.
    if not text:
        return len(reference)
    places: dict[str, int] = {}
    for place, character in enumerate(text):
        places[character] = places.get(character, 0) | 1 << place
    every, last = (1 << len(text)) - 1, 1 << (len(text) - 1)
    rises, falls, distance = every, 0, len(text)
    for character in reference:
        equal = places.get(character, 0)
        diagonal = (((equal & rises) + rises) ^ rises) | equal | falls
        right_rises = falls | ~(diagonal | rises) & every
        right_falls = rises & diagonal
        distance += bool(right_rises & last) - bool(right_falls & last)
        right_rises = right_rises << 1 | 1
        rises = ((right_falls << 1) | ~(diagonal | right_rises)) & every
        falls = right_rises & diagonal & every
    return distance
