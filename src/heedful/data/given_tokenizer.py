"""A tokenizer out of what somebody already cuts text with, instead of learning one."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from heedful.data.formats.text import Text
from heedful.data.subwords.given import CodesFile, read_given
from heedful.data.subwords.listed_model import learn_codes_vocabulary, learn_word_vocabulary
from heedful.data.subwords.sentencepiece_model import SentencePieceModel
from heedful.data.subwords.subword_model import (
    Learn,
    SubwordModel,
    models_of_sides,
    share_vocabulary,
)
from heedful.data.subwords.tokenizer_files import read_models
from heedful.data.tokenizer import Tokenizer
from heedful.errors import TokenizerError


def given_tokenizer(
    path: Path,
    source_files: Sequence[Text | Path],
    target_files: Sequence[Text | Path],
    *,
    vocabulary_size: int,
    shared: bool,
    source_language: str,
    target_language: str,
    threshold: int = 0,
    complete: bool = False,
) -> Tokenizer:
    """
    Take over what somebody already cuts text with.

    Parameters
    ----------
    path : Path
        A folder with ``tokenizer.json``, a sentencepiece ``.model``, a codes file of
        subword-nmt, or a list of words. The first two are taken as they are; codes and words
        get their vocabulary from the text.
    source_files : sequence of Path
        Text of the source side.
    target_files : sequence of Path
        Text of the target side.
    vocabulary_size : int
        The most entries of a vocabulary that is made from the text, special ones included.
    shared : bool
        Whether both sides have one vocabulary.
    source_language : str
        Code of the source language, such as “en”.
    target_language : str
        Code of the target language.
    threshold : int, default 0
        Subwords of codes that the text has less often are split further.
    complete : bool, default False
        Whether subwords of codes that only sampling produces get entries too.

    Returns
    -------
    Tokenizer
        What was there, with these languages.

    Raises
    ------
    TokenizerError
        If the file is nothing of these, or says otherwise whether the sides share.
    RunFolderError
        If a file of the folder is missing or damaged.
    TextError
        If there is no such file, or the text is empty or cannot be read.

    Notes
    -----
    Text for codes and lists of words has to be tokenised already, as for subword-nmt.
    """
    path = Path(path)
    given = read_models(path)[0] if path.is_dir() else read_given(path)
    if isinstance(given, list | SentencePieceModel):
        models: list[SubwordModel] = given if isinstance(given, list) else [given]
        _check_shared(models, shared, path)
    else:
        learn: Learn
        if isinstance(given, CodesFile):
            learn = partial(
                learn_codes_vocabulary,
                given.content,
                vocabulary_size=vocabulary_size,
                threshold=threshold,
                complete=complete,
            )
        else:
            learn = partial(learn_word_vocabulary, given.words, vocabulary_size=vocabulary_size)
        languages = source_language, target_language
        models = models_of_sides(learn, source_files, target_files, shared, languages)
    return Tokenizer(*models, source_language=source_language, target_language=target_language)


def _check_shared(models: Sequence[SubwordModel], shared: bool, path: Path) -> None:
    """Refuse models that are shared though they should not be, or the other way round."""
    if shared != share_vocabulary(models):
        raise TokenizerError(
            f"data.shared_vocabulary must be {str(not shared).lower()} for the tokenizer in "
            f"{path}, which has {2 if shared else 1} of the two vocabularies that there can be, "
            f"but it is {str(shared).lower()}; set data.shared_vocabulary."
        )
