"""Folders of BART's classes that transformers makes: small, random, laid out as on the hub."""

import io
import json
from functools import cache

import sentencepiece
import torch

from tests.support import marian

NLLB = ("eng_Latn", "fra_Latn", "deu_Latn", "zho_Hans", "zho_Hant")
ODD = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 20,
    "max_position_embeddings": 64,
    "encoder_layerdrop": 0.0,
    "decoder_layerdrop": 0.0,
}
RULE = {"num_beams": 3, "max_length": 14, "early_stopping": True, "length_penalty": 0.8}


@cache
def subwords(kind="unigram", size=300):
    """A sentencepiece model with the ids that fairseq's have."""
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([line for pair in marian.text() for line in pair]),
        model_writer=made,
        vocab_size=size,
        model_type=kind,
        num_threads=1,
        minloglevel=2,
        hard_vocab_limit=False,
    )
    return made.getvalue()


def write_m2m100(folder, cut="bpe", complete=False):
    """
    Files of `M2M100Tokenizer`; returns rows and the language that is forced.

    `cut`: how its subwords are made. `complete`: whether all of them have a row.
    """
    content = subwords(cut)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sentencepiece.bpe.model").write_bytes(content)
    processor = sentencepiece.SentencePieceProcessor(model_proto=content)
    # fairseq's dictionary has another order than the model, and leaves pieces out
    pieces = [processor.id_to_piece(n) for n in range(3, processor.get_piece_size())]
    names = ["<s>", "<pad>", "</s>", "<unk>", *reversed(pieces[5:])]
    names += pieces[: 5 if complete else 3]
    vocabulary = {name: number for number, name in enumerate(names)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    from transformers import M2M100Tokenizer

    files = str(folder / "vocab.json"), str(folder / "sentencepiece.bpe.model")
    tokenizer = M2M100Tokenizer(*files, src_lang="en", tgt_lang="fr")
    tokenizer.save_pretrained(folder)
    return len(names) + 100 + 8, tokenizer.get_lang_id("fr")


def write_fast(folder, name, kind, pair, codes=None, keep_model=True, **spelled):
    """Files of a tokenizer with `tokenizer.json`; returns rows and the token of the target."""
    import transformers

    folder.mkdir(parents=True, exist_ok=True)
    model = folder / "sentencepiece.bpe.model"
    model.write_bytes(subwords(kind))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name}))
    more = {} if codes is None else {"extra_special_tokens": list(codes)}
    languages = {"src_lang": pair[0], "tgt_lang": pair[1]}
    tokenizer = getattr(transformers, name).from_pretrained(folder, **languages, **more, **spelled)
    tokenizer.save_pretrained(folder)
    if not keep_model:
        model.unlink()
    return len(tokenizer) + 3, tokenizer.convert_tokens_to_ids(pair[1])


def searched(rule, generation):
    """Settings of a search; a greedy one may not have those of a beam."""
    rule = {**rule, **(generation or {})}
    of_beams = ("early_stopping", "length_penalty") if rule["num_beams"] == 1 else ()
    return {name: value for name, value in rule.items() if name not in of_beams}


def make(folder, kind, *, seed=1, spread=0.3, generation=None, keep_model=True, **shape):
    """Write a folder of `kind`: m2m100, nllb, mbart, mbart50 or bart."""
    import transformers

    if kind == "m2m100":
        rows, forced = write_m2m100(folder, **shape.pop("text", {}))
    elif kind == "nllb":
        rows, forced = write_fast(
            folder, "NllbTokenizer", "bpe", NLLB[:2], NLLB, keep_model, **shape.pop("spelled", {})
        )
    else:
        name = {"mbart": "MBartTokenizer", "mbart50": "MBart50Tokenizer"}[kind]
        rows, forced = write_fast(folder, name, "unigram", ("en_XX", "fr_XX"), None, keep_model)
    family = "M2M100" if kind in ("m2m100", "nllb") else "MBart"
    start = forced if kind == "mbart" else 2
    settings = {**ODD, "vocab_size": rows, "decoder_start_token_id": start, **shape}
    torch.manual_seed(seed)
    config = getattr(transformers, f"{family}Config")(**settings)
    model = getattr(transformers, f"{family}ForConditionalGeneration")(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter) * spread)
        if family == "MBart":
            model.final_logits_bias.copy_(torch.randn_like(model.final_logits_bias))
    rule = {**RULE, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": start}
    if kind != "mbart":
        rule["forced_bos_token_id"] = forced
    model.generation_config = transformers.GenerationConfig(**searched(rule, generation))
    model.save_pretrained(folder)
    return model
