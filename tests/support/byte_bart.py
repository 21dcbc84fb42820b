"""Folders of BART itself, with byte-level subwords, that transformers makes: small and odd."""

import json
from functools import cache

import torch

from tests.support import marian
from tests.support.bart import ODD, RULE, searched


@cache
def merges_of(count=150):
    """Byte-level vocabulary and merges of the toy grammar, in the order of the class."""
    from tokenizers import Tokenizer, pre_tokenizers, trainers
    from tokenizers.models import BPE

    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.BpeTrainer(
        vocab_size=260 + count,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=special,
    )
    tokenizer.train_from_iterator([line for pair in marian.text() for line in pair], trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return {**model["vocab"], "<mask>": len(model["vocab"])}, model["merges"]


def write_bytes(folder, whole=False, **spelled):
    """Files of `BartTokenizer`, old ones or one as a whole; returns rows."""
    from transformers import BartTokenizer

    folder.mkdir(parents=True, exist_ok=True)
    numbers, merges = merges_of()
    (folder / "vocab.json").write_text(json.dumps(numbers), encoding="utf-8")
    lines = ["#version: 0.2", *(" ".join(pair) for pair in merges)]
    (folder / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "BartTokenizer", **spelled}), encoding="utf-8"
    )
    if whole:
        BartTokenizer.from_pretrained(folder).save_pretrained(folder)
        for name in ("vocab.json", "merges.txt"):
            (folder / name).unlink()
    return len(numbers)


def make_bart(folder, *, seed=1, spread=0.3, steps=0, generation=None, whole=False, **settings):
    """Write a folder of BART itself; returns the model."""
    import transformers

    spelled = settings.pop("spelled", {})
    rows = write_bytes(folder, whole, **spelled) + settings.pop("rows", 3)
    torch.manual_seed(seed)
    config = transformers.BartConfig(**{**ODD, "vocab_size": rows, **settings})
    model = transformers.BartForConditionalGeneration(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * spread)
        model.final_logits_bias.copy_(torch.randn_like(model.final_logits_bias) * spread)
    if steps:
        train(model, transformers.BartTokenizer.from_pretrained(folder), steps)
    special = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
    rule = {
        **RULE,
        **special,
        "decoder_start_token_id": 2,
        "forced_bos_token_id": 0,
        "forced_eos_token_id": 2,
    }
    model.generation_config = transformers.GenerationConfig(**searched(rule, generation))
    model.eval().save_pretrained(folder)
    return model


def train(model, tokenizer, steps):
    """Train on pairs of the toy grammar."""
    pairs = marian.text()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    generator = torch.Generator().manual_seed(1)
    model.train()
    for _ in range(steps):
        chosen = [pairs[n] for n in torch.randint(len(pairs), (16,), generator=generator)]
        source = tokenizer([pair[0] for pair in chosen], padding=True, return_tensors="pt")
        target = tokenizer(
            text_target=[pair[1] for pair in chosen], padding=True, return_tensors="pt"
        ).input_ids
        labels = target.masked_fill(target == tokenizer.pad_token_id, -100)
        loss = model(**source, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
