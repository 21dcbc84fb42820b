"""
The model card of a run: README.md with the front matter that the hub reads.

A card states only facts that a run folder records or that the user gives. It marks other facts,
such as the score of averaged weights, as unknown.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from shlex import quote
from typing import Any

import torch

from heedful.config.recipes import RECIPES
from heedful.config.schema import RunConfig
from heedful.errors import ExchangeError, StorageError
from heedful.evaluation.comet import decimals_of
from heedful.exchange.card.escape import code, code_block, plain, yaml_lines
from heedful.exchange.card.licenses import license_entries
from heedful.exchange.card.scores import CardScore, evaluated_scores, recorded_scores
from heedful.files import read_within, write_whole, writing
from heedful.machine.program import describe_program
from heedful.model.weights import parameter_count
from heedful.runs.checkpoint import STATE
from heedful.runs.folder import RunFolder, read_json
from heedful.runs.origin import FILE as ORIGIN_FILE
from heedful.runs.origin import base_model
from heedful.runs.run import Run, flat_settings, read_corpus
from heedful.settings.conditions import format_value
from heedful.tasks.registry import task_of
from heedful.tasks.task import TRANSLATION
from heedful.text.language_codes import language_of_code
from heedful.tokenization.special_symbols import is_tag

CARD = "README.md"
"""File name of a card."""
_LARGEST = 1 << 24
_DATASET = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)
_LANGUAGE = re.compile(r"[a-z]{2,3}")
# Settings that do not change the model.
_NOT_OF_A_RECIPE = ("train.device", "train.threads", "data.source_language", "data.target_language")
_SENTENCE = "A sentence to translate."


@dataclass(frozen=True)
class CardFacts:
    """Facts that a run folder does not record, for its card."""

    license: str = ""
    """The license: an identifier from the hub, or a name; empty if it is not stated."""
    datasets: tuple[str, ...] = ()
    """Datasets from the hub that the model was trained on."""
    scores: tuple[Path, ...] = ()
    """Output files of `heedful evaluate --json`, each named after its test set."""

    def check(self) -> None:
        """Raise `ExchangeError` for invalid facts, before any file is written."""
        license_entries(self.license)
        for name in self.datasets:
            if len(name) > 96 or not _DATASET.fullmatch(name):
                raise ExchangeError(
                    "--dataset must be the name of a dataset on the Hugging Face hub, such as "
                    f"wmt/wmt14, but got {name!r}; correct it."
                )
        for path in self.scores:
            evaluated_scores(path)


def model_card(
    run: Run,
    name: str,
    library: str,
    *,
    weights: str = "default",
    facts: CardFacts | None = None,
) -> str:
    """
    Write the card of a run's model.

    `name`: name of the folder or repository. `library`: the library that loads the files, by its
    name on the hub: ``transformers``, ``ctranslate2``, ``onnx``, or ``heedful`` for a run folder.

    Raises `ExchangeError` for invalid facts.
    """
    facts = facts or CardFacts()
    facts.check()
    checkpoint = run.checkpoint_folder(weights)
    scores = [score for path in facts.scores for score in evaluated_scores(path)]
    scores += recorded_scores(run.folder, checkpoint)
    lines = ["---", *yaml_lines(_front_matter(run, name, library, facts, scores)), "---", ""]
    sections: Mapping[str, Sequence[str]] = {
        "Use": _use(run, name, library),
        "Scores": _scores(scores),
        "Data": _data(run, facts),
        "License": [license_entries(facts.license).sentence],
        "Recipe": _recipe(run, checkpoint),
    }
    lines += [f"# {plain(PurePath(name).name or name)}", "", *_what_it_is(run, library)]
    for title, content in sections.items():
        lines += ["", f"## {title}", "", *content]
    return "\n".join(lines) + "\n"


def write_card(folder: Path, card: str) -> bool:
    """
    Write a card into a folder that has no card; return whether the folder now has this card.

    An existing card may have been edited, so it is never replaced.
    """
    path = folder / CARD
    if path.exists() or path.is_symlink():
        try:
            return read_within(path, _LARGEST) == card.encode()
        except OSError as error:
            raise StorageError(f"{path} cannot be read: {error.strerror}.") from error
    with writing(folder):
        write_whole(path, card.encode(), alone=True)
    return True


def _front_matter(
    run: Run, name: str, library: str, facts: CardFacts, scores: Sequence[CardScore]
) -> dict[str, Any]:
    """Collect the fields of the front matter that have a value."""
    languages = _languages(run)
    fields: dict[str, Any] = {
        "language": languages,
        **license_entries(facts.license).fields,
        "library_name": library,
        "base_model": base_model(run.folder.path),
    }
    task = {}
    if task_of(flat_settings(run.config)) is TRANSLATION:
        fields["pipeline_tag"] = "translation"
        task = {"type": "translation", "name": _direction(run)}
    fields["tags"] = list(dict.fromkeys(("heedful", "translation", library)))
    fields["datasets"] = list(facts.datasets)
    if task and scores:
        texts = dict.fromkeys(score.text for score in scores)
        results = [_result(task, text, [s for s in scores if s.text == text]) for text in texts]
        fields["model-index"] = [{"name": PurePath(name).name or name, "results": results}]
    return {field: value for field, value in fields.items() if value not in ("", [], {})}


def _result(task: Mapping[str, str], text: str, scores: Sequence[CardScore]) -> dict[str, Any]:
    """Describe the scores of one text in the format of the hub's model index."""
    metrics = [
        {"type": score.metric, "name": score.name, "value": score.value}
        | ({"args": {"signature": score.signature}} if score.signature else {})
        for score in scores
    ]
    return {"task": task, "dataset": {"name": text, "type": _slug(text)}, "metrics": metrics}


def _slug(text: str) -> str:
    """Convert a name to an identifier."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "text"


def _languages(run: Run) -> list[str]:
    """List the codes of the run's languages and of its language tags."""
    tags = [tag.strip("<>") for tag in run.tokenizer.tags if is_tag(tag)]
    codes = map(language_of_code, [*run.direction, *tags])
    return [code for code in dict.fromkeys(codes) if _LANGUAGE.fullmatch(code)]


def _direction(run: Run) -> str:
    """Describe the translation direction of the run in words."""
    source, target = (language or "an unnamed language" for language in run.direction)
    return f"{source} to {target}"


def _what_it_is(run: Run, library: str) -> list[str]:
    """Describe the model in a few sentences."""
    with torch.device("meta"):
        count = parameter_count(run.build())
    model, tokenizer = run.config.model, run.tokenizer
    source, target = (code(language) for language in run.direction)
    task = task_of(flat_settings(run.config))
    purpose = f" that translates {source} to {target}" if task is TRANSLATION else ""
    lines = [
        f"A model{purpose}, with {count:,} parameters: encoder {code(model.encoder)} of "
        f"{model.encoder_layers} layers, decoder {code(model.decoder)} of {model.decoder_layers}, "
        f"width {model.d_model}, {tokenizer.target_size:,} target subwords "
        f"({code(tokenizer.target_kind)}).",
    ]
    if tags := tokenizer.tags:
        shown = ", ".join(map(code, tags[:20])) + (" and others" if len(tags) > 20 else "")
        lines.append(f"Each source line begins with the tag of its target language: {shown}.")
    artifact = "A run folder, described" if library == "heedful" else f"Exported for {library}"
    lines += [
        "",
        f"{artifact} by {describe_program()}; the run was created by heedful "
        f"{code(_version(run))}.",
    ]
    return lines


def _version(run: Run) -> str:
    """Read the version of heedful that wrote a run."""
    return str(read_json(run.folder.config).get("heedful") or "unknown")


def _use(run: Run, name: str, library: str) -> list[str]:
    """Show how to use the model with heedful, and with the library that loads its files."""
    tag = f"{run.tokenizer.tags[0]} " if run.tokenizer.tags else ""
    text, place = f"{tag}{_SENTENCE}", quote(name)
    commands = {
        "heedful": (f"heedful translate {place}",),
        "transformers": (
            f"heedful import {place} --from huggingface --out run",
            "heedful translate run",
        ),
        "ctranslate2": (f"heedful translate {place} --engine ctranslate2",),
    }
    lines: list[str] = []
    if library in commands:
        *before, translate = commands[library]
        package = "'heedful[hub]'" if "/" in name else "heedful"  # a repository has an organization
        shell = [f"pip install {package}", *before, f"echo {quote(text)} | {translate}"]
        lines += [*code_block(shell, "sh"), ""]
    python = _python_lines(name, library, run.tokenizer.source_prefix + text)
    return [*lines, *code_block(python, "python")]


def _python_lines(name: str, library: str, text: str) -> list[str]:
    """Return lines of Python code that load the files with a library."""
    if library == "transformers":
        repo, _, revision = name.partition("@")
        place = f"{repo!r}, revision={revision!r}" if revision else repr(name)
        return [
            "from transformers import AutoModelForSeq2SeqLM, AutoTokenizer",
            "",
            f"tokenizer = AutoTokenizer.from_pretrained({place})",
            f"model = AutoModelForSeq2SeqLM.from_pretrained({place})",
            f'ids = model.generate(**tokenizer([{text!r}], return_tensors="pt"))',
            "print(tokenizer.batch_decode(ids, skip_special_tokens=True))",
        ]
    if library == "onnx":
        return [
            "from pathlib import Path",
            "",
            "import onnxruntime",
            "",
            f"folder = Path({name!r})  # onnx.json describes the inputs and outputs",
            'encoder = onnxruntime.InferenceSession(folder / "encoder.onnx")',
            'step = onnxruntime.InferenceSession(folder / "step.onnx")',
        ]
    if library == "ctranslate2":
        return [
            "import ctranslate2",
            "",
            f"translator = ctranslate2.Translator({name!r})  # takes and returns subwords",
        ]
    return [
        "import heedful",
        "",
        f"translator = heedful.Translator.load({name!r})",
        f"print(translator.translate({text!r}).text)",
    ]


def _scores(scores: Sequence[CardScore]) -> list[str]:
    """List the scores with their signatures."""
    if not scores:
        return ["Not measured."]
    return [
        f"- {code(score.text)}: {plain(score.name)} {score.value:.{decimals_of(score.metric)}f}, "
        + (f"signature {code(score.signature)}" if score.signature else "no signature recorded")
        for score in scores
    ]


def _data(run: Run, facts: CardFacts) -> list[str]:
    """List the datasets and files of the run, with their recorded properties."""
    lines = [f"- dataset {code(name)} on the Hugging Face hub" for name in facts.datasets]
    for side, entries in read_corpus(run.folder).items():
        lines += [f"- {code(side)}: {_file_facts(entry)}" for entry in entries]
    lines += list(_pairs(run.folder))
    origin = run.folder.path / ORIGIN_FILE
    if origin.exists():
        parent = PurePath(str(read_json(origin).get("run") or "")).name
        lines.append(f"- fine-tuned from the run {code(parent)}, which has its own training data")
    return lines or ["Not recorded: the model was imported, or its run has no record of files."]


def _file_facts(entry: Mapping[str, Any]) -> str:
    """Describe either one file or the weight of a corpus."""
    facts = dict(entry)
    first = [code(str(facts.pop("file")))] if "file" in facts else []
    size = facts.pop("bytes", None)
    first += [f"{size:,} bytes"] if isinstance(size, int) else []
    return ", ".join([*first, *(f"{name} {code(str(value))}" for name, value in facts.items())])


def _pairs(folder: RunFolder) -> Iterator[str]:
    """State the number of sentence pairs in each tokenized corpus of the run folder."""
    for path in sorted(folder.data.rglob("meta.json")):
        meta = read_json(path)
        corpus = path.parent.relative_to(folder.data).as_posix()
        name = "" if corpus == "." else f" of {code(corpus)}"
        if type(count := meta.get("pairs")) is int:
            digest = (
                f", digest of their ids {code(str(meta['digest']))}" if "digest" in meta else ""
            )
            yield f"- {count:,} pairs{name} after cleaning{digest}"


def _recipe(run: Run, checkpoint: Path) -> list[str]:
    """Name the recipe, the step of the weights, and the settings that differ from the recipe."""
    config, state = run.config, read_json(checkpoint / STATE)
    base = RECIPES[config.recipe]() if config.recipe in RECIPES else RunConfig()
    before, after = flat_settings(base), flat_settings(config)
    skipped = ("recipe", "reading", *_NOT_OF_A_RECIPE)
    changed = [
        f"{name} = {format_value(value)}"
        for name, value in after.items()
        if name not in skipped and before.get(name, value) != value
    ]
    steps = state.get("steps")
    if isinstance(steps, list) and steps:
        origin = f"the mean of the weights at steps {', '.join(map(str, steps))}"
    else:
        origin = f"the weights at step {state.get('step', 0)}"
    known = config.recipe in RECIPES
    title = f"Recipe {code(config.recipe)}" if known else "No built-in recipe"
    if not changed:
        return [f"{title}, {origin}."]
    against = "it" if known else "the defaults"
    block = code_block(changed, "text")
    return [f"{title}, {origin}. Settings that differ from {against}:", "", *block]
