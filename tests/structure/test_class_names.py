"""No two classes of one name."""

import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]


def _names_of_several_classes(files: list[tuple[str, str]]) -> dict[str, list[str]]:
    """Map each name that stands for several classes to the files of these."""
    words = [re.findall(r"\bclass\s+(\w+)", source) for _, source in files]
    counts = Counter(word for of_file in words for word in of_file)
    homes = defaultdict(list)
    for (name, source), of_file in zip(files, words, strict=True):
        if all(counts[word] == 1 for word in of_file):  # without parsing, which takes long
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(name)
    return {name: files for name, files in homes.items() if len(files) > 1}


def test_no_two_classes_have_one_name():
    folders = ("src", "tests", "benchmarks")
    found = (path for folder in folders for path in ROOT.glob(f"{folder}/**/*.py"))
    files = sorted(path for path in found if ".venv" not in path.parts)  # what `make peers` made
    sources = [(str(file.relative_to(ROOT)), file.read_text(encoding="utf-8")) for file in files]
    assert len(sources) > 100
    assert _names_of_several_classes(sources) == {}


def test_classes_of_one_name_are_found():
    files = [
        ("a.py", "class Row: pass"),
        ("b.py", "def f():\n    class Row: pass\nclass Line: pass"),
        ("c.py", "class Page: pass\ndef f():\n    class Page: pass"),
        ("d.py", "class Word: pass\n# a class Word and a class Box\nclass Box: pass"),
    ]
    assert _names_of_several_classes(files) == {"Row": ["a.py", "b.py"], "Page": ["c.py", "c.py"]}
