"""Validation translates by the rules of a run's searches."""

import pytest
import torch

from heedful.config.schema import RunConfig
from heedful.errors import SettingError
from heedful.runs.folder import RunFolder
from heedful.runs.run import Run
from heedful.tokenization.tokenizer import Tokenizer
from heedful.training.validation import validator

SIZES = {"d_model": 8, "d_ff": 8, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}
LINES = ["ab ba", "ba", "ab"]


def run_with(tmp_path, **search):
    text = tmp_path / "text"
    text.write_text("ab ba\nba ab\nab ab ba\n" * 4)
    tokenizer = Tokenizer.train(
        [text],
        [text],
        kind="bpe",
        vocabulary_size=12,
        shared=True,
        source_language="en",
        target_language="fr",
        seed=1,
    )
    settings = {f"model.{name}": value for name, value in SIZES.items()}
    settings |= {f"search.{name}": value for name, value in search.items()}
    return Run(RunFolder(tmp_path / "run"), RunConfig().with_settings(settings), tokenizer)


def favorite(run):
    """A model that always writes one subword, and that subword."""
    model, token = run.build().eval(), run.tokenizer.encode_target(["ab"])[0][0]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        last = model.decoder.layers[-1].feed_forward_residual.norm
        last.bias.fill_(1.0)  # every state
        model.embed_target.weight[token] = 1.0
    return model, token


def samples_of(run, model):
    found = validator(model, run, run.collator(model), LINES, LINES)()
    return {sample["translation"] for sample in found["samples"]}


def test_a_forbidden_subword_is_not_written(tmp_path):
    free = run_with(tmp_path)
    model, token = favorite(free)
    written = free.tokenizer.decode([token]).strip()
    assert all(written in text for text in samples_of(free, model))
    bound = run_with(tmp_path, forbidden_ids=str(token))
    assert not any(written in text for text in samples_of(bound, model))


def test_a_forbidden_id_that_is_none_is_refused_before_training(tmp_path):
    run = run_with(tmp_path, forbidden_ids="999")
    model = run.build()
    with pytest.raises(SettingError, match="must be ids of the target"):
        validator(model, run, run.collator(model), LINES, LINES)


def test_held_out_text_is_read_as_text_to_translate_is(tmp_path):
    run = run_with(tmp_path)
    model, _ = favorite(run)

    def validated(lines):
        found = validator(model, run, run.collator(model), lines, lines)()
        return found["valid_loss"], [sample["translation"] for sample in found["samples"]]

    assert validated([" ab  ba", "ba\t", "\u3000ab"]) == validated(LINES)
