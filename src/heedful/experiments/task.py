"""The systems, text and folder of a table."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from heedful.experiments.corpus import TableCorpus
from heedful.experiments.system import TableSystem, narrow

Equal = Literal["time", "steps"]


class TableTask(NamedTuple):
    """The training runs of a table, before their steps are planned."""

    recipe: str
    common: Sequence[str]
    """Settings of all systems, as `key=value`."""
    systems: Sequence[TableSystem]
    corpus: TableCorpus
    out: Path
    """The folder of the table."""
    equal: Equal
    """Whether all systems get equal time or equal steps."""
    share: float = 1.0
    """Share of the total budget; other training runs use the remaining budget."""
    validations: int | None = None
    """Number of validations in each training run; if None, it depends on the training time."""

    @property
    def trained(self) -> list[TableSystem]:
        """All systems except ensembles, which only translate."""
        return [system for system in self.systems if not system.members]

    def narrowed(self) -> "TableTask":
        """Return the task with the widths of the models divided by the factor of the corpus."""
        factor = self.corpus.narrow
        systems = [
            system._replace(settings=narrow(system.settings, factor)) for system in self.systems
        ]
        return self._replace(systems=systems)
