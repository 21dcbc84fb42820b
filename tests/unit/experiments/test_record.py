"""Records are written in one schema and read again."""

import json

import pytest

from heedful.errors import RunFolderError
from heedful.experiments.record import Record, describe_this_machine


def test_a_record_is_read_as_it_was_written(tmp_path):
    outputs = {"base": ["ein Hund"]}
    record = Record("abc", "a machine", {"bleu": 30.5}, ["heedful bench"], outputs=outputs)
    record.write(tmp_path / "folder" / "record.json")
    assert Record.read(tmp_path / "folder" / "record.json") == record
    plain = json.loads((tmp_path / "folder" / "record.json").read_text("utf-8"))
    assert [*plain] == ["commit", "date", "machine", "commands", "measurements", "outputs"]
    assert record.origin == f"Machine: a machine. Commit abc, {record.date}."


@pytest.mark.parametrize("text", ["[1]", "{", '{"commit": "abc"}', '{"measured": 1}'])
def test_what_is_no_record_is_refused(tmp_path, text):
    (tmp_path / "record.json").write_text(text, encoding="utf-8")
    with pytest.raises(RunFolderError, match="must be a record of measurements"):
        Record.read(tmp_path / "record.json")


def test_a_machine_is_described_in_a_line():
    assert "torch" in describe_this_machine()
    assert "\n" not in describe_this_machine()
