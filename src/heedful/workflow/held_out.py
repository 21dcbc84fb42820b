"""The held-out pairs of a training: which files, and what is in them."""

from hashlib import blake2b, file_digest
from pathlib import Path

from heedful.config.schema import RunConfig
from heedful.data.corpus import Corpus, expand
from heedful.errors import TextError
from heedful.workflow.material import Files, Sizes, listed, several


def held_out_corpus(source: Files | None, target: Files | None, config: RunConfig) -> Corpus | None:
    """
    Find the files of held-out pairs.

    Parameters
    ----------
    source, target : path, glob, or sequence of them, or None
        As given on the command line.
    config : RunConfig
        The settings, which may need a validation.

    Returns
    -------
    Corpus or None
        The files; None if there is to be no validation.

    Notes
    -----
    Raises `TextError` if one side is missing, or both are and `train.patience` needs them.
    """
    if source is None and target is None:
        if config.train.patience is not None:
            raise TextError(
                "train.patience waits for better validations and needs --valid-source and "
                "--valid-target, but there are none; give them or set train.patience=none."
            )
        return None
    if source is None or target is None:
        raise TextError("validation needs both --valid-source and --valid-target, or neither.")
    return Corpus(expand(several(source)), expand(several(target)))


def files_of(corpus: Corpus) -> Sizes:
    """List the held-out files as a run folder notes them, to know them again by their content."""
    return {
        name: [
            {**entry, "digest": _digest(text.path)}
            for entry, text in zip(listed(texts), texts, strict=True)
        ]
        for name, texts in (("valid_source", corpus.source), ("valid_target", corpus.target))
    }


def _digest(path: Path) -> str:
    """Digest a file; its size alone would let the validations of a run be of two texts."""
    with path.open("rb") as file:
        return file_digest(file, lambda: blake2b(digest_size=16)).hexdigest()


def read_held_out(corpus: Corpus | None) -> tuple[list[str], list[str]] | None:
    """
    Read the held-out pairs.

    Parameters
    ----------
    corpus : Corpus or None
        Their files.

    Returns
    -------
    tuple of two lists of str, or None
        Sources and references; None without a corpus.

    Notes
    -----
    Pairs with an empty line on either side are left out. Raises `TextError` if nothing is left.
    """
    if corpus is None:
        return None
    pairs = [(s, t) for s, t in corpus.pairs() if s.strip() and t.strip()]
    if not pairs:
        raise TextError("the validation files must hold pairs, but all their lines are empty.")
    return [s for s, _ in pairs], [t for _, t in pairs]
