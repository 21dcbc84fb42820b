"""Folders of Hugging Face models with random weights, in the sizes of the most popular models."""

import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

PIECES = 8_000
"""Number of subwords that are learned from the text; further embeddings are placeholders."""
_BART_SYMBOLS = {
    "bos_token_id": 0,
    "pad_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
}


def subwords(lines: Sequence[str], **options: Any) -> bytes:
    """Learn a SentencePiece model, and return its bytes."""
    import sentencepiece

    buffer = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=buffer,
        vocab_size=PIECES,
        num_threads=1,
        minloglevel=2,
        hard_vocab_limit=False,
        **options,
    )
    return buffer.getvalue()


def pieces_of(content: bytes) -> list[str]:
    """List the subwords of a SentencePiece model, without its three special symbols."""
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_proto=content)
    return [processor.id_to_piece(n) for n in range(3, processor.get_piece_size())]


def marian(folder: Path, lines: Sequence[str]) -> int:
    """Write a model of the size of opus-mt-en-de."""
    from transformers import MarianConfig, MarianMTModel

    rows, content = 58_101, subwords(lines)
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(content)
    pieces = dict.fromkeys(pieces_of(content))
    names = [*_placeholder_names(["</s>", "<unk>", *pieces], rows - 1), "<pad>"]
    _write_json(folder / "vocab.json", {name: number for number, name in enumerate(names)})
    _write_json(
        folder / "tokenizer_config.json",
        {"source_lang": "en", "target_lang": "de", "model_max_length": 512},
    )
    special = {"pad_token_id": rows - 1, "eos_token_id": 0, "decoder_start_token_id": rows - 1}
    config = MarianConfig(
        vocab_size=rows,
        d_model=512,
        encoder_layers=6,
        decoder_layers=6,
        encoder_ffn_dim=2048,
        decoder_ffn_dim=2048,
        encoder_attention_heads=8,
        decoder_attention_heads=8,
        activation_function="swish",
        scale_embedding=True,
        forced_eos_token_id=0,
        **special,
    )
    return _save(MarianMTModel(config), folder, bad_words_ids=[[rows - 1]], **special)


def t5(folder: Path, lines: Sequence[str]) -> int:
    """Write a model of the size of t5-small."""
    from transformers import T5Config, T5ForConditionalGeneration

    content = subwords(lines, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    (folder / "spiece.model").write_bytes(content)
    _write_json(
        folder / "tokenizer_config.json",
        {"tokenizer_class": "T5Tokenizer", "extra_ids": 100, "model_max_length": 512},
    )
    model = T5ForConditionalGeneration(T5Config(vocab_size=32_128, decoder_start_token_id=0))
    return _save(model, folder, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0)


def bart(folder: Path, lines: Sequence[str]) -> int:
    """Write a model of the size of bart-base."""
    from tokenizers import Tokenizer, pre_tokenizers, trainers
    from tokenizers.models import BPE
    from transformers import BartConfig, BartForConditionalGeneration

    rows = 50_265
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=PIECES,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<s>", "<pad>", "</s>", "<unk>"],
        show_progress=False,
    )
    tokenizer.train_from_iterator(lines, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    names = _placeholder_names(sorted(model["vocab"], key=model["vocab"].get), rows - 1)
    _write_json(folder / "vocab.json", {name: n for n, name in enumerate([*names, "<mask>"])})
    merges = ["#version: 0.2", *map(" ".join, model["merges"])]
    (folder / "merges.txt").write_text("\n".join(merges) + "\n", encoding="utf-8")
    _write_json(folder / "tokenizer_config.json", {"tokenizer_class": "BartTokenizer"})
    network = BartForConditionalGeneration(
        BartConfig(
            vocab_size=rows,
            d_model=768,
            encoder_layers=6,
            decoder_layers=6,
            encoder_ffn_dim=3072,
            decoder_ffn_dim=3072,
            encoder_attention_heads=12,
            decoder_attention_heads=12,
        )
    )
    return _save(network, folder, **_BART_SYMBOLS, forced_bos_token_id=0)


def m2m100(folder: Path, lines: Sequence[str]) -> int:
    """Write a model of the size of m2m100_418M."""
    from transformers import M2M100Config, M2M100ForConditionalGeneration, M2M100Tokenizer

    content = subwords(lines)
    (folder / "sentencepiece.bpe.model").write_bytes(content)
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    names = _placeholder_names([*special, *pieces_of(content)], 128_004)  # the languages follow
    _write_json(folder / "vocab.json", {name: number for number, name in enumerate(names)})
    files = str(folder / "vocab.json"), str(folder / "sentencepiece.bpe.model")
    tokenizer = M2M100Tokenizer(*files, src_lang="en", tgt_lang="de")
    tokenizer.save_pretrained(folder)
    model = M2M100ForConditionalGeneration(
        M2M100Config(vocab_size=128_112, encoder_layerdrop=0.0, decoder_layerdrop=0.0)
    )
    german = tokenizer.get_lang_id("de")
    return _save(model, folder, **_BART_SYMBOLS, forced_bos_token_id=german)


def _placeholder_names(names: list[str], count: int) -> list[str]:
    """Add names of placeholders until there are `count` names."""
    return names + [f"row{n}" for n in range(count - len(names))]


def _save(model: Any, folder: Path, **search: Any) -> int:
    """
    Draw random weights, save the model, and count the weights. `search`: options of generation.

    The embedding of the padding token is zero, as in torch and in trained models. Marian's class
    begins a translation with this embedding, and CTranslate2 does not read it.
    """
    import torch
    from transformers import GenerationConfig

    model.generation_config = GenerationConfig(num_beams=4, max_length=32, **search)
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0.0, 0.02) if parameter.dim() > 1 else parameter
        for table in model.modules():
            if isinstance(table, torch.nn.Embedding) and table.padding_idx is not None:
                table.weight[table.padding_idx].zero_()
    model.eval().save_pretrained(folder)
    return sum(parameter.numel() for parameter in model.parameters())


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


MAKERS: dict[str, Callable[[Path, Sequence[str]], int]] = {
    "opus-mt-en-de": marian,
    "t5-small": t5,
    "bart-base": bart,
    "m2m100_418M": m2m100,
}
"""Functions that write the folder of a model and count its weights, by the model's name."""
