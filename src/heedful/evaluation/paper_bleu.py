"""
BLEU as in the paper: tokenized, compounds split at hyphens, cased.

The scores in Table 2 were not computed by a tool with its own tokenizer. The authors' script,
``tensor2tensor/utils/get_ende_bleu.sh``, normalizes punctuation, tokenizes with Moses, splits
hyphenated words in three and computes BLEU with ``multi-bleu.perl``. This module follows its last
version (``tensorflow/tensor2tensor`` at c886a73d2e89d4a624d316e1fe31b243ca5aaebb). An earlier
version, at 315647cdbf6efc78591f3047627ca064c75c31dc, did not change the punctuation. The score is
usually higher than sacreBLEU's, by up to a point on newstest2014. It is comparable only with scores
that were computed in the same way.

Differences from the script:

- The script expects a reference that was tokenized beforehand. Here the reference is processed in
  the same three steps as the translation.
- In the authors' own reference of newstest2014 all quotation marks were also made straight by hand
  (tensorflow/tensor2tensor#317). This adds 0.4 BLEU for systems that write straight quotation
  marks. heedful does not change references in this way.
- The script is for German. Other languages are processed in the same way with their own tokenizer
  rules; how the paper scored French is not known.
"""

import re
from importlib.metadata import version
from typing import Any

from sacrebleu.metrics.bleu import BLEU, BLEUSignature

from heedful.errors import TextError
from heedful.evaluation.languages import language_code
from heedful.evaluation.line_metrics import References
from heedful.evaluation.moses import replace_unicode_punctuation, tokenize

_UNSPACED = ("bo", "dz", "ja", "km", "lo", "my", "th", "yue", "zh")
_HYPHENATED = re.compile(rb"(\S)-(\S)")


def split_compounds(line: str) -> str:
    r"""
    Split words at their hyphens.

    The output equals that of the script's ``perl -ple 's{(\S)-(\S)}{$1 ##AT##-##AT## $2}g'``. It
    makes one pass from left to right, in which a character that ended one split cannot begin the
    next. So “x-y-z” is split only at its first hyphen. Like Perl, the function works on bytes:
    “x-ä-z”, whose middle letter has two bytes, is split at both hyphens.

    >>> split_compounds("a rich-text format , x-y-z , t-")
    'a rich ##AT##-##AT## text format , x ##AT##-##AT## y-z , t-'
    """
    raw = line.encode("utf-8", "surrogatepass")
    return _HYPHENATED.sub(rb"\1 ##AT##-##AT## \2", raw).decode("utf-8", "surrogatepass")


def paper_text(line: str, language: str) -> str:
    """Prepare a line for the paper's BLEU. Raises `MissingExtra` if sacremoses is not installed."""
    return split_compounds(tokenize(replace_unicode_punctuation(line), language))


class _PaperSignature(BLEUSignature):
    """The signature in sacreBLEU's notation."""

    def __init__(self, args: dict[str, Any]) -> None:
        super().__init__(args)
        case, smooth = self.info["case"], self.info["smooth"]
        for key in ("case", "eff", "tok", "smooth"):
            del self.info[key]
        steps = {
            "script": "get_ende_bleu",
            "case": case,
            "punct": "unicode",
            "tok": f"moses-{args['language']}",
            "split": "at-hyphen",
            "smooth": smooth,
            "sacremoses": version("sacremoses"),
        }
        for key, value in steps.items():
            self.update(key, value)


class PaperBLEU(BLEU):
    """
    The paper's BLEU as a sacreBLEU metric.

    `language`: code of the target language; a region is ignored. `lowercase`: whether case is
    ignored; the paper's scores are cased.

    Raises `MissingExtra` if sacremoses is not installed, `TextError` if Moses cannot tokenize the
    language.
    """

    _SIGNATURE_TYPE = _PaperSignature

    def __init__(self, references: References, language: str, *, lowercase: bool = False) -> None:
        self.language = language_code(language)
        if self.language in _UNSPACED:
            raise TextError(
                "The paper's BLEU needs a language with spaces between words, because Moses' "
                f"tokenizer relies on them, but the language is “{language}”; use sacreBLEU's "
                "score."
            )
        # Like multi-bleu.perl, tokens are not split further, and BLEU is not smoothed.
        super().__init__(
            tokenize="none",
            smooth_method="none",
            lowercase=lowercase,
            force=True,
            references=references,
        )

    def _preprocess_segment(self, sent: str) -> str:
        """Prepare a line; sacreBLEU calls this method for translations and references."""
        return str(super()._preprocess_segment(paper_text(sent, self.language)))
