"""Trained models of BART's classes: 200 of 200 translations equal, greedily and by beams."""

import shutil

import pytest
import torch

from heedful.exchange.convert import export_model, import_model
from heedful.exchange.formats import ReadOptions
from tests.support.bart import make
from tests.support.extended_bart import SAXON, extended
from tests.support.marian import text

PAIRS = text(600)
SEARCHES = {
    "greedy": {"num_beams": 1},
    "beam": {"num_beams": 4, "length_penalty": 1.4, "early_stopping": False},
}


@pytest.fixture(scope="module", params=["m2m100", "nllb", "mbart", "mbart50"])
def trained(request, tmp_path_factory):
    """Train a model with transformers, on pairs that it then translates; give kind and folder."""
    import transformers

    folder = tmp_path_factory.mktemp(request.param) / "theirs"
    model = make(folder, request.param, spread=0.0, d_model=32)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    generator = torch.Generator().manual_seed(1)
    model.train()
    for _ in range(400):
        chosen = [PAIRS[n] for n in torch.randint(len(PAIRS), (16,), generator=generator).tolist()]
        sources, targets = ([pair[side] for pair in chosen] for side in (0, 1))
        batch = tokenizer(sources, text_target=targets, return_tensors="pt", padding=True)
        labels = batch["labels"].masked_fill(batch["labels"] == 1, -100)
        batch = {name: batch[name] for name in ("input_ids", "attention_mask")}
        loss = model(**batch, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert loss.item() < 2.0
    model.eval().save_pretrained(folder)
    return request.param, folder


def copy_with(search, trained, folder, first=None):
    """Copy the trained folder, and choose its search and the token that it forces first."""
    from transformers import GenerationConfig

    shutil.copytree(trained, folder)
    start = GenerationConfig.from_pretrained(trained).decoder_start_token_id
    rule = {"max_length": 40, "pad_token_id": 1, "eos_token_id": 2, **SEARCHES[search]}
    forced = {"decoder_start_token_id": start, "forced_bos_token_id": first}
    GenerationConfig(**rule, **forced).save_pretrained(folder)


@pytest.mark.parametrize("search", SEARCHES)
def test_two_hundred_of_two_hundred_are_equal(trained, tmp_path, search):
    from transformers import GenerationConfig

    first = GenerationConfig.from_pretrained(trained[1]).forced_bos_token_id
    copy_with(search, trained[1], tmp_path / "theirs", first)
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


def test_two_hundred_of_two_hundred_are_equal_with_a_further_language(trained, tmp_path):
    kind, folder = trained
    copy_with("beam", folder, tmp_path / "theirs")
    run = extended(tmp_path, kind)
    code = run.tokenizer.languages[-1]
    run.between("", code, ("", "")).tokenizer.save(tmp_path / "longer")
    lines = [*(pair[0] for pair in PAIRS[:160]), *SAXON]
    parity, _ = export_model(tmp_path / "longer", "bart", tmp_path / "out", sentences=lines)
    assert parity.difference < 1e-5
    assert parity.same_tokens == parity.same_outputs == len(lines) == 200
