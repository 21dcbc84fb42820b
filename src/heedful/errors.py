"""
Exceptions and their messages to the user.

::

    HeedfulError              exit 1   the run failed
    ├── TrainingFailed        exit 1   a loss that is not a number, a process that died
    ├── RunStopped            exit 1   a signal ended the run; it can be resumed
    ├── StorageError          exit 1   a file could not be written
    ├── DownloadError         exit 1   a file could not be fetched
    ├── MeasurementFailed     exit 1   a measured process returned no result
    ├── ParityFailed          exit 1   a converted model gives different results
    └── UserError             exit 2   the command or its input is wrong
        ├── SettingError               an unknown setting, a value out of range
        ├── ArgumentError              a Python argument of a wrong type; also a TypeError
        ├── TextError                  a text file that cannot be used
        ├── TokenizerError             subwords that cannot be trained or read
        ├── RunFolderError             a run folder that is missing, in use or damaged
        ├── ExchangeError              a model that cannot be converted from or to a toolkit
        ├── PluginError                a plugin that is missing, fails or differs from the run's
        ├── DeviceError                a device that is missing or too small
        └── MissingExtra               an optional package that is not installed

A message is one paragraph: the requirement, the value found, and the remedy. The command line
prints it and ends with the exit code of the class; it never shows a traceback for these exceptions.
"""

import re

# Control characters except tab and line feed, line separators, and characters that change the
# direction of writing: an untrusted file must not control how a message looks.
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)

# Number of characters shown from the beginning and from the end of a long message.
_LONGEST = (2400, 600)

_BREAK = re.compile(r"\s*\n\s*")


def escape_controls(text: str) -> str:
    r"""
    Escape control characters, and characters that change the direction of writing.

    >>> escape_controls("a\x1b[31m b\u202e")
    'a\\x1b[31m b\\u202e'
    """
    return _CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


class HeedfulError(Exception):
    """A failure that is reported in one paragraph."""

    exit_code = 1

    def __str__(self) -> str:
        """Return the message as one paragraph without control characters."""
        text = super().__str__()
        if len(text) > sum(_LONGEST):
            # A message begins with the problem and ends with the remedy.
            text = f"{text[: _LONGEST[0]]} … {text[-_LONGEST[1] :]}"
        return escape_controls(_BREAK.sub(" ", text))


class TrainingFailed(HeedfulError):
    """The training run cannot continue."""


class RunStopped(HeedfulError):
    """A signal ended the run after a checkpoint; it can be resumed."""


class StorageError(HeedfulError):
    """A file or folder could not be written or read; existing content is intact."""


class DownloadError(HeedfulError):
    """A file could not be downloaded; usually the same command resumes the download."""


class MeasurementFailed(HeedfulError):
    """A measurement process ended without a result."""


class ParityFailed(HeedfulError):
    """The results of a converted model differ from those of the original."""


class UserError(HeedfulError):
    """The command or its input is wrong."""

    exit_code = 2


class SettingError(UserError):
    """A setting is unknown or its value is out of range."""


class ArgumentError(UserError, TypeError):
    """A Python function was called with an argument of a wrong type."""


class TextError(UserError):
    """A text file cannot be used."""


class TokenizerError(UserError):
    """A tokenizer cannot be trained or read."""


class RunFolderError(UserError):
    """A run folder is missing, in use or damaged."""


class ExchangeError(UserError):
    """A toolkit's model cannot be read, or a heedful model does not fit the toolkit's format."""


class PluginError(UserError):
    """A plugin is missing, cannot be loaded, or differs from the plugin of a run."""


class DeviceError(UserError):
    """A device is not available or has too little memory."""


class MissingExtra(UserError):
    """An optional package is not installed."""
