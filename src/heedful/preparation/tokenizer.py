"""The tokenizer of a run, trained on its text or given by the user."""

from collections.abc import Sequence
from pathlib import Path

from heedful.config.schema import RunConfig
from heedful.errors import RunFolderError, SettingError
from heedful.preparation.training_data import Say, has_subwords
from heedful.runs.folder import RunFolder
from heedful.text.file_formats import TextSource
from heedful.tokenization.from_files import could_have_given, tokenizer_from_files
from heedful.tokenization.tokenizer import SAMPLED_KINDS, Tokenizer
from heedful.tokenization.train import SubwordOptions


def make_tokenizer(
    config: RunConfig,
    sources: Sequence[TextSource],
    targets: Sequence[TextSource],
    tokenizer_path: str | Path | None,
    keep_target: bool = False,
    say: Say = lambda text: None,
) -> Tokenizer:
    """
    Train a tokenizer, or load one from files.

    `tokenizer_path`: a path for `tokenizer_from_files`; None to train. `keep_target`: whether the
    given tokenizer keeps its target symbols instead of receiving the symbols of the text.

    With a tokenizer from files, `data.subwords` has no effect.

    Raises `SettingError` if subwords are to be sampled but the tokenizer cannot sample. Raises
    `TokenizerError` if the text does not allow the settings, or if the given file is not a
    tokenizer.
    """
    data = config.data
    if tokenizer_path is None:
        _check_sampling(data.subword_sampling, data.subwords)
        return Tokenizer.train(
            sources,
            targets,
            kind=data.subwords,
            vocabulary_size=data.vocabulary_size,
            shared=data.shared_vocabulary,
            symbols=data.target_subwords == "symbols",
            source_language=data.source_language,
            target_language=data.target_language,
            seed=config.train.seed,
            options=SubwordOptions(
                character_coverage=data.character_coverage,
                normalization=data.normalization,
                at_most=config.reading == "own",  # the paper's vocabularies have exact sizes
                say=say,
            ),
        )
    tokenizer = tokenizer_from_files(
        Path(tokenizer_path),
        sources,
        targets,
        vocabulary_size=data.vocabulary_size,
        shared=data.shared_vocabulary,
        source_language=data.source_language,
        target_language=data.target_language,
        threshold=data.vocabulary_threshold,
        complete=data.subword_sampling > 0,
    )
    _check_sampling(data.subword_sampling, tokenizer.kind)
    if data.target_subwords == "symbols" and not keep_target:
        return tokenizer.with_symbols(targets)
    return tokenizer


def check_given_tokenizer(
    folder: RunFolder, tokenizer_path: str | Path | None, config: RunConfig, option: str
) -> None:
    """
    Refuse a tokenizer that differs from the one in the folder that is resumed.

    `tokenizer_path`: the user's tokenizer; None for the folder's own. `option`: the option that
    names the folder, for the message.
    """
    if tokenizer_path is None or not has_subwords(folder):
        return
    sides = 1 if config.data.target_subwords == "symbols" else 2
    own = Tokenizer.load(folder.path)
    if not could_have_given(Path(tokenizer_path), own, sides):
        raise RunFolderError(
            f"{option} must continue with the tokenizer of {folder.path}, but "
            f"--tokenizer {tokenizer_path} is a different one. Leave --tokenizer out, or name "
            "another folder with --out."
        )


def _check_sampling(sampling: float, kind: str) -> None:
    """Refuse subword sampling for tokenizers that have only one segmentation."""
    if sampling and kind not in SAMPLED_KINDS:
        raise SettingError(
            f"data.subword_sampling needs subwords of kind {' or '.join(SAMPLED_KINDS)}, but got "
            f"{sampling} with kind {kind}; set data.subword_sampling=0 or choose other subwords."
        )
