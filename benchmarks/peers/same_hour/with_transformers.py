"""`transformers` in `benchmarks.same_hour`: `Seq2SeqTrainer` trains a `MarianMTModel`."""

import json
from pathlib import Path
from typing import Any

import clock


def train(request: clock.Request) -> clock.Answer:
    """Train; a callback checks the clock after each step."""
    import torch
    from transformers import (
        DataCollatorForSeq2Seq,
        MarianConfig,
        MarianMTModel,
        Seq2SeqTrainer,
        Seq2SeqTrainingArguments,
        TrainerCallback,
        set_seed,
    )

    torch.set_num_threads(request["threads"])
    set_seed(request["seed"])
    tokenizer = build_tokenizer(request["settings"]["vocabulary"])
    counted, config = clock.TrainingClock(request), build_config(request, tokenizer)
    model = MarianMTModel(MarianConfig(**config["model"]))

    class Timed(TrainerCallback):  # type: ignore[misc]
        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            counted.start()

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if counted.tick(state.global_step):
                control.should_save = True
                counted.saved(Path(request["out"]) / f"checkpoint-{state.global_step}")
            control.should_training_stop |= counted.over

    trainer = Seq2SeqTrainer(
        model=model,
        args=Seq2SeqTrainingArguments(**config["training"]),
        train_dataset=_encode(tokenizer, "train"),
        data_collator=DataCollatorForSeq2Seq(tokenizer, model=model),
        processing_class=tokenizer,
        callbacks=[Timed()],
    )
    trainer.train()
    tables = ("shared", "embed_tokens", "embed_positions", "lm_head")
    return counted.answer(clock.inner_parameters(model, tables), config)


def build_tokenizer(size: int) -> Any:
    """Build the toolkit's tokenizer for one sentencepiece model of both sides."""
    import sentencepiece
    from transformers import MarianTokenizer

    prefix = clock.learn_subwords(size)
    pieces = sentencepiece.SentencePieceProcessor(model_file=f"{prefix}.model")
    names = [pieces.id_to_piece(number) for number in range(len(pieces))]
    special = ["</s>", "<unk>"]
    names = special + [name for name in names if name not in (*special, "<s>")] + ["<pad>"]
    vocabulary = Path(f"{prefix}.json")
    vocabulary.write_text(json.dumps({name: number for number, name in enumerate(names)}), "utf-8")
    model = f"{prefix}.model"
    return MarianTokenizer(source_spm=model, target_spm=model, vocab=str(vocabulary))


def build_config(request: clock.Request, tokenizer: Any) -> dict[str, Any]:
    """Convert settings to the toolkit's format."""
    settings, size = request["settings"], request["size"]
    sides = {
        f"{side}_{name}": size[value]
        for side in ("encoder", "decoder")
        for name, value in (
            ("layers", "layers"),
            ("attention_heads", "heads"),
            ("ffn_dim", "inner"),
        )
    }
    model = {
        **sides,
        "vocab_size": len(tokenizer),
        "d_model": size["width"],
        "dropout": settings["dropout"],
        "activation_function": settings["activation"],
        "scale_embedding": True,
        "max_position_embeddings": 256,
        "pad_token_id": tokenizer.pad_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "forced_eos_token_id": tokenizer.eos_token_id,
        "decoder_start_token_id": tokenizer.pad_token_id,
    }
    training = {
        "output_dir": request["out"],
        "per_device_train_batch_size": settings["batch"],
        "train_sampling_strategy": "group_by_length",
        "max_steps": request["steps"],
        "learning_rate": settings["rate"],
        "lr_scheduler_type": settings["schedule"],
        "warmup_steps": request["warmup"],
        "adam_beta2": settings["beta2"],
        "max_grad_norm": settings["clip"],
        "label_smoothing_factor": 0.1,
        "bf16": request["precision"] == "bf16",
        "use_cpu": True,
        "seed": request["seed"],
        "save_strategy": "no",
        "logging_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
    }
    return {"model": model, "training": training}


def _encode(tokenizer: Any, part: str) -> list[dict[str, Any]]:
    """Convert the pairs of a part to ids."""
    source, target = (
        Path(f"{part}.{language}").read_text("utf-8").splitlines() for language in ("en", "de")
    )
    encoded = tokenizer(source, text_target=target, truncation=True, max_length=256)
    names = ("input_ids", "attention_mask", "labels")
    columns = zip(*(encoded[name] for name in names), strict=True)
    return [dict(zip(names, row, strict=True)) for row in columns]


def average(request: clock.Request) -> clock.Answer:
    """Average checkpoints; the toolkit has no command for it."""
    from transformers import MarianMTModel

    models = [MarianMTModel.from_pretrained(path) for path in request["checkpoints"]]
    models[-1].load_state_dict(clock.mean_of([model.state_dict() for model in models]))
    models[-1].save_pretrained(request["average"])
    return {}


def translate(request: clock.Request) -> clock.Answer:
    """Translate a text with each checkpoint, in batches of sentences of similar length."""
    import torch
    from transformers import MarianMTModel

    torch.set_num_threads(request["threads"])
    tokenizer = build_tokenizer(request["settings"]["vocabulary"])
    lines = Path(request["source"]).read_text("utf-8").splitlines()
    order = sorted(range(len(lines)), key=lambda row: len(lines[row]))
    for checkpoint, output in request["jobs"]:
        model = MarianMTModel.from_pretrained(checkpoint).eval()
        translations = [""] * len(lines)
        for first in range(0, len(order), 64):
            rows = order[first : first + 64]
            batch = tokenizer([lines[row] for row in rows], return_tensors="pt", padding=True)
            ids = model.generate(
                **batch,
                num_beams=request["beam"],
                max_new_tokens=100,
                bad_words_ids=[[tokenizer.pad_token_id]],
            )
            texts = tokenizer.batch_decode(ids, skip_special_tokens=True)
            for row, text in zip(rows, texts, strict=True):
                translations[row] = " ".join(text.split())
        Path(output).write_text("".join(f"{line}\n" for line in translations), "utf-8")
    return {}


if __name__ == "__main__":
    clock.serve({"train": train, "average": average, "translate": translate})
