from pathlib import Path

import pytest

from heedful.experiments.corpus import TableCorpus
from heedful.paper.claims.trainings import Trainings

SOURCES = ["a", "b", "a b", "c d", "a b c", "d e f", "a b c d e", "f e d c b a"]
TARGETS = [" ".join(f"{word}{word} is one of these" for word in line.split()) for line in SOURCES]


@pytest.fixture
def trainings(tmp_path, make):
    """A function that makes trainings of systems that translated so many of the lines well."""
    corpus = TableCorpus(tmp_path / "text", "xx", "yy", 100)
    corpus.folder.mkdir()
    for language, lines in (("xx", SOURCES), ("yy", TARGETS)):
        for part in ("train", "test"):
            corpus.file(part, language).write_text("".join(f"{line}\n" for line in lines), "utf-8")

    def made(good: dict[str, int], folder: str = "out", **changed) -> Trainings:
        output: Path = tmp_path / folder / "output"
        output.mkdir(parents=True)
        for name, count in good.items():
            lines = [*TARGETS[:count], *("nothing" for _ in TARGETS[count:])]
            (output / f"{name}.test.txt").write_text(
                "".join(f"{line}\n" for line in lines), "utf-8"
            )
        systems = {name: make(name, **changed.get(name, {})) for name in good}
        return Trainings(systems, corpus, tmp_path / folder)

    return made
