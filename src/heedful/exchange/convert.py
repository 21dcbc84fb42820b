"""
Import and export of models, with a comparison of results.

An import skips the comparison if heedful cannot run the other toolkit; an export never skips it. A
folder gets its final name after the comparison, so a failed comparison leaves no folder.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from heedful.errors import ExchangeError, MissingExtra, RunFolderError, TokenizerError
from heedful.exchange.card.model_card import CardFacts, model_card, write_card
from heedful.exchange.formats import (
    ComparedReader,
    ExportResult,
    ModelBundle,
    Reader,
    ReadOptions,
    WriteOptions,
    Writer,
    read_settings_file,
)
from heedful.exchange.import_report import ImportReport, count_round_trips
from heedful.exchange.ordinary_files import check_ordinary_files
from heedful.exchange.parity import (
    BOUND,
    Ids,
    Parity,
    ReferenceModel,
    compare,
    sample_sentences,
)
from heedful.exchange.registry import (
    HUGGING_FACE,
    class_meant,
    library_of,
    load_reader,
    load_writer,
    model_classes,
    reader_name,
    writer_name,
    written_classes,
)
from heedful.families.registry import families
from heedful.files import replacing
from heedful.runs.checkpoint import all_finite, load_weights
from heedful.runs.foreign_models import recognize
from heedful.runs.hub_names import advice_on_missing
from heedful.runs.run import Run, flat_settings
from heedful.runs.write_run import write_run
from heedful.search.length import LengthLimit
from heedful.settings.conditions import format_value
from heedful.tasks.registry import task_of, tasks
from heedful.text.corpus import read_lines
from heedful.translation.translator import Translator

_CONFIG = "config.json"
# Maximum seconds for translating generated sentences, estimated from the last and longest sentence.
_PATIENCE = 60.0
# Maximum number of extended hypotheses and scored candidates for one sentence. A search that never
# ends takes about half a minute: a base model extends about a thousand hypotheses per second.
_MOST_ROWS = 1 << 15
_MOST_CANDIDATES = 1 << 30
# Settings whose defaults describe the paper's Transformer; other values are beyond the paper.
_BEYOND_THE_PAPER = (
    *("encoder", "decoder", "norm_kind", "residuals", "causal_mask"),
    *("gated", "feed_forward_bias", "scale_output", "embedding_norm"),
    *("encoder_sharing", "decoder_sharing"),
)


_TASKS = "models that read a task before each text, such as T5"
# The options that not every format uses, by their names in `ReadOptions` and `WriteOptions`.
_PURPOSES = {
    "tokenizer": "models that may come without their tokenizer, such as fairseq's",
    "task": _TASKS,
    "source_prefix": _TASKS,
    "quantization": "files with a choice of number formats, such as ctranslate2's",
}


class HeedfulReference:
    """The heedful side of a parity check."""

    name = "heedful"

    def __init__(self, run: Run, weights: str = "default") -> None:
        self._run, self._weights = run, weights
        self._model = run.load_model(weights, torch.device("cpu"), "fp32")
        # both sides must read the same lines, but the reading `text` would change them here
        self._translator = Translator(run.with_reading("exact"), self._model)
        tokenizer = run.tokenizer
        pieces = tokenizer.pieces_target(range(tokenizer.target_size))
        self._numbers = {piece: number for number, piece in enumerate(pieces)}

    def in_double(self) -> "HeedfulReference":
        """Create a copy in double precision, with newly loaded weights that are not prepacked."""
        side = copy(self)
        place = self._run.checkpoint_folder(self._weights)
        model = self._run.build()
        load_weights(model, self._run.load_checkpoint(place).model, place)
        side._model = model.double().eval()
        return side

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """Tokenize source sentences."""
        return self._run.tokenizer.encode_source(sentences)

    @torch.inference_mode()
    def log_probabilities(self, source: Ids, target: Ids) -> np.ndarray:
        """Compute the log-probabilities of all symbols at each position of the target."""
        batch = self._run.collator(self._model).batch([list(source)], [list(target)])
        states = self._model.states(batch.source, batch.target_in)[0]
        logits: torch.Tensor = self._model.project(states)
        return torch.log_softmax(logits, dim=-1).numpy()

    def outputs(self, sentences: Sequence[str]) -> list[list[int]]:
        """Translate as `heedful translate` does."""
        translations = self._translator.translate(sentences)
        return [[self._numbers[piece] for piece in line.tokens] for line in translations]


def import_model(
    kind: str,
    path: str | Path,
    out: str | Path,
    *,
    options: ReadOptions | None = None,
    sentences: Sequence[str] = (),
) -> tuple[ImportReport, tuple[str, ...]]:
    """
    Import another toolkit's model as a run folder.

    `kind`: name of the toolkit, or `huggingface` for the class that config.json names. Raises
    `ExchangeError` if the model cannot be read, and `ParityFailed` if heedful's results
    differ from the toolkit's. If an error occurs, the folder `out` is not created.
    """
    kind, options = reader_name(kind), options or ReadOptions()
    origin, goal = Path(path), Path(out)
    _refuse_taken(goal)
    if not origin.exists():
        raise ExchangeError(
            f"the model to import must exist, but {origin} does not exist; "
            f"{advice_on_missing(origin)}."
        )
    kind = _check_toolkit(kind, origin)
    reader: Reader = load_reader(kind)
    _refuse_unused(options, [reader], kind)
    check_ordinary_files(origin)
    with _importing(origin):
        model = reader.read(origin, options)
    if wrong := next((n for n, tensor in model.weights.items() if not all_finite(tensor)), None):
        raise ExchangeError(
            f"the weights of {origin} must be finite, but the values for heedful's tensor {wrong} "
            "contain NaN or infinity; the training diverged or the file is damaged. Import another "
            "model."
        )
    engine, why_alone = _open_engine(reader, kind, origin, model)
    with replacing(goal) as temporary_folder:
        state = {"reason": f"imported from {kind}", "notes": list(model.notes)}
        with _importing(origin):
            run = write_run(
                temporary_folder, model.config, model.tokenizer, model.weights, state, Path(kind)
            )
        fitting, patience = _fitting(run, sentences), None if sentences else _PATIENCE
        _refuse_endless(run, origin, fitting)
        parity = None
        if engine is not None:
            parity = compare(HeedfulReference(run), engine, fitting, BOUND, patience)
            parity.check()
        round_trips = count_round_trips(run.tokenizer, fitting)
    report = ImportReport(model.use, len(fitting), round_trips, parity, why_alone)
    return report, model.notes


@contextmanager
def _importing(origin: Path) -> Iterator[None]:
    """Name the model in an error about its tokenizer."""
    try:
        yield
    except TokenizerError as error:
        raise ExchangeError(f"{origin} cannot be imported: {error}") from error


def _refuse_unused(
    options: ReadOptions | WriteOptions, modules: Iterable[Reader | Writer], kind: str
) -> None:
    """Refuse an option that no reader or writer of a format uses."""
    used = {name for module in modules for name in getattr(module, "USES", ())}
    for name, purpose in _PURPOSES.items():
        if getattr(options, name, None) and name not in used:
            named = f"--{name.replace('_', '-')}"
            raise ExchangeError(
                f"{named} is for {purpose}, but the format is {kind}; leave {named} out."
            )


def _check_toolkit(kind: str, origin: Path) -> str:
    """Check that the toolkit wrote the files; return its name or the Hugging Face class."""
    known = recognize(origin)
    if kind == HUGGING_FACE:
        if known is not None and known.kind in model_classes().values():
            return known.kind
        if known is None and (origin / _CONFIG).is_file():
            read_settings_file(origin / _CONFIG)
        name = (
            "not a folder with a config.json that names its class" if known is None else known.name
        )
        advice = "check the path" if known is None else known.advice
    elif known is not None and known.kind != kind:
        name, advice = known.name, known.advice
    else:
        return kind
    raise ExchangeError(
        f"{origin} must be a model of {kind}, which --from names, but is {name}; {advice}."
    )


def _open_engine(
    reader: Reader, kind: str, origin: Path, model: ModelBundle
) -> tuple[ReferenceModel | None, str]:
    """Open the original with its toolkit, or return the reason why no comparison is possible."""
    if not isinstance(reader, ComparedReader):
        return None, f"results were not compared with {kind}, which heedful does not run"
    try:
        return reader.open_engine(origin, model), ""
    except MissingExtra as error:
        return None, f"results were not compared: {str(error).rstrip('.')}"


def export_model(
    path: str | Path,
    kind: str,
    out: str | Path,
    *,
    weights: str = "default",
    options: WriteOptions | None = None,
    sentences: Sequence[str] = (),
    facts: CardFacts | None = None,
    name: str = "",
) -> tuple[Parity, tuple[str, ...]]:
    """
    Export a run's model for another toolkit, with a model card.

    `kind`: name of the toolkit, or `huggingface` for the first Hugging Face class that can express
    the model. `facts`: facts that the run does not record, for the card. `name`: name of the folder
    or repository in the card; if empty, the name of `out`.

    Raises `ExchangeError` with all reasons if the format cannot express the model, and
    `ParityFailed` if the toolkit's results differ. If an error occurs, the folder `out` is not
    created.
    """
    kind, meant = writer_name(kind), class_meant(kind)
    options, goal = options or WriteOptions(), Path(out)
    _refuse_taken(goal)
    _refuse_unused(options, map(load_writer, _writers_of(kind)), kind)
    (facts := facts or CardFacts()).check()
    run = Run.open(path)
    tensors = run.load_checkpoint(run.checkpoint_folder(weights)).model
    model = ModelBundle(run.config, tensors, run.tokenizer)
    with replacing(goal) as temporary_folder:
        writer, result = _write_model(run, kind, model, temporary_folder, options)
        _check_class(temporary_folder, kind, meant, run)
        config = run.config.model_copy(update={"search": result.search})
        notes = result.notes
        task = task_of(flat_settings(config))
        if changes := task.exported(flat_settings(config)):
            config = config.with_settings(changes)
            notes = (*notes, task.export_note)
        alike = replace(run, config=config)
        fitting = _fitting(alike, sentences)
        _refuse_endless(alike, run.folder.path, fitting)
        parity = compare(
            HeedfulReference(alike, weights),
            writer.open_engine(temporary_folder, model),
            fitting,
            result.bound,
            None if sentences else _PATIENCE,
        )
        parity.check()
        card = model_card(run, name or goal.name, library_of(kind), weights=weights, facts=facts)
        write_card(temporary_folder, card)
    return parity, notes


def _writers_of(kind: str) -> list[str]:
    """List the toolkits whose writers may write a model."""
    return [*written_classes()] if kind == HUGGING_FACE else [kind]


def _write_model(
    run: Run, kind: str, model: ModelBundle, folder: Path, options: WriteOptions
) -> tuple[Writer, ExportResult]:
    """Write a model with the first writer whose format fits it; the others write no files."""
    refusals = []
    for name in _writers_of(kind):
        writer: Writer = load_writer(name)
        try:
            _refuse_other_parts(run, name)
            return writer, writer.write(model, folder, options)
        except ExchangeError as error:
            if kind != HUGGING_FACE:
                raise
            refusals.append(f"{written_classes()[name]}: {str(error).rstrip('.')}")
    raise ExchangeError(
        f"a model class of transformers must be able to express {run.folder.path}, but none can. "
        f"{'. '.join(refusals)}."
    )


def _check_class(folder: Path, kind: str, meant: str, run: Run) -> None:
    """Raise `ExchangeError` if `--format` names a Hugging Face class other than the folder's."""
    if meant and (model_type := read_settings_file(folder / _CONFIG).get("model_type")) != meant:
        raise ExchangeError(
            f"--format must name the class of {run.folder.path}, which is {model_type}, but names "
            f"{meant}; use --format {kind}."
        )


def read_sentences(path: Path | None) -> list[str]:
    """Read the sentences of a parity check. Raises `TextError` if the file cannot be read."""
    return [] if path is None else [line for line in read_lines(path) if line.strip()]


def _fitting(run: Run, sentences: Sequence[str]) -> list[str]:
    """Select the sentences, given or generated, that are within the model's length limit."""
    most = run.config.search.max_source_length
    hint = "give shorter sentences"
    if not sentences:
        sentences = sample_sentences(run.tokenizer)
        hint = "this model's limit is below the length of any generated sentence"
    sentences = run.read_sources(sentences)  # both sides get the same text
    rows = run.tokenizer.encode_source(sentences)
    fitting = [text for text, row in zip(sentences, rows, strict=True) if len(row) <= most]
    if not fitting:
        raise ExchangeError(
            f"the sentences of the comparison must have at most {most:,} subwords "
            f"(search.max_source_length), but all are longer; {hint}."
        )
    return fitting


def _refuse_endless(run: Run, origin: Path, sentences: Sequence[str]) -> None:
    """Refuse search settings that may take over half a minute per sentence of the parity check."""
    search, rows = run.config.search, run.tokenizer.target_size
    longest = max(len(row) for row in run.tokenizer.encode_source(sentences))
    most = LengthLimit.parse(search.max_length).tokens(longest)
    hypotheses = search.beam * most
    if hypotheses > _MOST_ROWS or hypotheses * rows > _MOST_CANDIDATES:
        raise ExchangeError(
            f"a search with {origin} must end within a minute, but its beam of {search.beam:,} "
            f"scores {rows:,} subwords in each of up to {most:,} steps; lower the beam or the "
            "length limit."
        )


def _refuse_other_parts(run: Run, kind: str) -> None:
    """Refuse a family or parts of a Transformer that the format cannot express."""
    model = run.config.model
    others = [
        (f"model.{name}", value)
        for name in _BEYOND_THE_PAPER
        if (value := getattr(model, name)) != type(model).model_fields[name].default
    ]
    for task in tasks():
        others += task.beyond_transformer(flat_settings(run.config))
    for family in families():
        others += family.beyond_transformer(model)
    if model.tie_embeddings == "embeddings":
        others.append(("model.tie_embeddings", "embeddings"))
    if rules := run.config.search.rules:
        others.append(("search.rules", rules))
    others += model.attention.changed()
    expressed = getattr(load_writer(kind), "EXPRESSES", ())
    reasons = [
        f"`{name}` is {format_value(value)}"
        for name, value in others
        if not {name, f"{name}={value}"} & {*expressed}
    ]
    if run.tokenizer.frame is not None and "languages of the tokenizer" not in expressed:
        reasons.append("its tokenizer puts language tokens around each text")
    if reasons:
        named = " and ".join(reasons)
        raise ExchangeError(
            f"{kind} cannot express the model in {run.folder.path}, because {named}; `heedful "
            "serve` and `heedful translate` run this model as it is."
        )


def _refuse_taken(folder: Path) -> None:
    """Refuse an existing output folder."""
    if folder.exists():
        raise RunFolderError(
            f"the output must be a new folder, but {folder} exists; name another folder."
        )
