"""Files that are not lines of text are refused with a command that makes text of them."""

import bz2
import gzip
import json
import lzma
import re
import subprocess
import sys
from pathlib import Path

import pytest

from heedful.errors import TextError
from heedful.text.corpus import expand
from heedful.text.no_text import ENDINGS, refuse_other_files

ROWS = [("Two dogs,\nhe said.", "Zwei Hunde, sagte er."), ('A "cat"', "Eine  „Katze“")]
EXPECTED = "Zwei Hunde, sagte er.\nEine „Katze“\n"


def refusal(name: object) -> str:
    with pytest.raises(TextError) as caught:
        expand([str(name)])
    assert "\n" not in str(caught.value)
    return str(caught.value)


def write_table(path: Path, encoding: str = "utf-8") -> None:
    """Write the rows as a list in JSON; packed if named so."""
    text = json.dumps([{"en": source, "de": target} for source, target in ROWS])
    openers = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
    with openers.get(path.suffix.lower(), open)(path, "wb") as file:
        file.write(text.encode(encoding))


@pytest.mark.parametrize(
    ("ending", "packing", "side", "encoding"),
    [
        (".json", "", 1, "utf-8"),
        (".JSON", "", 0, "utf-8-sig"),
        (".JSON", ".gz", 0, "utf-8"),
        (".json", ".GZ", 0, "utf-8-sig"),
        (".json", ".xz", 1, "utf-8"),
        (".json", ".bz2", 0, "utf-8"),
    ],
)
def test_the_command_of_the_message_makes_text(
    tmp_path: Path, ending: str, packing: str, side: int, encoding: str
) -> None:
    path, name = tmp_path / f"a table{ending}{packing}", ("en", "de")[side]
    write_table(path, encoding)
    message = refusal(f"{path}:{name}")
    assert f"{path} must hold one sentence per line, but its name says that it is" in message
    (command,) = re.findall(r"to a file of its own \((.*)\)[.,] ?", message)
    command = command.partition("), or save")[0].replace("python ", f"{sys.executable} ")
    done = subprocess.run(
        ["bash", "-c", command],
        check=True,
        cwd=tmp_path,
        env={"PYTHONUTF8": "1", "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0
    text = (tmp_path / f"a table.{name}").read_text(encoding="utf-8")
    assert text == "".join(f"{' '.join(row[side].split())}\n" for row in ROWS)


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_such_name_is_refused_and_others_are_not(tmp_path: Path, ending: str) -> None:
    for name in (f"x{ending}", f"x{ending.upper()}.gz"):
        (tmp_path / name).touch()
        assert "one sentence per line" in refusal(tmp_path / name)
    for name in (f"x{ending}.en", f"x{ending.replace('.', '_')}", "train.en.gz"):
        refuse_other_files(Path(name))


def test_what_cannot_be_read_by_lines_has_another_way_out(tmp_path: Path) -> None:
    for name, parts in {
        "s.xlsx": ("pandas.read_excel", "s.xlsx COLUMN > ", "such as pairs.csv:en"),
        "s.parquet": ("pandas.read_parquet",),
        "s.ods.gz": ("gzip -dk ", "pandas.read_excel"),
        "s.docx": ("heedful translate --input, or save it as plain text",),
        "s.pdf": ("(.pdf); save it as plain text",),
        "s.tar.gz": ("an archive", "unpack it"),
        "s.json": ("FIELD < ",),
    }.items():
        (tmp_path / name).touch()
        message = refusal(tmp_path / name)
        assert all(part in message for part in parts), message
