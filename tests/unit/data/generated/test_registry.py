import shlex

import pytest

from heedful.config.recipes import recipe_names
from heedful.data.datasets.registry import CORPORA
from heedful.data.generated.registry import GENERATED

# A text per second at most: the grammar is written by tests/cli/test_data.py.
QUICK = ("dates", "kana")


def test_names_are_their_own_and_recipes_exist():
    assert not {*GENERATED} & {*CORPORA}
    for name, text in GENERATED.items():
        assert text.name == name
        assert text.recipe in recipe_names()


@pytest.mark.parametrize("name", QUICK)
def test_a_text_has_the_lines_it_promises_and_keeps_its_parts_apart(name, tmp_path):
    text = GENERATED[name]
    text.write(tmp_path)
    sides = text.sides(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {path.name for _, path in sides}
    lines = {path.name: path.read_text("utf-8").splitlines() for _, path in sides}
    assert [len(lines[path.name]) for _, path in sides] == [size for size, _ in sides]
    assert all(line and line == line.strip() for side in lines.values() for line in side)
    source, target = text.languages
    parts = [
        {*zip(lines[f"{part}.{source}"], lines[f"{part}.{target}"], strict=True)}
        for part in ("train", "valid", "test")
    ]
    assert sum(map(len, parts)) == len(set.union(*parts))  # no pair is in two of them
    characters = {*"".join(lines[f"train.{source}"] + lines[f"train.{target}"])}
    assert {*"".join(lines[f"test.{source}"] + lines[f"test.{target}"])} <= characters


@pytest.mark.parametrize("name", GENERATED)
def test_the_command_names_all_files(name, tmp_path):
    text = GENERATED[name]
    words = shlex.split(text.train_command(tmp_path / "a b"))
    assert words[:3] == ["heedful", "train", text.recipe]
    named = {path for _, path in text.sides(tmp_path / "a b") if path.stem != "test"}
    assert named == {tmp_path / "a b" / word.rpartition("/")[2] for word in words[4:11:2]}
    assert words[11:] == ["--out", f"runs/{name}"]
