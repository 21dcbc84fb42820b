import json

import pytest

from heedful.runs.folder import RunFolder
from heedful.runs.origin import base_model

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def write(path, **content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


def extended(folder, before):
    write(RunFolder(folder).checkpoint(0) / "state.json", origin=str(before))


def test_a_run_names_the_model_of_the_hub_that_it_descends_from(tmp_path):
    first, longer, tuned = (tmp_path / name for name in ("first", "longer", "tuned"))
    write(first / "origin.json", run=f"org/model@{COMMIT}")
    extended(longer, first)
    write(tuned / "origin.json", run=str(longer))
    assert {base_model(folder) for folder in (first, longer, tuned)} == {"org/model"}


def test_a_converted_model_is_its_own_base(tmp_path):
    write(tmp_path / "run" / "hub.json", name="org/model", commit=COMMIT)
    write(tmp_path / "tuned" / "origin.json", run=str(tmp_path / "run"))
    assert base_model(tmp_path / "run") == base_model(tmp_path / "tuned") == "org/model"


@pytest.mark.parametrize("name", ["runs/en-fr", "org/model@main", "gone", "", 3, None])
def test_a_path_is_no_model_of_the_hub(tmp_path, name):
    write(tmp_path / "run" / "origin.json", run=name)
    assert base_model(tmp_path / "run") == ""


def test_runs_that_name_each_other_and_damaged_records_end(tmp_path):
    for name, before in (("a", "b"), ("b", "a")):
        write(tmp_path / name / "origin.json", run=str(tmp_path / before))
    assert base_model(tmp_path / "a") == ""
    (tmp_path / "a" / "origin.json").write_bytes(b"{")
    assert base_model(tmp_path / "b") == ""
    write(tmp_path / "a" / "hub.json", name="no name: of the hub")
    assert base_model(tmp_path / "a") == ""
