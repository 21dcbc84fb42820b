"""A run folder with random weights, to measure models of any size without training."""

import random
from pathlib import Path

import torch

from heedful.config.schema import RunConfig
from heedful.experiments.work import spread_lengths
from heedful.model.initialize import initialize
from heedful.model.weights import named_weights
from heedful.runs.checkpoint import save_checkpoint
from heedful.runs.folder import RunFolder
from heedful.runs.machine_settings import ONE_THREAD
from heedful.runs.run import Run, write_config
from heedful.tokenization.tokenizer import END, Tokenizer
from heedful.tokenization.vocabulary import Vocabulary
from heedful.tokenization.vocabulary_model import VocabularyModel

_SPECIAL = 4


def make_random_run(folder: Path, config: RunConfig, vocabulary: int) -> Run:
    """Write a run with random weights and made-up words."""
    # The end symbol has a zero vector in the output matrix, so its logit is zero, and some word has
    # a positive logit. Therefore every translation, in any toolkit with these weights, continues to
    # the length limit.
    words = [f"w{number}" for number in range(vocabulary - _SPECIAL)]
    config = config.with_settings({"data.source_language": "xx", "data.target_language": "yy"})
    model_of_words = VocabularyModel(Vocabulary(words))
    tokenizer = Tokenizer(model_of_words, source_language="xx", target_language="yy")
    tokenizer.save(folder)
    run = Run(RunFolder(folder), config, tokenizer)
    write_config(run.folder, config, ONE_THREAD, {}, {})
    model = run.build()
    initialize(model, config.train.seed)
    with torch.no_grad():
        model.output.weight[END] = 0.0
    state = {"step": 1, **run.signature}
    save_checkpoint(run.folder.checkpoint(1), named_weights(model), None, state)
    return run


def random_lines(vocabulary: int, length: int, count: int, seed: int = 1) -> list[str]:
    """Make lines of made-up words. `length`: mean tokens per line, the end symbol included."""
    drawn = random.Random(seed)
    lengths = spread_lengths(length, count)
    drawn.shuffle(lengths)
    return [
        " ".join(f"w{drawn.randrange(vocabulary - _SPECIAL)}" for _ in range(max(1, n - 1)))
        for n in lengths
    ]
