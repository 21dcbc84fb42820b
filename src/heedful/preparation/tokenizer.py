"""Which tokenizer a run gets: one learned from its text, or one that is there already."""

from pathlib import Path

from heedful.config.schema import RunConfig
from heedful.errors import SettingError
from heedful.text.corpus import Corpus
from heedful.tokenization.from_files import given_tokenizer
from heedful.tokenization.tokenizer import SAMPLED_KINDS, Tokenizer


def make_tokenizer(config: RunConfig, corpus: Corpus, given: str | Path | None) -> Tokenizer:
    """
    Learn subwords, or take over what is given.

    Parameters
    ----------
    config : RunConfig
        Settings of the run.
    corpus : Corpus
        Its text.
    given : str or Path or None
        What `given_tokenizer` reads; None to learn.

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
    if given is None:
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
    tokenizer = given_tokenizer(
        Path(given),
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
