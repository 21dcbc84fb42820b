"""T5 folders that transformers makes: small, with odd sizes, trained for some steps."""

import io
import json
from functools import cache

import sentencepiece
import torch

from tests.support.marian import text

PREFIX = "translate English to French: "
TASKS = {
    "translation_en_to_fr": {
        "early_stopping": True,
        "max_length": 30,
        "num_beams": 4,
        "prefix": PREFIX,
    },
    "summarization": {"no_repeat_ngram_size": 3, "prefix": "summarize: "},
}
SHAPE = {
    "d_model": 24,
    "d_kv": 5,
    "d_ff": 36,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "num_heads": 3,
    "relative_attention_num_buckets": 10,
    "relative_attention_max_distance": 12,
    "dropout_rate": 0.1,
}
GATED = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}


@cache
def subwords(size=200):
    """A sentencepiece model with the special ids of T5's."""
    lines = [line for pair in text() for line in pair] + [PREFIX + "summarize:"] * 9
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=made,
        vocab_size=size,
        character_coverage=1.0,
        model_type="unigram",
        normalization_rule_name="nmt_nfkc",
        num_threads=1,
        minloglevel=2,
        hard_vocab_limit=False,
        **{"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1},
    )
    return made.getvalue()


def make(
    folder,
    *,
    own_head=False,
    extra_ids=20,
    rows=3,
    seed=1,
    steps=0,
    spread=0.3,
    search=None,
    **shape,
):
    """Write a folder; return the model. `own_head`: an output that is not tied."""
    from transformers import GenerationConfig, T5Config, T5ForConditionalGeneration, T5Tokenizer

    folder.mkdir(parents=True, exist_ok=True)
    content = subwords()
    (folder / "spiece.model").write_bytes(content)
    pieces = sentencepiece.SentencePieceProcessor(model_proto=content).get_piece_size()
    torch.manual_seed(seed)
    config = T5Config(
        **{**SHAPE, **shape},
        vocab_size=pieces + extra_ids + rows,
        decoder_start_token_id=0,
        task_specific_params=TASKS,
    )
    model = T5ForConditionalGeneration(config)
    if own_head:
        model.lm_head.weight = torch.nn.Parameter(torch.randn_like(model.shared.weight) * 0.3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * spread)
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "T5Tokenizer", "extra_ids": extra_ids}), encoding="utf-8"
    )
    if steps:
        train(model, T5Tokenizer.from_pretrained(folder), steps)
    rule = {"num_beams": 1, "max_length": 14, **{"decoder_start_token_id": 0}, **(search or {})}
    model.generation_config = GenerationConfig(pad_token_id=0, eos_token_id=1, **rule)
    model.eval().save_pretrained(folder)
    return model


def train(model, tokenizer, steps):
    """Train on pairs of the toy grammar."""
    pairs = text()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    generator = torch.Generator().manual_seed(1)
    model.train()
    for _ in range(steps):
        chosen = [pairs[n] for n in torch.randint(len(pairs), (16,), generator=generator)]
        source = tokenizer([PREFIX + pair[0] for pair in chosen], padding=True, return_tensors="pt")
        target = tokenizer(
            [pair[1] for pair in chosen], padding=True, return_tensors="pt"
        ).input_ids
        loss = model(**source, labels=target.masked_fill(target == 0, -100)).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
