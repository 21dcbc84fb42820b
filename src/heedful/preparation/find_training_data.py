"""Training text that the user names: files, a corpora file, or prepared ids."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from heedful.arguments import Files
from heedful.errors import TextError
from heedful.preparation.corpora_file import CorpusPart, read_corpora
from heedful.preparation.prepared_text import PreparedText
from heedful.preparation.raw_text import RawText
from heedful.preparation.training_data import TrainingData, as_list
from heedful.tasks.task import TRANSLATION, Task
from heedful.text.corpus import Corpus, expand


def find_training_data(
    source: Files | None,
    target: Files | None,
    exclude: Files | None = None,
    data: str | Path | None = None,
    settings: Sequence[str] = (),
    corpora: str | Path | None = None,
    tokenizer: str | Path | None = None,
    task: Task = TRANSLATION,
    task_text: Files | None = None,
) -> TrainingData:
    """
    Find the training data that the arguments name.

    `task_text`: the text of a task that is not learned from text in two languages.

    Raises `TextError` if the text is named twice or not at all.
    """
    if task_text:
        if source or target or exclude or corpora or data:
            raise TextError(
                f"{task.alone}, but --source, --target, --corpora, --exclude or --data was given "
                "too; leave it out."
            )
        training_data: TrainingData = import_module(task.text).find_text(task_text, tokenizer)
        return training_data
    if data is not None:
        if source or target or exclude or corpora or tokenizer:
            raise TextError(
                f"--data {data} sets the text, the exclusions and the tokenizer, "
                "but --source, --target, --corpora, --exclude or --tokenizer "
                "was given too; give one or the other."
            )
        return PreparedText.open(data, settings)
    return find_text(source, target, exclude, corpora, tokenizer)


def find_text(
    source: Files | None,
    target: Files | None,
    exclude: Files | None = None,
    corpora: str | Path | None = None,
    tokenizer: str | Path | None = None,
) -> RawText:
    """Find unprepared training text; raise `TextError` if it is missing or named twice."""
    excluded = tuple(expand(as_list(exclude))) if exclude else ()
    if corpora is not None:
        if source or target:
            raise TextError(
                f"--corpora {corpora} names the text, but --source or --target "
                "was given too; give one or the other."
            )
        return RawText(tuple(read_corpora(Path(corpora))), excluded, tokenizer=tokenizer)
    if not source or not target:
        raise TextError(
            "Training needs text: both --source and --target, or --corpora with a file, or --data "
            "with a folder made by `heedful data prepare`, or `pairs` in Python."
        )
    corpus = Corpus(expand(as_list(source)), expand(as_list(target)))
    return RawText((CorpusPart("", corpus),), excluded, tokenizer=tokenizer)
