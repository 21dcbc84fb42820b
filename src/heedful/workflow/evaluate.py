"""Score translations against references, from files."""

from collections.abc import Sequence
from pathlib import Path

from heedful.data.corpus import expand, one_file, read_lines
from heedful.data.formats import Text
from heedful.errors import TextError
from heedful.evaluation.bleu import Scores, evaluate_texts


def evaluate_files(
    hypothesis: Path,
    references: Sequence[str | Path],
    *,
    language: str = "",
    lowercase: bool = False,
) -> Scores:
    """
    Compute BLEU, chrF and TER of a file of translations.

    Parameters
    ----------
    hypothesis : Path
        Detokenised translations, one a line.
    references : sequence of path
        One or more files of references, line-aligned with it.
    language : str, optional
        Code of the target language; chooses sacreBLEU's tokeniser where that matters.
    lowercase : bool, default False
        Whether case is ignored.

    Returns
    -------
    Scores
        Each with the signature that says how it was computed.

    Notes
    -----
    Raises `TextError` naming both files if their line counts differ.
    """
    lines = _lines(one_file(hypothesis))
    sets = []
    for text in expand(references):
        reference = _lines(text)
        if len(reference) != len(lines):
            raise TextError(
                f"hypothesis and reference must have as many lines as each other, but {hypothesis} "
                f"has {len(lines):,} and {text} has {len(reference):,}."
            )
        sets.append(reference)
    return evaluate_texts(lines, sets, language=language, lowercase=lowercase)


def _lines(text: Text) -> list[str]:
    """Read all lines of a text that must not be empty."""
    lines = list(read_lines(text))
    if not lines:
        raise TextError(f"{text} must hold one sentence a line, but is empty.")
    return lines
