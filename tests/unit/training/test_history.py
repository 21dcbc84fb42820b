import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.errors import RunFolderError
from heedful.runs.log_entries import read_entries
from heedful.training.history import TRAINING, read_history, validation_columns


def training(step, **values):
    return {"step": step, "loss": 2.0, "nll": 1.5, "seconds": step / 2, **values}


def write(path, *lines):
    path.write_text(
        "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
    )
    return path


def test_training_and_validation_lines_become_columns(tmp_path):
    path = write(
        tmp_path / "log.jsonl",
        training(50, target_tokens=1000, padding=0.1),
        {"step": 60, "valid_loss": 1.25, "valid_perplexity": 3.49, "bleu": 12.5},
        training(100, target_tokens=2000, padding=0.2),
        {"step": 120, "valid_loss": 1.0, "valid_perplexity": 2.72},
    )
    history = read_history(path)
    assert set(history.training) == set(TRAINING)
    assert set(history.validation) == set(validation_columns())
    assert history.training["step"].tolist() == [50, 100]
    assert history.training["padding"].tolist() == [0.1, 0.2]
    assert np.isnan(history.training["memory"]).all()
    assert history.validation["valid_loss"].tolist() == [1.25, 1.0]
    assert math.isnan(history.validation["bleu"][1])
    assert history.steps == 120
    assert history.last("target_tokens") == 2000
    assert history.last("memory") is None
    assert history.best("bleu") == (12.5, 60)
    assert history.best("valid_loss") == (1.0, 120)
    # Validations know no time: 60 lies a fifth of the way from 50 to 100, 25 half the way from 0.
    assert history.at_step("seconds", np.array([25.0, 60.0, 120.0])).tolist() == [12.5, 30, 50]


def test_the_loss_decides_between_equal_validations(tmp_path):
    scores = ((60, 1.25, 12.5), (120, 1.0, 12.5), (180, 1.0, 12.5), (240, 0.5, 12.0))
    lines = [{"step": step, "valid_loss": loss, "bleu": bleu} for step, loss, bleu in scores]
    assert read_history(write(tmp_path / "log.jsonl", *lines)).best("bleu") == (12.5, 120)


def test_a_half_line_at_the_end_is_left_out_silently_and_others_are_counted(tmp_path):
    path = tmp_path / "log.jsonl"
    lines = [
        json.dumps(training(1)),
        "not JSON",
        '["step", 2]',
        '{"step": "3"}',
        '{"step": true}',
        '{"step": -4}',
        '{"step": 1.5}',
        "[" * 100_000,
        "",
        json.dumps(training(2)),
        '{"step": 3, "lo',
    ]
    path.write_bytes("\n".join(lines).encode() + b"\xff")
    history = read_history(path)
    assert history.training["step"].tolist() == [1, 2]
    assert history.unreadable == 7
    path.write_text(json.dumps(training(5)))  # whole, but its end is not yet written
    assert read_history(path).training["step"].tolist() == [5]


def test_an_infinite_loss_is_not_a_number_here_and_refused_steps_are_listed(tmp_path):
    path = write(
        tmp_path / "log.jsonl",
        training(1, loss=None),
        '{"step": 2, "loss": Infinity, "nll": "high", "seconds": 1}',
        {"step": 3, "refused": {"loss": "nan", "pairs": [7]}},
    )
    history = read_history(path)
    assert history.refused == (3,)
    assert history.training["step"].tolist() == [1, 2]
    assert not np.isfinite(history.training["loss"]).any()
    assert history.last("loss") is None


def test_an_empty_log_is_no_error_and_a_missing_one_is(tmp_path):
    history = read_history(write(tmp_path / "log.jsonl"))
    assert history.steps == 0
    assert history.best("bleu") is None
    with pytest.raises(RunFolderError, match=r"missing\.jsonl cannot be read: No such file"):
        read_history(tmp_path / "missing.jsonl")
    with pytest.raises(RunFolderError, match="cannot be read"):
        list(read_entries(tmp_path))


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=30))
def test_where_steps_go_back_the_later_line_counts(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("log") / "log.jsonl"
    kept = {True: {}, False: {}}
    for number, (step, is_validation) in enumerate(lines):
        kind = {earlier: n for earlier, n in kept[is_validation].items() if earlier < step}
        kept[is_validation] = {**kind, step: number}
    write(
        path,
        *(
            {"step": step, "valid_loss": number}
            if is_validation
            else {"step": step, "loss": number}
            for number, (step, is_validation) in enumerate(lines)
        ),
    )
    history = read_history(path)
    for columns, name, is_validation in (
        (history.training, "loss", False),
        (history.validation, "valid_loss", True),
    ):
        assert dict(zip(columns["step"], columns[name], strict=True)) == kept[is_validation]


def test_a_long_log_takes_eight_bytes_a_number(tmp_path):
    line = json.dumps(training(0, learning_rate=1e-4)).replace('"step": 0', '"step": {}')
    path = tmp_path / "log.jsonl"
    path.write_text("".join(line.replace("{}", str(step)) + "\n" for step in range(1, 20_001)))
    history = read_history(path)
    assert history.steps == 20_000
    assert sum(column.nbytes for column in history.training.values()) == 20_000 * 8 * len(TRAINING)
