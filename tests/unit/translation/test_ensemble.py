from pathlib import Path

import pytest

from heedful.config.schema import RunConfig
from heedful.errors import RunFolderError
from heedful.runs.folder import RunFolder
from heedful.runs.run import Run
from heedful.tokenization.tokenizer import Tokenizer
from heedful.tokenization.vocabulary import Vocabulary
from heedful.tokenization.vocabulary_model import VocabularyModel
from heedful.translation.ensemble import check_members


def run(name: str, source: str, target: str, tags: tuple[str, ...] = ()) -> Run:
    """A run over the same words as all others, without weights."""
    languages = {"data.source_language": source, "data.target_language": target}
    words = VocabularyModel(Vocabulary(["the", "dog", "le", "chien"], tags))
    tokenizer = Tokenizer(words, source_language=source, target_language=target)
    return Run(RunFolder(Path(name)), RunConfig().with_settings(languages), tokenizer)


def test_members_of_two_directions_are_refused_and_both_are_named() -> None:
    members = run("one", "en", "fr"), run("two", "en", "fr"), run("three", "fr", "en")
    check_members(members[:2])
    message = "one translates en to fr, and three translates fr to en; leave one of them out"
    with pytest.raises(RunFolderError, match=message):
        check_members(members)


def test_members_without_languages_or_with_a_region_work_together() -> None:
    check_members([run("one", "en", "fr"), run("two", "", ""), run("three", "en-GB", "fr")])


def test_members_with_language_tags_work_together_whatever_corpus_came_first() -> None:
    tags = (">>en<<", ">>fr<<")
    check_members([run("one", "en", "fr", tags), run("two", "fr", "en", tags)])
