"""An ONNX model run by onnxruntime, with the interface of `heedful.model.contracts`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.config.search import SearchConfig
from heedful.data.batching import Collator
from heedful.errors import RunFolderError
from heedful.exchange.extras import import_extra
from heedful.exchange.parity import Ids
from heedful.model.contracts import Seq2Seq
from heedful.model.embedding import OutputLayer
from heedful.runs.folder import read_json
from heedful.search.rules import AllowedTokens
from heedful.search.search import run_search
from heedful.search.settings import SearchOptions
from heedful.tokenization.tokenizer import PAD, START, Tokenizer

DESCRIPTION = "onnx.json"
"""The file that describes how to use the graphs."""
FINGERPRINT = "fingerprint"
"""Key of the export's digest in `DESCRIPTION` and in the metadata of both graphs."""

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class OnnxState:
    """The inputs of the step graph, except the newest tokens."""

    arrays: Arrays
    """Inputs by name; one row per hypothesis."""

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> "OnnxState":
        """Select the rows of hypotheses."""
        del sentences
        chosen = rows.numpy()
        return OnnxState({name: array[chosen] for name, array in self.arrays.items()})


class OnnxModel(Seq2Seq):
    """A model computed by onnxruntime; its states are already log-probabilities."""

    def __init__(self, folder: Path, padding: int, start_token: int, end_token: int) -> None:
        super().__init__(padding, start_token, end_token)
        runtime: Any = import_extra("onnxruntime", "running ONNX graphs")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        self.runtime = f"onnxruntime {runtime.__version__}"
        self._encoder, self._step = (
            runtime.InferenceSession(folder / name, options, providers=["CPUExecutionProvider"])
            for name in ("encoder.onnx", "step.onnx")
        )
        _refuse_mixed(folder, (self._encoder, self._step))

    def encode(self, source: Int[Tensor, "batch source"]) -> Arrays:
        names = [output.name for output in self._encoder.get_outputs()]
        outputs = self._encoder.run(names, {"source": source.numpy()})
        return dict(zip(names, outputs, strict=True))

    def start(self, memory: Arrays) -> OnnxState:
        """Prepare decoding, one hypothesis per sentence; caches begin with length 0."""
        nothing = {f"past_{name}": memory[f"memory_{name}"][:, :, :, :0] for name in _KNOWN}
        return OnnxState({**memory, **nothing})

    def step(
        self, state: OnnxState, tokens: Int[Tensor, " rows"]
    ) -> tuple[Float[Tensor, "rows vocabulary"], OnnxState]:
        """Process one more target token of each hypothesis."""
        inputs = {"tokens": tokens.numpy(), **state.arrays}
        scores, *known = self._step.run(["log_probabilities", *_KNOWN], inputs)
        newer = {f"past_{name}": array for name, array in zip(_KNOWN, known, strict=True)}
        return torch.from_numpy(scores), OnnxState({**state.arrays, **newer})

    def states(
        self, source: Int[Tensor, "batch source"], target_in: Int[Tensor, "batch target"]
    ) -> Float[Tensor, "batch target vocabulary"]:
        """Compute log-probabilities of a known target step by step with the step graph."""
        state, steps = self.start(self.encode(source)), []
        for tokens in target_in.unbind(1):
            states, state = self.step(state, tokens)
            steps.append(states)
        return torch.stack(steps, dim=1)

    def project(self, states: Float[Tensor, "*batch vocabulary"]) -> Tensor:
        return states

    def log_probabilities(self, states: Float[Tensor, "*batch vocabulary"]) -> Tensor:
        return torch.log_softmax(states, dim=-1)

    @property
    def output(self) -> OutputLayer:  # type: ignore[override]
        """Refuse access to the output matrix, which is inside the graph and cannot be trained."""
        raise TypeError("an ONNX graph does not give access to its output matrix")


_KNOWN = ("keys", "values")


def _refuse_mixed(folder: Path, sessions: Sequence[Any]) -> None:
    """Refuse graphs, settings or a tokenizer from different exports."""
    facts: dict[str, Any] = {}
    if (folder / DESCRIPTION).is_file():
        facts = read_json(folder / DESCRIPTION)
    fingerprints = {
        session.get_modelmeta().custom_metadata_map.get(FINGERPRINT) for session in sessions
    }
    fingerprints |= {facts[FINGERPRINT]} if FINGERPRINT in facts else set()
    wrong = f"the graphs and {DESCRIPTION}" if len(fingerprints) > 1 else ""
    if "tokenizer" in facts and Tokenizer.load(folder).fingerprint != facts["tokenizer"]:
        wrong = f"the tokenizer and {DESCRIPTION}"
    if wrong:
        raise RunFolderError(
            f"all files in {folder} must come from one export, but the fingerprints of {wrong} "
            "differ; export the run again."
        )


def never_written(search: SearchConfig) -> tuple[int, ...]:
    """List the ids that searches never generate, although a model gives them probability."""
    return (PAD, START, *map(int, search.forbidden_ids.split()))


class OnnxReference:
    """The ONNX graphs as one side of a parity check, with the search settings of the run."""

    def __init__(
        self, model: OnnxModel, tokenizer: Tokenizer, search: SearchConfig, source_end: bool
    ) -> None:
        self.name = model.runtime
        self._model, self._tokenizer, self._search = model, tokenizer, search
        special = model.padding, model.start_token, model.end_token
        self._collator = Collator(*special, source_end)

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """Tokenize source sentences with the tokenizer that was exported with the graphs."""
        return self._tokenizer.encode_source(sentences)

    def log_probabilities(self, source: Ids, target: Ids) -> np.ndarray:
        """Compute the log-probabilities of a translation step by step, as in a search."""
        batch = self._collator.batch([list(source)], [list(target)])
        scores: np.ndarray = self._model.states(batch.source, batch.target_in)[0].numpy()
        return scores

    def outputs(self, sentences: Sequence[str]) -> list[list[int]]:
        """Translate all sentences as one padded batch, with the search settings of the run."""
        ids = self.encode(sentences)
        filled = [row for row in ids if row]
        if not filled:
            return [[] for _ in ids]
        settings = SearchOptions().over(self._search)
        hypotheses = run_search(
            self._model,
            self._collator.source(filled),
            [settings.limit.tokens(len(row)) for row in filled],
            settings,
            rules=[AllowedTokens(self._tokenizer.target_size, never_written(self._search))],
        )
        best = iter(hypotheses)
        return [list(next(best)[0].tokens) if row else [] for row in ids]
