"""Scores of validation translations, without sacreBLEU's advice on the console."""

from collections.abc import Callable, Sequence

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from heedful.evaluation.languages import bleu_tokenizer, is_language, written_language
from heedful.evaluation.line_metrics import CharacterErrorRate, ExactMatch
from heedful.evaluation.sufficient_statistics import measure


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
            "exact_match": lambda texts: measure(ExactMatch([references]), texts).score,
            "cer": lambda texts: measure(CharacterErrorRate([references]), texts).score,
        }
        self.scores = {name: known[name] for name in names}

    def __call__(self, translations: Sequence[str]) -> dict[str, float | str]:
        """Return each score in percent, and BLEU's signature."""
        found: dict[str, float | str] = {
            name: score(translations) for name, score in self.scores.items()
        }
        return found | {"bleu_signature": str(self.bleu.get_signature())}
