"""`heedful bench translate`: the search of heedful and of other toolkits."""

import json
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from heedful.bench.measurement import SpeedMeasurement, SpeedReport
from heedful.bench.random_run import make_random_run, random_lines
from heedful.bench.systems import OURS, Say, System, Systems, find_systems, run_in_turns
from heedful.bench.train import Conditions
from heedful.config.load import load_config
from heedful.errors import SettingError, TextError
from heedful.evaluation.bleu import evaluate_texts
from heedful.evaluation.languages import is_language
from heedful.experiments.work import shape_of
from heedful.machine.devices import describe_machine, has_int8
from heedful.model.contracts import search_flops
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.runs.run import Run
from heedful.search.settings import PEERS_SEARCH, SearchOptions
from heedful.text.corpus import read_lines

# Number of positions in the table of positional encodings, for peers that need such a table.
_POSITIONS = 1100
_RANDOM_LINES = 64


@dataclass(frozen=True)
class BenchText:
    """
    The text to translate and the search settings.

    All systems use the same beam, batch, length penalty and length limit. The stopping rule decides
    how many steps follow after the best translation is found, so by default heedful uses the rule
    of the other toolkits. The result includes the share of output lines that equal those of the
    first system.
    """

    input: Path | None = None
    """File of input lines; for an untrained model the lines are made up."""
    reference: tuple[Path, ...] = ()
    """Reference translations."""
    lines: int | None = None
    """Number of lines to use, from the first line on; if None, all, or 64 made-up lines."""
    batch: int | None = None
    """Sentences per batch; None to batch as `heedful translate` does."""
    search: SearchOptions = PEERS_SEARCH
    """
    Beam, a length penalty that every toolkit supports, maximum tokens, and heedful's stopping rule.
    """
    repeats: int = 5
    """Number of timed passes."""
    profile: bool = False
    """Whether to profile heedful's search."""


def bench_trained(
    run: str | Path,
    text: BenchText,
    *,
    weights: str = "default",
    conditions: Conditions | None = None,
    say: Say,
) -> SpeedReport:
    """Time the translation of a text by a trained run; raises `TextError` if there is no text."""
    if text.input is None:
        raise TextError(
            "a benchmark of a trained run needs a text to translate, but got none; name a file "
            "with --input."
        )
    lines = list(islice(read_lines(text.input), text.lines))
    if not any(line.strip() for line in lines):
        raise TextError(f"{text.input} must contain lines to translate, but all are empty.")
    for path in text.reference:
        if (count := sum(1 for _ in islice(read_lines(path), len(lines)))) < len(lines):
            raise TextError(
                f"{path} must have a reference for each of the {len(lines):,} lines to translate, "
                f"but has {count:,} lines."
            )
    opened = Run.open(run)
    place = opened.checkpoint_folder(weights)
    return _bench(opened, weights, place, lines, text, conditions or Conditions(), say)


def bench_random(
    recipe: str,
    settings: Sequence[str],
    text: BenchText,
    *,
    tokens: int = 24,
    source_length: int = 25,
    vocabulary: int | None = None,
    conditions: Conditions | None = None,
    say: Say,
) -> SpeedReport:
    """
    Time the search of a recipe with random weights.

    `source_length`: mean tokens per line, the end symbol included. `vocabulary`: vocabulary size of
    both sides; the recipe's size if None.

    Raises `SettingError` if a text or reference is given, because an untrained model knows no
    words.
    """
    if text.input is not None or text.reference:
        raise SettingError(
            "--input and --reference need a RUN that was trained on text, but none was given; "
            "name a RUN or leave them out."
        )
    config = load_config(recipe, settings)
    vocabulary = vocabulary or config.data.vocabulary_size
    lines = random_lines(vocabulary, source_length, text.lines or _RANDOM_LINES)
    limited = replace(text, search=replace(text.search, max_length=tokens))
    with tempfile.TemporaryDirectory() as folder:
        run = make_random_run(Path(folder), config, vocabulary)
        place = run.checkpoint_folder()
        return _bench(run, "default", place, lines, limited, conditions or Conditions(), say)


def _bench(
    run: Run,
    weights: str,
    workdir: Path,
    lines: list[str],
    text: BenchText,
    conditions: Conditions,
    say: Say,
) -> SpeedReport:
    """Translate the lines with all systems."""
    device, precision, threads = conditions.resolve()
    search = text.search
    model = run.build().eval()
    field = _field(run, device, precision, conditions)
    ids = run.tokenizer.encode_source(lines)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        request = write_request(run, weights, workdir, lines, text, folder) | {
            "device": device,
            "threads": threads,
        }
        outputs: dict[str, list[tuple[str, int]]] = {}

        def keep(system: System) -> None:
            outputs[system.title] = list(_outputs(folder / "output", run))

        round_robin = run_in_turns(field, request, conditions.rounds, say, keep)
    judge = _Judge(run, model, lines, ids, text, outputs)
    measurements = tuple(
        judge.measurement(system, answer, round_robin.rates.get(system.precision))
        for system, answer in round_robin.answers
    )
    what = {
        "recipe": run.config.recipe,
        "run": run.folder.path.name if text.input else "random weights",
        "weights": workdir.name,
        "lines": len(lines),
        "source tokens": sum(map(len, ids)),
        "beam": search.beam,
        "batch": text.batch or "as in heedful translate",
        "length penalty": search.length_penalty,
        "max length": search.max_length,
        "stop": search.stop,
        "passes": text.repeats * conditions.rounds,
    }
    machine = {**describe_machine(), "threads": threads, "device": device}
    machine["product_gflops"] = round_robin.rates
    return SpeedReport(what, machine, measurements, (*field.notes, *round_robin.notes))


def write_request(
    run: Run, weights: str, checkpoint: Path, lines: list[str], text: BenchText, folder: Path
) -> dict[str, Any]:
    """
    Write the lines to a folder, as text and as ids for other toolkits, and describe the search.

    The caller must add device and threads to the request.
    """
    model, search = run.build(), text.search
    (folder / "input").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    with (folder / "sources.jsonl").open("w", encoding="ascii") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in run.tokenizer.encode_source(lines))
    if model.source_positions is not None:
        positions = model.source_positions(0, _POSITIONS).detach().numpy()
        np.save(folder / "positions.npy", positions)
    return {
        "task": "translate",
        "run": str(run.folder.path),
        "weights": weights,
        "input": str(folder / "input"),
        "model_file": str(checkpoint / "model.safetensors"),
        "positions": str(folder / "positions.npy"),
        "sources": str(folder / "sources.jsonl"),
        "model": shape_of(run.config, run.tokenizer.target_size),
        "batch": text.batch,
        "search": {
            name: getattr(search, name) for name in ("beam", "length_penalty", "max_length", "stop")
        },
        "beam": search.beam,
        "alpha": search.penalty.alpha,
        "max_length": {"tokens": search.limit.extra, "relative": search.limit.relative},
        "repeats": text.repeats,
        "profile": text.profile,
        "output": str(folder / "output"),
    }


def _field(run: Run, device: str, precision: str, conditions: Conditions) -> Systems:
    """Find the systems that support this model."""
    peers, forced = conditions.peers, conditions.precision != "auto"
    # peers without bf16 compute in fp32, so heedful is also measured in fp32
    ways: tuple[str, ...] = ("fp32",) if precision == "bf16" else ()
    ways += ("int8",) if has_int8(torch.device(device)) else ()
    only = conditions.only
    field = find_systems("translate", precision, peers, only, forced, ways, device=device)
    if run.config.model.positions != "learned":
        return field
    alone = tuple(system for system in field.systems if system.name == OURS)
    return Systems(alone, (*field.notes, "other toolkits are not measured with learned positions."))


def _outputs(path: Path, run: Run) -> Iterator[tuple[str, int]]:
    """Read the text and number of tokens of each translation; peers write token ids only."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            entry = json.loads(line)
            if isinstance(entry, dict):
                yield entry["text"], len(entry["tokens"])
            else:
                yield run.tokenizer.decode(entry), len(entry)


@dataclass(frozen=True)
class _Judge:
    """A comparison of the systems' outputs, and a count of the work for these outputs."""

    run: Run
    model: EncoderDecoder
    lines: list[str]
    ids: list[list[int]]
    text: BenchText
    outputs: dict[str, list[tuple[str, int]]]

    def measurement(
        self, system: System, answer: dict[str, Any], rate: float | None
    ) -> SpeedMeasurement:
        """Collect the measurements of a system."""
        texts, lengths = zip(*self.outputs[system.title], strict=True)
        first = next(iter(self.outputs.values()))
        same = sum(text == first_text for text, (first_text, _) in zip(texts, first, strict=True))
        seconds = tuple(answer["seconds"])
        facts: dict[str, Any] = {
            "milliseconds a sentence": 1000 * statistics.median(seconds) / len(texts),
            "lines equal to the first": same / len(first),
        }
        if self.text.reference:
            facts["bleu"] = self._bleu(texts)
        if "load" in answer:
            facts["seconds to load"] = answer["load"]
        source = [len(row) + self.run.config.model.source_end for row in self.ids]
        ended = [length + 1 for length in lengths]
        flops = search_flops(self.model, source, ended, self.text.search.size)
        return SpeedMeasurement(
            system.title,
            system.precision,
            seconds,
            {"sentences": len(texts), "tokens": sum(lengths)},
            float(flops),
            rate,
            answer["memory"],
            {
                **facts,
                **{name: answer[name] for name in ("products alone", "profile") if name in answer},
                "versions": answer.get("versions", {}),
            },
        )

    def _bleu(self, texts: Sequence[str]) -> float:
        """Compute the BLEU of translations against the references."""
        count = len(self.lines)
        references = [list(islice(read_lines(path), count)) for path in self.text.reference]
        language = self.run.tokenizer.target_language
        language = language if is_language(language) else ""
        return evaluate_texts(list(texts), references, language=language).bleu.score
