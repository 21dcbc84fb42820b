"""The records in `config.json` after the settings: machine settings, training files, plugins."""

from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from heedful.plugins import NAME
from heedful.settings.field_types import Count, CountOrZero, Positive, written_as
from heedful.settings.table import SettingsTable


class _Record(SettingsTable):
    """A table that only heedful writes."""

    @model_validator(mode="before")
    @classmethod
    def _are_known(cls, values: Any) -> Any:
        """Refuse fields of a later version, which this version could not preserve."""
        if isinstance(values, dict) and (unknown := sorted(values.keys() - cls.model_fields)):
            raise ValueError(f"must not have {unknown[0]!r}, which this version does not know")
        return values


class MachineSettings(_Record):
    """
    Settings that are measured or chosen for the machine once, before the first step.

    `--resume` reads them and never measures again, because another choice would change the results.
    """

    table: ClassVar[str] = "choices"

    device: Annotated[str, written_as(r"cpu|cuda(:[0-9]+)?", "must be cpu, cuda or cuda:N")]
    """The device on which the run trains."""
    precision: Annotated[str, written_as("fp32|bf16", "must be fp32 or bf16")]
    """Precision of the matrix products."""
    threads: Count
    """Number of CPU threads."""
    micro_batch_tokens: Count
    """Maximum number of tokens per side that are processed at once."""
    ranks: Count = 1
    """Number of processes that train together."""
    torch: str = ""
    """Version of torch."""
    instructions: str = ""
    """What determines torch's kernels: the CPU's vector instructions, or the name of the GPU."""
    batches: Count = 1
    """Version of the batching algorithm; 1 for runs without a record of it."""
    loss: Annotated[str, written_as("plain|compiled", "must be plain or compiled")] = "plain"
    """How the softmax of the loss is computed; plain for runs without a record."""
    kernels: Annotated[
        str,
        written_as(
            r"torch|plain|tiles|compiled-[0-9]+", "must be torch, plain, tiles or compiled-N"
        ),
    ] = "plain"
    """How attention and dropout are computed in training; plain for runs without a record."""


ONE_THREAD = MachineSettings(device="cpu", precision="fp32", threads=1, micro_batch_tokens=1)
"""The machine settings of runs that were not trained by this program."""


class FileRecord(_Record):
    """Either the properties that identify a training file, or the weight of a corpus."""

    file: str = ""
    """Name of the file."""
    bytes: CountOrZero = 0
    """Size of the file in bytes."""
    part: str = ""
    """The part of the file that is read, such as a column."""
    tag: str = ""
    """The language tag that is prepended to each line of the file."""
    digest: str = ""
    """Digest of the content of the file."""
    weight: Positive = 1.0
    """The weight of a corpus in every epoch, relative to the weights of the other corpora."""


class PluginRecord(_Record):
    """The properties that identify a plugin."""

    name: Annotated[str, written_as(NAME, "must be the name of a Python file")]
    """Name of the file, and of its copy in the run folder."""
    sha256: Annotated[str, written_as("[0-9a-f]{64}", "must be a SHA-256")]
    """SHA-256 of the content of the file."""


class RecordedParts(SettingsTable):
    """The parts of `config.json` that are checked together with the settings."""

    choices: MachineSettings | None = None
    """The machine settings; None if the file does not have them."""
    corpus: dict[str, list[FileRecord]] = Field(default_factory=dict)
    """The files of each side of the text."""
    plugins: list[PluginRecord] = Field(default_factory=list)
    """The plugins that define parts named in the settings."""

    @classmethod
    def of(cls, content: dict[str, Any]) -> "RecordedParts":
        """Check these parts of a file; raises a `SettingError` that names each wrong field."""
        return cls(**{name: content[name] for name in cls.model_fields if name in content})
