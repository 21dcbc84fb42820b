"""Validation: held-out pairs, their loss, and scores of decoded translations."""

from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b

from heedful.arguments import Files
from heedful.config.schema import RunConfig
from heedful.data.batching import Collator
from heedful.data.length_batches import by_length
from heedful.data.overlap.leaks import HeldOutPairs
from heedful.errors import TextError
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.preparation.held_out import held_out_files, note_on_empty, read_held_out
from heedful.preparation.pair_text import PAIRS
from heedful.preparation.training_data import Sizes, digest_of, file_records
from heedful.runs.folder import RunFolder
from heedful.runs.run import Run
from heedful.search.greedy import greedy_search
from heedful.search.scoring import pair_log_probabilities
from heedful.search.settings import SearchOptions
from heedful.text.corpus import Corpus
from heedful.text.lines import without_controls
from heedful.text.pairs import PairRows, stored_pairs
from heedful.training.health.registry import KEY, measure_all, take_sample
from heedful.training.log import perplexity
from heedful.training.options import TrainingOptions
from heedful.training.state import Validation


def held_out_corpus(source: Files | None, target: Files | None, config: RunConfig) -> Corpus | None:
    """
    Find the validation files; return None if there are none.

    Raises `TextError` if one side is missing, or if both are missing and a setting needs them.
    """
    corpus = held_out_files(source, target)
    if corpus is None:
        if config.train.patience is not None:
            raise TextError(
                "train.patience waits for better validations and needs --valid-source and "
                "--valid-target, but they are missing; give them or set train.patience=none."
            )
        if config.train.schedule == "plateau":
            raise TextError(
                "train.schedule=plateau lowers the learning rate when validations stop improving "
                "and needs --valid-source and --valid-target, but they are missing; give them or "
                "set another schedule."
            )
    return corpus


def files_of(corpus: Corpus) -> Sizes:
    """Return records of the validation files, with digests, for a run folder."""
    return {
        name: [
            {**entry, "digest": digest_of(text.path)}
            for entry, text in zip(file_records(texts), texts, strict=True)
        ]
        for name, texts in (("valid_source", corpus.source), ("valid_target", corpus.target))
    }


def find_held_out(
    options: TrainingOptions, config: RunConfig, resumed: RunFolder | None
) -> tuple[HeldOutPairs | None, Sizes, str]:
    """
    Find and read the held-out pairs: from files, from memory, or from a resumed run.

    Returns the pairs or None, their files as recorded in the run, and a note on omitted pairs and
    rows. Raises `TextError` if pairs are given in two forms, are empty, or are required but
    missing.
    """
    source, target = options.valid_source, options.valid_target
    if options.valid_pairs is not None:
        if source is not None or target is not None:
            raise TextError(
                "`valid_pairs` are for validation, but --valid-source or --valid-target was given "
                "too; give one or the other."
            )
        return _read_held_out_pairs(options.valid_pairs, config)
    stored = resumed and stored_pairs(resumed.path / PAIRS, "valid")
    if stored and source is None and target is None:
        corpus: Corpus | None = stored
    else:
        corpus = held_out_corpus(source, target, config)
    if corpus is None:
        return None, {}, ""
    pairs, note = read_held_out(corpus)
    return pairs, files_of(corpus), note


def _read_held_out_pairs(
    pairs: Iterable[object], config: RunConfig
) -> tuple[HeldOutPairs, Sizes, str]:
    """Read held-out pairs from memory; also return records of the files that will store them."""
    languages = config.data.source_language, config.data.target_language
    rows = list(PairRows("valid_pairs", pairs).read(*languages))
    filled = [(line, s, t) for line, (s, t) in enumerate(rows, 1) if s.strip() and t.strip()]
    if not filled:
        raise TextError(
            "`valid_pairs` must have a pair with text on both sides, but have none; give other "
            "pairs."
        )
    numbers, sources, references = map(list, zip(*filled, strict=True))
    records: Sizes = {}
    for side, lines in (("source", sources), ("target", references)):
        content = "".join(f"{line}\n" for line in lines).encode()
        digest = blake2b(content, digest_size=16).hexdigest()
        records[f"valid_{side}"] = [
            {"file": f"valid.{side}", "bytes": len(content), "digest": digest}
        ]
    held_out = HeldOutPairs(sources, references, numbers)
    return held_out, records, note_on_empty(len(rows) - len(filled))


Ids = Sequence[int]
# Maximum number of source and target tokens computed at once; chosen by hand.
_BATCH_TOKENS = 4096


def validator(
    model: EncoderDecoder,
    run: Run,
    collator: Collator,
    sources: Sequence[str],
    references: Sequence[str],
) -> Callable[[], Validation]:
    """
    Create a function that validates a model on held-out pairs.

    `model`: must be in evaluation mode; each call uses the model's current weights.

    The loss is the mean negative log-probability of a target token, without smoothing or dropout.
    BLEU is cased sacreBLEU of greedy translations, which cost less than translations by beam search
    and suffice to compare checkpoints.
    """
    run.check_forbidden_ids()  # so that errors are reported before the first step
    config, tokenizer = run.config, run.tokenizer
    most = config.data.max_length
    lines = run.read_sources(sources)
    source_ids = [ids[:most] for ids in tokenizer.encode_source(lines)]
    targets = run.read_targets(references)
    target_ids = [ids[:most] for ids in tokenizer.encode_target(targets)]

    sample = take_sample(model, collator, source_ids, target_ids)
    score = run.task.scorer(references)
    samples = min(config.train.validation_samples, len(references))
    shown = [index * len(references) // samples for index in range(samples)]

    def validate() -> Validation:
        loss = mean_loss(model, collator, source_ids, target_ids)
        translations = _translate(model, run, collator, lines, source_ids)
        result: Validation = {
            "valid_loss": loss,
            "valid_perplexity": perplexity(loss),
            **score(translations),
        }
        if measured := measure_all(sample):
            result[KEY] = measured
        if shown:
            texts = {"source": sources, "reference": references, "translation": translations}
            result["samples"] = [
                {name: lines[index] for name, lines in texts.items()} for index in shown
            ]
        return result

    return validate


def mean_loss(
    model: EncoderDecoder, collator: Collator, sources: Sequence[Ids], targets: Sequence[Ids]
) -> float:
    """
    Compute the mean negative log-probability of a target token.

    `sources, targets`: ids of the pairs, without special symbols.

    The perplexity in the paper's Table 3 is the exponential of this loss on newstest2013.
    """
    total, tokens = 0.0, 0
    lengths = [len(s) + len(t) for s, t in zip(sources, targets, strict=True)]
    for rows in by_length(lengths, _BATCH_TOKENS):
        sides = [sources[i] for i in rows], [targets[i] for i in rows]
        for log_probabilities in pair_log_probabilities(model, collator, *sides):
            total -= sum(log_probabilities)
            tokens += len(log_probabilities)
    return total / tokens


def _translate(
    model: EncoderDecoder,
    run: Run,
    collator: Collator,
    lines: Sequence[str],
    sources: Sequence[Ids],
) -> list[str]:
    """Translate by greedy search, in the order of the lines. `sources`: ids of the lines."""
    settings, task = SearchOptions().over(run.config.search), run.task
    translations = [""] * len(sources)
    for rows in by_length([len(ids) for ids in sources], _BATCH_TOKENS):
        # a line whose output would exceed the limit gets an empty translation
        room = {i: settings.limit.tokens(len(sources[i])) for i in rows}
        rows = [i for i in rows if task.has_room(lines[i], room[i])]
        if not rows:
            continue
        source = collator.source([sources[i] for i in rows]).to(model.device)  # (rows, source)
        limits = [room[i] for i in rows]
        rules = run.rules([lines[i] for i in rows], limits, source.device, settings.rules)
        hypotheses = greedy_search(model, source, limits, settings, rules)
        for i, hypothesis in zip(rows, hypotheses, strict=True):
            translations[i], _ = without_controls(run.tokenizer.decode(hypothesis.tokens))
    return translations
