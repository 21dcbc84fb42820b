"""Which tokenizer a run gets: one learned from its text, or one that is there already."""

from pathlib import Path

from heedful.config.schema import RunConfig
from heedful.errors import SettingError
from heedful.text.corpus import Corpus
from heedful.tokenization.from_files import tokenizer_from_files
from heedful.tokenization.tokenizer import SAMPLED_KINDS, Tokenizer


def make_tokenizer(
    config: RunConfig, corpus: Corpus, tokenizer_path: str | Path | None
) -> Tokenizer:
    """
    Learn subwords, or take over what is given.

    Parameters
    ----------
    config : RunConfig
        Settings of the run.
    corpus : Corpus
        Its text.
    tokenizer_path : str or Path or None
        What `tokenizer_from_files` reads; None to learn.

    Returns
    -------
    Tokenizer
        Not yet saved.

    Raises
    ------
    SettingError
        If subwords are to be sampled that cannot be.
    TokenizerError
        If the text does not allow the settings, or what is given is no tokenizer.

    Notes
    -----
    With a tokenizer that is given, `data.subwords` says nothing.
    """
    data = config.data
    if tokenizer_path is None:
        _check_sampling(data.subword_sampling, data.subwords)
        return Tokenizer.train(
            corpus.source,
            corpus.target,
            kind=data.subwords,
            vocabulary_size=data.vocabulary_size,
            shared=data.shared_vocabulary,
            source_language=data.source_language,
            target_language=data.target_language,
            seed=config.train.seed,
        )
    tokenizer = tokenizer_from_files(
        Path(tokenizer_path),
        corpus.source,
        corpus.target,
        vocabulary_size=data.vocabulary_size,
        shared=data.shared_vocabulary,
        source_language=data.source_language,
        target_language=data.target_language,
        threshold=data.vocabulary_threshold,
        complete=data.subword_sampling > 0,
    )
    _check_sampling(data.subword_sampling, tokenizer.kind)
    return tokenizer


def _check_sampling(sampling: float, kind: str) -> None:
    """Refuse to sample what can be cut in one way only."""
    if sampling and kind not in SAMPLED_KINDS:
        raise SettingError(
            f"data.subword_sampling needs subwords of kind {', '.join(SAMPLED_KINDS)}, which can "
            f"be cut in several ways, but {sampling} came with kind {kind}; set "
            "data.subword_sampling=0 or choose other subwords."
        )
