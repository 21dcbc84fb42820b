"""The preparation benchmark, stage by stage, in its own process."""

import tempfile
from pathlib import Path
from typing import Any

from heedful.config.schema import RunConfig
from heedful.data.batching import Collator
from heedful.data.cleaning.filter import PairFilter
from heedful.data.encoded.dataset import JoinedPairs
from heedful.data.encoded.encode import encode_corpus
from heedful.experiments.process import time_repeats
from heedful.machine.devices import resolve_threads
from heedful.machine.memory import peak_memory
from heedful.preparation.find_training_data import find_text
from heedful.preparation.tokenizer import make_tokenizer
from heedful.runs.folder import RunFolder
from heedful.runs.machine_settings import ONE_THREAD
from heedful.runs.run import Run
from heedful.tokenization.tokenizer import END, PAD, START
from heedful.training.batches import TrainingPairs


def measure_preparing(request: dict[str, Any]) -> dict[str, Any]:
    """
    Time tokenizer training, encoding, and the batches of an epoch.

    Returns the number of `lines`, the seconds of each of the `stages`, and the peak `memory`.

    The timed functions are the same as in training. The tokenizer is trained only once, because
    this takes a long time.
    """
    threads = resolve_threads(request["threads"])
    text = find_text(request["source"], request["target"])
    config = text.configure(RunConfig.from_dict(request["settings"]))
    corpus = text.parts[0].corpus
    pairs = list(corpus.pairs())
    sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
    repeats, stages = request["repeats"], {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)

        def learn() -> None:
            make_tokenizer(config, corpus.source, corpus.target, None).save(folder)

        stages["learn subwords"] = time_repeats(learn, 1)
        tokenizer = make_tokenizer(config, corpus.source, corpus.target, folder)

        def cut() -> None:
            tokenizer.encode_source(sources)
            tokenizer.encode_target(targets)

        stages["cut into subwords"] = time_repeats(cut, repeats)
        lengths = PairFilter(config.data.max_length, config.data.max_length_ratio)

        def encode() -> None:
            encode_corpus(corpus, tokenizer, lengths, folder / "data", processes=threads)

        stages["read, clean, encode to disk"] = time_repeats(encode, repeats)
        encoded = encode_corpus(corpus, tokenizer, lengths, folder / "data", processes=threads)
        train = config.train
        order = TrainingPairs(
            JoinedPairs((encoded,)),
            Run(RunFolder(folder), config, tokenizer),
            ONE_THREAD.model_copy(
                update={"micro_batch_tokens": train.micro_batch_tokens or train.batch_tokens}
            ),
            Collator(PAD, START, END, config.model.source_end),
        )

        def batch() -> None:
            for rows in order.epoch(0):
                for part in order.cut(rows, ranks=1)[0]:
                    order.collate(part)

        stages["batch and pad an epoch"] = time_repeats(batch, repeats)
        memory = peak_memory()
    return {"lines": len(pairs), "stages": stages, "memory": memory}
