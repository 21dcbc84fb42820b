"""Trained models of BART's classes: 200 of 200 translations equal, greedily and by beams."""

import pytest
import torch

from heedful.exchange.convert import export_model, import_model
from heedful.exchange.formats import ReadOptions
from tests.support.bart import make
from tests.support.byte_bart import make_bart
from tests.support.extended_bart import SAXON, extended
from tests.support.marian import text

PAIRS = text(600)
SEARCHES = {
    "greedy": {"num_beams": 1},
    "beam": {"num_beams": 4, "length_penalty": 1.4, "early_stopping": False},
}


def train(folder, kind, steps=400):
    """Train the model of a folder with transformers, on pairs that it then translates."""
    import transformers

    if kind == "bart":
        model = make_bart(folder, spread=0.0, d_model=32)
    else:
        model = make(folder, kind, spread=0.0, d_model=32)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    generator = torch.Generator().manual_seed(1)
    model.train()
    for _ in range(steps):
        chosen = [PAIRS[n] for n in torch.randint(len(PAIRS), (16,), generator=generator).tolist()]
        sources, targets = ([pair[side] for pair in chosen] for side in (0, 1))
        batch = tokenizer(sources, text_target=targets, return_tensors="pt", padding=True)
        labels = batch["labels"].masked_fill(batch["labels"] == 1, -100)
        batch = {name: batch[name] for name in ("input_ids", "attention_mask")}
        loss = model(**batch, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return model.eval(), loss.item()


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("kind", ["m2m100", "nllb", "mbart", "mbart50"])
def test_two_hundred_of_two_hundred_are_equal(tmp_path, kind, search):
    import transformers

    model, loss = train(tmp_path / "theirs", kind)
    assert loss < 2.0
    rule = {"max_length": 40, "pad_token_id": 1, "eos_token_id": 2}
    before = model.generation_config
    rule["decoder_start_token_id"] = before.decoder_start_token_id
    if before.forced_bos_token_id is not None:
        rule["forced_bos_token_id"] = before.forced_bos_token_id
    model.generation_config = transformers.GenerationConfig(**rule, **SEARCHES[search])
    model.save_pretrained(tmp_path / "theirs")
    lines = [pair[0] for pair in PAIRS[:200]]
    options = ReadOptions("en", "fr")
    report, _ = import_model(
        "huggingface", tmp_path / "theirs", tmp_path / "run", options=options, sentences=lines
    )
    assert report.parity.difference < 1e-5
    assert report.parity.same_tokens == report.parity.same_outputs == 200
    parity, _ = export_model(tmp_path / "run", "bart", tmp_path / "out", sentences=lines)
    assert parity.difference < 1e-5
    assert parity.same_tokens == parity.same_outputs == 200


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("kind", ["m2m100", "nllb", "mbart", "mbart50"])
def test_two_hundred_of_two_hundred_are_equal_with_a_further_language(tmp_path, kind, search):
    import transformers

    model, _ = train(tmp_path / "theirs", kind, steps=200)
    before = model.generation_config
    rule = {"max_length": 40, "pad_token_id": 1, "eos_token_id": 2, **SEARCHES[search]}
    rule["decoder_start_token_id"] = before.decoder_start_token_id
    model.generation_config = transformers.GenerationConfig(**rule)
    model.save_pretrained(tmp_path / "theirs")
    run = extended(tmp_path, kind)
    code = run.tokenizer.languages[-1]
    run.between("", code, ("", "")).tokenizer.save(tmp_path / "longer")
    lines = [*(pair[0] for pair in PAIRS[:160]), *SAXON]
    parity, _ = export_model(tmp_path / "longer", "bart", tmp_path / "out", sentences=lines)
    assert parity.difference < 1e-5
    assert parity.same_tokens == parity.same_outputs == len(lines) == 200
