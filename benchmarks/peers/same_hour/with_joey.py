"""Joey NMT in `benchmarks.same_hour`: trained by its `TrainManager`, translated by its search."""

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "joey"))

import clock
import toolkit


def train(request: clock.Request) -> clock.Answer:
    """Train; after each step, check the clock instead of validating."""
    import torch
    from joeynmt import training
    from joeynmt.helpers import make_model_dir

    torch.set_num_threads(request["threads"])
    counted, config = clock.TrainingClock(request), build_config(request)
    parameters = []

    class TimedManager(training.TrainManager):  # type: ignore[misc]
        def train_and_validate(self, train_data: Any, valid_data: Any) -> None:
            if request["precision"] == "bf16":  # the toolkit's own switch is for float16 on a GPU
                self.autocast = {"device_type": "cpu", "enabled": True, "dtype": torch.bfloat16}
            self.args = self.args._replace(validation_freq=1)
            parameters.append(
                clock.inner_parameters(self.model, ("_embed", "decoder.output_layer"))
            )
            counted.start()
            super().train_and_validate(train_data, valid_data)

        def _validate(self, valid_data: Any) -> None:
            if counted.tick(self.stats.steps):
                self._save_checkpoint(False, float("nan"))
                counted.saved(Path(self.model_dir) / f"{self.stats.steps}.ckpt")
            self.stats.is_max_update |= counted.over

    training.TrainManager = TimedManager
    out = Path(request["out"])
    make_model_dir(out, overwrite=True)
    (out / "config.yaml").write_text(json.dumps(config), "utf-8")  # JSON is YAML
    training.train(0, None, config, skip_test=True)
    written = json.loads((out / "config.yaml").read_text("utf-8"))
    return counted.answer(parameters[0], written)


def build_config(request: clock.Request) -> dict[str, Any]:
    """Convert settings to the toolkit's format."""
    settings, size = request["settings"], request["size"]
    ids = {f"{name}_id": number for number, name in enumerate(toolkit.SPECIAL)}
    kind = settings["subwords"]
    prefix = clock.learn_subwords(settings["vocabulary"], model_type=kind, **ids)
    _write_vocabulary(prefix)
    sides = {
        side: {
            "lang": language,
            "max_length": 256,
            "level": "bpe",
            "voc_file": f"{prefix}.txt",
            "tokenizer_type": "sentencepiece",
            "tokenizer_cfg": {"model_file": f"{prefix}.model", "alpha": settings["sampling"]},
        }
        for side, language in (("src", "en"), ("trg", "de"))
    }
    schedule = {
        "noam": {
            "learning_rate_factor": settings["rate"] * (size["width"] * request["warmup"]) ** 0.5
        },
        "warmupinversesquareroot": {"learning_rate": settings["rate"]},
    }
    side_of_model = toolkit.transformer(
        *(size[name] for name in ("layers", "heads", "width", "inner")),
        settings["dropout"],
        layer_norm=settings["norm"],
    )
    return {
        "name": "same_hour",
        "joeynmt_version": toolkit.VERSION,
        "model_dir": request["out"],
        "use_cuda": False,
        "fp16": False,
        "random_seed": request["seed"],
        "data": {
            "train": "train",
            "dev": "valid",
            "dataset_type": "plain",
            "special_symbols": toolkit.special_symbols(),
            **sides,
        },
        "testing": {
            "n_best": 1,
            "beam_size": request["beam"],
            "beam_alpha": 1.0,
            "batch_size": 64,
            "batch_type": "sentence",
            "max_output_length": 100,
        },
        "training": {
            "optimizer": "adam",
            "normalization": "tokens",
            "adam_betas": [0.9, settings["beta2"]],
            "scheduling": settings["schedule"],
            "learning_rate_min": 1e-8,
            "learning_rate_warmup": request["warmup"],
            **schedule[settings["schedule"]],
            "label_smoothing": 0.1,
            "loss": "crossentropy",
            "batch_size": settings["batch"],
            "batch_type": "token",
            "epochs": 10_000,
            "validation_freq": 1000,
            "logging_freq": 100,
            "keep_best_ckpts": -1,
            "overwrite": True,
            "shuffle": True,
        },
        "model": {
            "initializer": "xavier_uniform",
            "bias_initializer": "zeros",
            "embed_initializer": "xavier_uniform",
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": side_of_model,
            "decoder": side_of_model,
        },
    }


def _write_vocabulary(prefix: str) -> None:
    """Write the subwords in the toolkit's format."""
    import sentencepiece

    model = sentencepiece.SentencePieceProcessor(model_file=f"{prefix}.model")
    pieces = [model.id_to_piece(number) for number in range(len(model))]
    Path(f"{prefix}.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")


def average(request: clock.Request) -> clock.Answer:
    """Average checkpoints, as the toolkit's script `average_checkpoints.py` does."""
    import torch

    states = [torch.load(path, weights_only=False) for path in request["checkpoints"]]
    states[-1]["model_state"] = clock.mean_of([state["model_state"] for state in states])
    torch.save(states[-1], request["average"])
    return {}


def translate(request: clock.Request) -> clock.Answer:
    """Translate a text with each checkpoint."""
    import torch
    from joeynmt.config import parse_global_args
    from joeynmt.prediction import predict, prepare

    torch.set_num_threads(request["threads"])
    config = json.loads((Path(request["out"]) / "config.yaml").read_text("utf-8"))
    config["testing"]["load_model"] = request["jobs"][0][0]
    args = parse_global_args(config, rank=0, mode="translate")
    model, _, _, lines = prepare(args, rank=0, mode="translate")
    for line in Path(request["source"]).read_text("utf-8").splitlines():
        lines.set_item(line)
    for checkpoint, output in request["jobs"]:
        state = torch.load(checkpoint, weights_only=False)["model_state"]
        model.load_state_dict(state)
        _, _, hypotheses, *_ = predict(
            model=model,
            data=lines,
            compute_loss=False,
            device=args.device,
            rank=0,
            n_gpu=0,
            normalization="none",
            num_workers=0,
            args=args.test,
            autocast=args.autocast,
        )
        Path(output).write_text("".join(f"{line}\n" for line in hypotheses), "utf-8")
    return {}


if __name__ == "__main__":
    clock.serve({"train": train, "average": average, "translate": translate})
