"""Refused folders of BART's classes and their messages; tests/parity compares models."""

import json

import pytest

from heedful.errors import ExchangeError
from heedful.exchange.bart.read import read
from heedful.exchange.formats import ReadOptions
from tests.support.bart import make


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bart") / "nllb"
    make(folder, "nllb")
    return folder


@pytest.fixture
def changed(made, tmp_path):
    """Write the folder again, one of its settings files changed."""

    def change(name, edit):
        content = json.loads((made / name).read_text())
        edit(content)
        for path in made.iterdir():
            (tmp_path / path.name).symlink_to(path)
        (tmp_path / name).unlink()
        (tmp_path / name).write_text(json.dumps(content))
        return tmp_path

    return change


def complaint(folder):
    with pytest.raises(ExchangeError) as caught:
        read(folder, ReadOptions())
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("start", [[1, 2], {}, "x", 10**30, 5])
def test_a_start_that_is_no_special_symbol_is_refused(changed, start):
    folder = changed("generation_config.json", lambda s: s.update(decoder_start_token_id=start))
    assert (
        "decoder_start_token_id must be the id of the padding symbol, the end symbol or the start"
        in complaint(folder)
    )


@pytest.mark.parametrize("content", [["x"], {"a": 1}, None, 5])
def test_a_token_that_is_no_text_is_refused(changed, content):
    folder = changed("tokenizer.json", lambda s: s["added_tokens"][0].update(content=content))
    assert "must give each piece an id" in complaint(folder)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"pad_token_id": 3}, "pad_token_id of config.json must be 1, but is 3"),
        (
            {"tie_word_embeddings": False},
            "tie_word_embeddings is False, but the weights have no lm_head.weight",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_settings_that_the_weights_or_other_files_contradict_are_refused(changed, setting, message):
    assert message in complaint(changed("config.json", lambda s: s.update(setting)))
