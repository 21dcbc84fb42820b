"""Marian folders that transformers makes: small, random, as OPUS-MT lays them out."""

import io
import json
from functools import cache

import sentencepiece
import torch

from heedful.data.toy_grammar.corpus import split_pairs

TAGS = (">>fr<<", ">>fr_CA<<")


@cache
def drawn():
    """Drawn once: with types checked at every call it takes seconds."""
    return split_pairs(600, 8, seed=3)[0]


def text(count=600):
    """Pairs of sentences."""
    return drawn()[:count]


@cache
def subwords(side, size):
    """A sentencepiece model with the special ids that OPUS-MT's have."""
    lines = [pair[side] for pair in text()]
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=made,
        vocab_size=size,
        num_threads=1,
        minloglevel=2,
        hard_vocab_limit=False,
    )
    return made.getvalue()


def vocabulary(*models, tags=()):
    """End and unknown first, padding last, as Marian numbers them."""
    pieces = list(tags)
    for content in models:
        processor = sentencepiece.SentencePieceProcessor(model_proto=content)
        pieces += [processor.id_to_piece(n) for n in range(3, processor.get_piece_size())]
    names = ["</s>", "<unk>", *dict.fromkeys(pieces), "<pad>"]
    return {name: number for number, name in enumerate(names)}


def make(folder, *, separate=False, tags=(), generation=None, seed=1, spread=0.3, rows=0, **shape):
    """Write a folder; settings that are not given are small."""
    # Here, for it takes seconds, and every worker collects every file.
    from transformers import GenerationConfig, MarianConfig, MarianMTModel, MarianTokenizer

    folder.mkdir(parents=True, exist_ok=True)
    sides = [subwords(0, 170), subwords(1, 150)]
    for name, content in zip(("source.spm", "target.spm"), sides, strict=True):
        (folder / name).write_bytes(content)
    lists = (
        [vocabulary(side) for side in sides] if separate else [vocabulary(*sides, tags=tags)] * 2
    )
    for name, numbers in zip(("vocab.json", "target_vocab.json"), lists, strict=True):
        if separate or name == "vocab.json":
            (folder / name).write_text(json.dumps(numbers), encoding="utf-8")
    files = {"target_vocab_file": str(folder / "target_vocab.json")} if separate else {}
    MarianTokenizer(
        str(folder / "source.spm"),
        str(folder / "target.spm"),
        str(folder / "vocab.json"),
        source_lang="en",
        target_lang="fr",
        separate_vocabs=separate,
        **files,
    ).save_pretrained(folder)
    pad = lists[1]["<pad>"]
    settings = {
        "vocab_size": len(lists[0]) + rows,
        "decoder_vocab_size": len(lists[1]) + rows,
        "share_encoder_decoder_embeddings": not separate,
        "d_model": 16,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 24,
        "max_position_embeddings": 64,
        "activation_function": "swish",
        "scale_embedding": True,
        "static_position_embeddings": True,
        "pad_token_id": pad,
        "eos_token_id": 0,
        "decoder_start_token_id": pad,
        "forced_eos_token_id": 0,
    }
    torch.manual_seed(seed)
    model = MarianMTModel(MarianConfig(**{**settings, **shape}))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter) * spread)
        model.final_logits_bias.copy_(torch.randn_like(model.final_logits_bias))
    rule = {
        "num_beams": 4,
        "max_length": 14,
        "bad_words_ids": [[pad]],
        "forced_eos_token_id": 0,
        "renormalize_logits": True,
        "pad_token_id": pad,
        "eos_token_id": 0,
        "decoder_start_token_id": pad,
    }
    model.generation_config = GenerationConfig(**{**rule, **(generation or {})})
    model.save_pretrained(folder)
    return model
