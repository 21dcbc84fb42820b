"""A run folder with weights from elsewhere, such as weights from another toolkit."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heedful.config.schema import RunConfig
from heedful.runs.checkpoint import check_weights, save_checkpoint
from heedful.runs.folder import RunFolder
from heedful.runs.machine_settings import ONE_THREAD
from heedful.runs.run import Run, write_config
from heedful.tokenization.tokenizer import Tokenizer


def write_run(
    folder: Path,
    config: RunConfig,
    tokenizer: Tokenizer,
    weights: Mapping[str, Tensor],
    state: Mapping[str, Any],
    origin: Path,
) -> Run:
    """
    Write a run with one set of weights, at step 0, into an empty folder.

    `state`: further entries for the checkpoint's state. `origin`: file or folder that the weights
    come from, for messages. Raises `RunFolderError` for weights that do not fit the settings, and
    the errors of `Run.open` if the written run cannot be opened.
    """
    tokenizer.save(folder)
    run = Run(RunFolder(folder), config, tokenizer)
    write_config(run.folder, config, ONE_THREAD, {}, {})
    with torch.device("meta"):
        check_weights(run.build(), weights, origin)
    content = {"step": 0, **state, **run.signature}
    save_checkpoint(run.folder.checkpoint(0), weights, None, content)
    return Run.open(folder)
