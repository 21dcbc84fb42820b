"""
Files whose names show that they are not lines of text: tables, records and documents.

If they were read as lines, a model would be trained on headers, quotes and brackets without a
warning. The error message for such a file says how to convert it to text.
"""

import shlex
from pathlib import Path

from heedful.errors import TextError
from heedful.text.compression import UNPACKING, without_compression

# A program that writes one field of each object in a JSON list; the argument is the field's name.
_JSON = (
    'import json, sys; text = open(0, encoding="utf-8-sig"); '
    "[print(*row[sys.argv[1]].split()) for row in json.load(text)]"
)
# Suffixes of the functions by which pandas reads tables, such as `read_parquet`.
_READERS = {
    ".parquet": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".xlsx": "excel",
    ".xls": "excel",
    ".ods": "excel",
}
# Suffixes of documents that `heedful translate --input` translates.
_TRANSLATED = (".docx", ".odt", ".html", ".htm")
_DOCUMENTS = (*_TRANSLATED, ".rtf", ".pdf", ".epub")
_ARCHIVES = (".tar", ".tgz", ".tbz2", ".txz", ".zip", ".7z", ".rar")

ENDINGS = (".json", *_READERS, *_DOCUMENTS, *_ARCHIVES)
"""Suffixes of files that are not lines of text, without compression suffixes."""


def refuse_other_files(path: Path, part: str = "") -> None:
    """Raise `TextError` if a suffix shows that a file is not plain text; `part`: a column."""
    plain = without_compression(path)
    ending = plain.suffix.lower()
    if ending not in ENDINGS:
        return
    kind, advice = "a document", "save it as plain text and split the text into sentences"
    if ending in _TRANSLATED:
        advice = f"translate it as it is with heedful translate --input, or {advice}"
    if ending in _ARCHIVES:
        kind, advice = "an archive", "unpack it and give a text file from it"
    elif ending not in _DOCUMENTS:
        kind, what = ("data", "field") if ending == ".json" else ("a table", "column")
        name = part if part and not part.isdecimal() else what.upper()
        advice = f"write each {what} to a file of its own ({_command(path, plain, ending, name)})"
    if kind == "a table":
        advice += ", or save it as CSV and give its columns, such as pairs.csv:en"
    raise TextError(
        f"{path} must hold one sentence per line, but its name says that it is {kind} ({ending}); "
        f"{advice}. If it does hold one sentence per line, rename it."
    )


def _command(path: Path, plain: Path, ending: str, column: str) -> str:
    """Return a command that converts one column to text."""
    unpack = UNPACKING.get(path.suffix.lower(), "").partition(" ")[0]
    file, name = shlex.quote(str(path)), shlex.quote(column)
    output = shlex.quote(f"{plain.with_suffix('')}.{column}")
    if ending == ".json":
        program = f"python -c '{_JSON}' {name}"
        command = f"{unpack} -dc {file} | {program}" if unpack else f"{program} < {file}"
    else:
        script = (
            "import pandas, sys; [print(*str(text).split()) "
            f"for text in pandas.read_{_READERS[ending]}(sys.argv[1])[sys.argv[2]]]"
        )
        command = f"python -c '{script}' {shlex.quote(str(plain))} {name}"
        command = f"{unpack} -dk {file} && {command}" if unpack else command
    return f"{command} > {output}"
