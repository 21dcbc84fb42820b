"""The version of heedful."""

__version__ = "0.1.0"
