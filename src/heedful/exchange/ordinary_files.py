"""Refuses folders with pipes or devices, which would block the library that opens them."""

from pathlib import Path

from heedful.errors import ExchangeError


def check_ordinary_files(folder: Path) -> None:
    """Refuse a folder that holds pipes or devices, or links to them."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise ExchangeError(
                f"{folder} must contain only ordinary files, but {path.name} is a pipe or a "
                "device; copy the model again."
            )
