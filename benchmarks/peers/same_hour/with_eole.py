"""Eole in `benchmarks.same_hour`: training on a CPU by its `Trainer`, translation by `predict`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import clock

NEVER = 10**9


def train(request: clock.Request) -> clock.Answer:
    """Train; the source of batches checks the clock between two steps."""
    import torch
    from eole import train_single
    from eole import trainer as toolkit
    from eole.config.run import TrainConfig

    torch.set_num_threads(request["threads"])
    counted, config = clock.TrainingClock(request), build_config(request)
    parameters = []

    class TimedTrainer(toolkit.Trainer):  # type: ignore[misc]
        def _accum_batches(self, iterator: Any) -> Iterator[Any]:
            parameters.append(clock.inner_parameters(self.model, ("emb", "generator")))
            counted.start()
            for number, batches in enumerate(super()._accum_batches(iterator), 1):
                yield batches
                if counted.tick(number):
                    self.model_saver.save(number)
                    counted.saved(Path(request["out"]) / f"step_{number}")
                if counted.over:
                    break

    toolkit.Trainer = TimedTrainer
    train_single.main(TrainConfig(**config), device_id=-1)
    return counted.answer(parameters[0], config)


def build_config(request: clock.Request) -> dict[str, Any]:
    """Convert settings to the toolkit's format."""
    settings, size = request["settings"], request["size"]
    prefix = clock.learn_subwords(settings["vocabulary"])
    _write_vocabulary(prefix)
    schedule = settings["schedule"]
    scale = {  # what the toolkit multiplies with its schedule to reach the highest rate
        "noam": (size["width"] * request["warmup"]) ** 0.5,
        "rsqrt": request["warmup"] ** 0.5,
        "cosine": 1.0,
    }
    return {
        "seed": request["seed"],
        "save_data": request["out"],
        "overwrite": True,
        "report_every": 1000,
        "src_vocab": f"{prefix}.txt",
        "tgt_vocab": f"{prefix}.txt",
        "src_vocab_size": settings["vocabulary"] + 8,
        "tgt_vocab_size": settings["vocabulary"] + 8,
        "vocab_size_multiple": 8,
        "share_vocab": True,
        "n_sample": 0,
        "data": {"corpus_1": {"path_src": "train.en", "path_tgt": "train.de"}},
        "transforms": ["sentencepiece", "filtertoolong"],
        "transforms_configs": {
            "sentencepiece": {
                "src_subword_model": f"{prefix}.model",
                "tgt_subword_model": f"{prefix}.model",
            },
            "filtertoolong": {"src_seq_length": 256, "tgt_seq_length": 256},
        },
        "training": {
            "model_path": request["out"],
            "keep_checkpoint": -1,
            "save_checkpoint_steps": NEVER,
            # one step more, because the clock must count the last step before the toolkit stops
            "train_steps": request["steps"] + 1 if schedule == "cosine" else NEVER,
            "valid_steps": NEVER,
            "world_size": 0,
            "gpu_ranks": [],
            "batch_type": "tokens",
            "batch_size": settings["batch"],
            "batch_size_multiple": 8,
            "compute_dtype": request["precision"],
            "use_amp": True,
            "optim": "adamw",
            "adam_beta2": settings["beta2"],
            "learning_rate": settings["rate"] * scale[schedule],
            "warmup_steps": request["warmup"],
            "decay_method": schedule,
            "bucket_size": 29_000,
            "num_workers": 2 - request["threads"],
            "prefetch_factor": 32,
            "dropout_steps": [0],
            "dropout": [settings["dropout"]],
            "attention_dropout": [0.1],
            "max_grad_norm": 0,
            "label_smoothing": 0.1,
            "param_init_method": "xavier_uniform",
            "normalization": "tokens",
        },
        "model": {
            "architecture": "transformer",
            "layers": size["layers"],
            "heads": size["heads"],
            "hidden_size": size["width"],
            "transformer_ff": size["inner"],
            "share_decoder_embeddings": True,
            "share_embeddings": True,
            "embeddings": {
                "word_vec_size": size["width"],
                "position_encoding_type": "SinusoidalInterleaved",
            },
        },
    }


def _write_vocabulary(prefix: str) -> None:
    """Convert the subwords with the toolkit's own command."""
    from eole.bin.tools.spm_to_vocab import SpmtoVocab

    with Path(f"{prefix}.vocab").open(encoding="utf-8") as lines:
        words = [f"{word}\t{count}\n" for word, count in SpmtoVocab.convert(lines)]
    Path(f"{prefix}.txt").write_text("".join(words), "utf-8")


def average(request: clock.Request) -> clock.Answer:
    """Average checkpoints; the toolkit itself has only a moving average during training."""
    import shutil

    from safetensors.torch import load_file, save_file

    name, paths = "model.00.safetensors", request["checkpoints"]
    shutil.copytree(paths[-1], request["average"], dirs_exist_ok=True)
    mean = clock.mean_of([load_file(Path(path) / name) for path in paths])
    save_file(mean, Path(request["average"]) / name)
    return {}


def translate(request: clock.Request) -> clock.Answer:
    """Translate a text with each checkpoint."""
    import torch
    from eole.bin.run.predict import predict
    from eole.config.run import PredictConfig

    torch.set_num_threads(request["threads"])
    for checkpoint, output in request["jobs"]:
        predict(
            PredictConfig(
                model_path=[f"./{checkpoint}"],
                src=request["source"],
                output=output,
                beam_size=request["beam"],
                length_penalty="avg",
                max_length=100,
                batch_size=64,
                compute_dtype="fp32",
                gpu_ranks=[],
                world_size=0,
            )
        )
    return {}


if __name__ == "__main__":
    clock.serve({"train": train, "average": average, "translate": translate})
