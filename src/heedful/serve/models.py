"""
The models of a server: runs or exported folders, with their language pairs.

::

    runs/en-fr                     languages from its settings
    en:fr=runs/old                 a run whose settings do not name the languages
    en:de,en:fr=runs/many          a run with language tags: >>de<< or >>fr<< before the sentence
    en:de,de:en=runs/nllb          a run whose model has a token for each language
    runs/a+runs/b                  an ensemble of two runs

This module does not import torch, because models exported to CTranslate2 run without it.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from heedful.engines import Reading, open_engine
from heedful.errors import SettingError
from heedful.runs.hub_names import run_path
from heedful.search.settings import SearchOptions
from heedful.serve.resident_engine import ResidentEngine
from heedful.text.blanks import read_source
from heedful.tokenization.tokenizer import Tokenizer
from heedful.translation.engine import TranslationEngine
from heedful.translation.reading import TextReader


class Direction(NamedTuple):
    """A language pair, and the language tag that selects it."""

    source: str
    target: str
    """Codes of the languages."""
    tag: str
    """Tag before each sentence, such as ``>>de<<``; empty for none."""


@dataclass(frozen=True)
class ModelSpec:
    """A model as given on the command line."""

    paths: tuple[Path, ...]
    """The folder of the model; several folders form an ensemble."""
    pairs: tuple[tuple[str, str], ...] = ()
    """Its translation directions; empty to read them from the folder."""

    @classmethod
    def parse(cls, text: str) -> "ModelSpec":
        """Parse an argument of `heedful serve`."""
        languages, equals, path = text.partition("=")
        pairs: list[tuple[str, ...]] = []
        if equals and not Path(text).exists():
            pairs = [tuple(part.split(":")) for part in languages.split(",")]
        else:
            path = text
        parts = [path] if Path(path).exists() else path.split("+")
        if not all(parts) or any(len(pair) != 2 or not all(pair) for pair in pairs):
            raise SettingError(
                "each model must be a folder, or languages and a folder such as "
                f"en:de,en:fr=runs/mine, but it is {text!r}."
            )
        return cls(tuple(map(run_path, parts)), tuple((source, target) for source, target in pairs))

    def __str__(self) -> str:
        """Format the folders as on the command line."""
        return "+".join(map(str, self.paths))


@dataclass(frozen=True, eq=False)
class ServedModel:
    """
    A loaded model with its name and languages.

    It is immutable: a reload creates new models, and the old models stay in memory until their last
    sentence is translated.
    """

    name: str
    """Its name in the API."""
    engine: str
    """``torch`` or ``ctranslate2``."""
    resident: ResidentEngine
    """The engine; only the worker thread uses it."""
    directions: tuple[Direction, ...]
    """Its translation directions, at least one."""
    reader: TextReader
    """The reader of input lines."""
    facts: dict[str, Any]
    """Facts for ``GET /v1/models``: beam, length penalty, and size if known."""
    no_attention: str = ""
    """The reason why attention is unavailable; empty if it is available."""
    no_alignment: str = ""
    """The reason why words cannot be aligned; empty if they can."""
    no_coverage: str = ""
    """The reason why a coverage penalty is refused; empty if it is allowed."""

    @property
    def translator(self) -> TranslationEngine:
        """The engine, loaded if necessary; for the worker thread only."""
        return self.resident.use()

    def languages(self, direction: Direction) -> tuple[str, str]:
        """Return the languages for the engine; empty if the model has no language tokens."""
        has_many = bool(self.resident.tokenizer.languages)
        return (direction.source, direction.target) if has_many else ("", "")

    def check_coverage(self, options: SearchOptions) -> None:
        """Raise `SettingError` for a coverage penalty that cannot be computed."""
        if not options.coverage_penalty:
            return
        if self.no_coverage:
            raise SettingError(self.no_coverage)
        if options.beam is None:
            replace(options, beam=self.facts["beam"])  # raises an error for a beam of 1

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Count the subwords of each sentence; any thread may call this method."""
        lines = list(map(read_source, texts))
        return [len(ids) for ids in self.resident.tokenizer.encode_source(lines)]


@dataclass(frozen=True)
class ModelLoader:
    """Options of `heedful serve` for opening models; a reload uses them again."""

    engine: str = "torch"
    weights: str = "default"
    """Which weights of a run to load."""
    device: str = "auto"
    precision: str = "auto"
    threads: int = 0
    """Number of CPU threads; 0 for `OMP_NUM_THREADS` or, if it is not set, one per core."""
    beam: int | None = None
    """Default beam size; the model's setting if None."""
    reading: Reading | None = None
    """How lines are read; as in the model's settings if None."""

    def open(self, spec: ModelSpec, name: str) -> ServedModel:
        """Open one model."""
        open_again = partial(
            open_engine,
            self.engine,
            spec.paths,
            weights=self.weights,  # an exported folder has one set of weights
            device=self.device,
            precision=self.precision,
            threads=self.threads,
            reading=self.reading,
        )
        translator: Any = open_again()
        if self.engine == "ctranslate2":
            search = translator.record.search
            facts = {"beam": search.beam, "length_penalty": search.length_penalty}
        else:
            facts = _facts_of_run(translator, self.weights)
            for path in spec.paths[1:]:
                _add_member(facts, path)
        if self.beam is not None:
            facts["beam"] = self.beam
        return ServedModel(
            name,
            self.engine,
            ResidentEngine(name, translator, open_again),
            _directions(spec, translator.tokenizer),
            translator.reader,
            facts,
            *_reasons(self.engine, translator),
        )


class Models:
    """The served models; a reload replaces all of them at once."""

    def __init__(self, specs: Sequence[ModelSpec], loader: ModelLoader) -> None:
        self.specs, self.loader = tuple(specs), loader
        self._loading = threading.Lock()
        self.current: tuple[ServedModel, ...] = ()

    def load(self) -> None:
        """Open all models, then replace the old ones."""
        # If a model cannot be opened, the old models stay, and the error is raised.
        with self._loading:
            names = _names([spec.paths for spec in self.specs])
            opened = [self.loader.open(*pair) for pair in zip(self.specs, names, strict=True)]
            self.current = tuple(opened)

    @property
    def loaded(self) -> int:
        """Number of models in memory."""
        return sum(model.resident.is_loaded for model in self.current)

    def languages(self) -> dict[str, list[str]]:
        """List the target languages of each source language, for ``GET /languages``."""
        pairs = (way[:2] for model in self.current for way in model.directions)
        by_source: dict[str, list[str]] = {}
        for source, target in dict.fromkeys(pairs):
            by_source.setdefault(source, []).append(target)
        return by_source

    def find(self, name: str | None) -> tuple[ServedModel, ...]:
        """Return the models with this name, or all models if the name is None."""
        return tuple(model for model in self.current if name in (None, model.name))


def _names(models: Sequence[Sequence[Path]]) -> list[str]:
    """Name models after their folders; a number distinguishes equal names."""
    names: list[str] = []
    for paths in models:
        plain = "+".join(path.resolve().name or "model" for path in paths)
        numbered = (plain if number == 1 else f"{plain}-{number}" for number in count(1))
        names.append(next(name for name in numbered if name not in names))
    return names


def _directions(spec: ModelSpec, tokenizer: Tokenizer) -> tuple[Direction, ...]:
    """Find a model's directions: on the command line, or else in its tags and settings."""
    tags = () if tokenizer.languages else tokenizer.tags
    codes = {tag.removeprefix(">>").removesuffix("<<"): tag for tag in tags}
    targets = codes or [tokenizer.target_language]
    pairs = spec.pairs or tuple((tokenizer.source_language, target) for target in targets)
    if tokenizer.languages:  # each direction is checked
        names = f"the source language of {spec}", f"the target language of {spec}"
        for pair in pairs:
            tokenizer.between(*pair, names)
        return tuple(Direction(*pair, "") for pair in pairs)
    if not all(map(all, pairs)):
        raise SettingError(
            f"the languages of {spec} must be known, but its settings do not name them; put "
            f"them before the folder: en:fr={spec}"
        )
    if codes and (unknown := {target for _, target in pairs} - codes.keys()):
        raise SettingError(
            f"{spec} must have a tag for each target language, but it has "
            f"{', '.join(codes.values())} and none for {', '.join(sorted(unknown))}."
        )
    if not codes and len(pairs) > 1:
        raise SettingError(
            f"{spec} has no language tags, so it can have only one direction, but {len(pairs)} "
            "were given; give one direction."
        )
    return tuple(Direction(source, target, codes.get(target, "")) for source, target in pairs)


def _reasons(engine: str, translator: Any) -> tuple[str, str, str]:
    """Return why attention, alignments and coverage penalties are unavailable, or empty strings."""
    if engine != "torch":
        reason = (
            "this model runs with the engine ctranslate2, for which heedful provides no "
            "attention or alignments"
        )
        coverage = (
            "coverage_penalty needs a model with the engine torch, but this model runs with the "
            "engine ctranslate2; leave coverage_penalty out."
        )
        return reason, reason, coverage
    from heedful.search.coverage import check_coverage

    no_coverage = ""
    try:
        check_coverage(1.0, translator.models)
    except SettingError as error:
        no_coverage = str(error)
    if len(translator.models) > 1:
        reason = "this model is an ensemble, whose members each have their own attention"
        return reason, reason, no_coverage
    config = translator.run.config.model
    if config.no_attention:
        reason = f"this model's decoder has no attention ({config.no_attention})"
        return reason, reason, no_coverage
    if config.no_alignment:
        reason = f"this model's attention is the same for all words ({config.no_alignment})"
        return "", reason, no_coverage
    return "", "", no_coverage


def _facts_of_run(translator: Any, weights: str) -> dict[str, Any]:
    """Return the facts about a run for ``GET /v1/models``."""
    from heedful.analysis.info import count_parameters
    from heedful.families.registry import names_with

    run, config = translator.run, translator.run.config
    kind, _, step = run.checkpoint_folder(weights).name.partition("-")
    facts = {
        "beam": config.search.beam,
        "length_penalty": config.search.length_penalty,
        "weights": f"{kind}-{int(step)}" if step else kind,
        "step": int(step) if step else max(run.folder.steps(), default=None),
        "parameters": count_parameters(run),
        "layers": config.model.cross_attention[0],
        "heads": config.model.cross_attention[1],
    }
    if config.model.decoder in names_with("coverage") and not config.model.no_alignment:
        facts["coverage_penalty"] = config.search.coverage_penalty
    return facts


def _add_member(facts: dict[str, Any], path: Path) -> None:
    """Add another run to the facts about an ensemble."""
    from heedful.analysis.info import count_parameters
    from heedful.runs.run import Run

    facts["parameters"] += count_parameters(Run.open(path))
    facts |= {"layers": 0, "heads": 0}  # the attention of an ensemble is not shown
    facts.pop("coverage_penalty", None)
