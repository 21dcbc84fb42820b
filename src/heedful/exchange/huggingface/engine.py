"""A model run by Hugging Face's transformers as one side of a parity check, with our token ids."""

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy, deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from heedful.errors import ExchangeError
from heedful.exchange.extras import import_extra
from heedful.exchange.huggingface.weights import has_safetensors
from heedful.exchange.parity import Ids
from heedful.tokenization.id_mapping import IdMapping
from heedful.tokenization.imported_model import ImportedModel
from heedful.tokenization.special_symbols import END, PAD, START
from heedful.tokenization.tokenizer import Tokenizer

_PURPOSE = "Comparing with a Hugging Face model"


class TransformersReference:
    """
    A model of one of Hugging Face's classes.

    `model_class`, `tokenizer_class`: names in transformers. `search`: settings of `generate` in
    addition to the folder's. `languages`: languages by the tokenizer attributes that they set, such
    as ``src_lang``. Nothing is downloaded and no code in the folder is run. Padding and the start
    symbol are never generated, as in heedful. Raises `MissingExtra` if transformers is not
    installed.
    """

    def __init__(
        self,
        path: Path,
        tokenizer: Tokenizer,
        model_class: str,
        tokenizer_class: str,
        search: Mapping[str, Any] | None = None,
        languages: Mapping[str, str] | None = None,
    ) -> None:
        transformers = import_extra("transformers", _PURPOSE)
        self._path, self._prefix = path, tokenizer.source_prefix
        self._search = dict(search or {})
        self.name = f"transformers {transformers.__version__}"
        with _quietly(), _as_paragraph(path):
            # Our restricted reader has read any pickle before transformers opens it.
            self._model = (
                getattr(transformers, model_class)
                .from_pretrained(
                    path,
                    local_files_only=True,
                    use_safetensors=has_safetensors(path),
                    dtype=torch.float32,
                )
                .eval()
            )
            self._tokenizer = getattr(transformers, tokenizer_class).from_pretrained(
                path, local_files_only=True
            )
            # MBart50Tokenizer accepts added languages only after it is loaded
            for name, language in (languages or {}).items():
                setattr(self._tokenizer, name, language)
        # Special tokens after a source text always include the end symbol.
        ends_itself = tokenizer.around_source[1] > 0
        self._ending: list[int] = [] if ends_itself else [END]
        self._source, self._target = (numbering_of(tokenizer, side) for side in (0, 1))
        self._size = tokenizer.target_size

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """Tokenize source sentences; remove the end symbol, unless our tokenizer also adds it."""
        with _as_paragraph(self._path):
            rows = self._tokenizer([self._prefix + line for line in sentences]).input_ids
        most = -1 if self._ending else None
        return [self._source.to_ours(row[:most]) for row in rows]

    def in_double(self) -> "TransformersReference":
        """Create a copy that computes in double precision."""
        side = copy(self)
        side._model = deepcopy(self._model).double()
        for norm in side._model.modules():
            if hasattr(norm, "variance_epsilon"):  # T5's norm, which computes in fp32 for any input
                shape, epsilon = norm.weight.shape, norm.variance_epsilon
                norm.forward = partial(_rms_norm, shape, norm.weight, epsilon)
        return side

    @torch.inference_mode()
    def log_probabilities(self, source: Ids, target: Ids) -> np.ndarray:
        """Compute log-probabilities in one pass; missing symbols get minus infinity."""
        start = self._model.generation_config.decoder_start_token_id
        start = self._model.config.decoder_start_token_id if start is None else start
        start = self._search.get("decoder_start_token_id", start)
        logits = self._model(
            input_ids=torch.tensor([self._source.to_theirs([*source, *self._ending])]),
            decoder_input_ids=torch.tensor([[start, *self._target.to_theirs(target)]]),
        ).logits[0]
        scores = torch.log_softmax(logits, dim=-1)
        ours = scores.new_full((len(scores), self._size), float("-inf"))
        pairs = [(n, their) for n, their in enumerate(self._target.origins) if their is not None]
        here, there = torch.tensor(pairs).T
        ours[:, here] = scores[:, there]
        return ours.numpy()

    @torch.inference_mode()
    def outputs(self, sentences: Sequence[str]) -> list[list[int]]:
        """Translate sentences one by one with `generate`, so that padding has no effect."""
        search = dict(self._search)
        bad_words = search.pop("bad_words_ids", self._model.generation_config.bad_words_ids) or []
        ours = [self._target.origins[number] for number in (PAD, START)]
        never = [[number] for number in ours if number is not None and [number] not in bad_words]
        end = self._target.origins[END]
        translations = []
        for sentence in sentences:
            with _quietly(), _as_paragraph(self._path):
                rows = self._tokenizer([self._prefix + sentence], return_tensors="pt")
                forbidden = [*bad_words, *never] or None
                written = self._model.generate(**rows, **search, bad_words_ids=forbidden)
            ids = written[0].tolist()[1:]
            translations.append(self._target.to_ours(ids[: ids.index(end)] if end in ids else ids))
        return translations


def numbering_of(tokenizer: Tokenizer, side: int) -> IdMapping:
    """Map our ids to those of the exported model: side 0 is the source, 1 the target."""
    model = tokenizer.models[side]
    if isinstance(model, ImportedModel):
        return model.id_mapping
    ids = tuple(range(model.size))
    return IdMapping(tuple(map(model.piece, ids)), ids)


def _rms_norm(shape: Sequence[int], weight: Tensor, epsilon: float, x: Tensor) -> Tensor:
    """Apply RMS normalization in the data type of the input."""
    return torch.nn.functional.rms_norm(x, shape, weight, epsilon)


@contextmanager
def _as_paragraph(path: Path) -> Iterator[None]:
    """Convert exceptions of the library to errors with a message of one paragraph."""
    try:
        yield
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ExchangeError(
            f"transformers must be able to run {path} for the comparison, but cannot "
            f"({reason[:300]}); correct the files."
        ) from error


@contextmanager
def _quietly() -> Iterator[None]:
    """Silence the library's progress bars and warnings."""
    utils = import_extra("transformers.utils.logging", _PURPOSE)
    before, shows_progress = utils.get_verbosity(), utils.is_progress_bar_enabled()
    utils.set_verbosity(logging.ERROR)
    utils.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        utils.set_verbosity(before)
        if shows_progress:
            utils.enable_progress_bar()
