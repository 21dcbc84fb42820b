"""The members of an ensemble."""

from collections.abc import Sequence

from heedful.errors import RunFolderError
from heedful.runs.run import Run, flat_settings
from heedful.tasks.registry import tasks
from heedful.tasks.task import Task


def check_members(runs: Sequence[Run]) -> None:
    """Check that the members of an ensemble share subwords, direction and their task's settings."""
    if not runs:
        raise RunFolderError("a translator needs at least one run folder, but none was named.")
    first, *others = runs
    for member in others:
        for task in tasks():
            _check_shared(task, first, member)
        same_tokens = member.tokenizer.fingerprint == first.tokenizer.fingerprint
        if not same_tokens or member.config.model.source_end != first.config.model.source_end:
            what = "model.source_end" if same_tokens else "subwords"
            raise RunFolderError(
                "runs of an ensemble must have the same subwords and model.source_end, but "
                f"{first.folder.path} and {member.folder.path} differ in their {what}; train them "
                "on the same prepared text, or translate with one of them."
            )
        # with language tags the input chooses the direction; the settings name only one direction
        chosen = first.tokenizer.tags or first.tokenizer.languages
        if not chosen and first.direction.contradicts(member.direction):
            raise RunFolderError(
                "runs that translate together must have the same direction, but "
                f"{first.folder.path} translates {first.direction}, and {member.folder.path} "
                f"translates {member.direction}; leave one of them out."
            )


def _check_shared(task: Task, first: Run, second: Run) -> None:
    """Check the settings of a task that members must share."""
    settings = [flat_settings(run.config) for run in (first, second)]
    for name in task.shared:
        before, now = (values[name] for values in settings)
        if before != now:
            raise RunFolderError(
                f"{task.models} that work together must have the same {name}, but it is {before} "
                f"in {first.folder.path} and {now} in {second.folder.path}; use one alone."
            )
