"""
Before the first step: the run folder, the choices for this machine, the subwords, the pairs.

Everything here is done once, on rank zero, and found again by whoever resumes.
"""

from typing import Any

from heedful.checkpoint.rundir import RunFolder, writing
from heedful.config.schema import RunConfig
from heedful.data.clean import PairFilter
from heedful.data.corpus import Corpus, language_of
from heedful.data.encoded import EncodedPairs, encode_corpus
from heedful.data.tokenizer import Tokenizer
from heedful.errors import DeviceError, RunFolderError
from heedful.machine import describe_machine, resolve_device, resolve_precision, resolve_threads
from heedful.training.distributed import Ranks
from heedful.workflow.run import (
    Choices,
    Run,
    read_choices,
    read_corpus,
    read_settings,
    write_config,
)

# Settings that say how long, how often and where, but not what the weights become.
_MAY_CHANGE = frozenset(
    f"train.{name}"
    for name in (
        "steps",
        "minutes",
        "checkpoint_steps",
        "checkpoint_minutes",
        "keep_last",
        "keep_best",
        "validate_steps",
        "patience",
    )
)
_CPU_MICRO_BATCH_TOKENS = 4096


def with_languages(config: RunConfig, corpus: Corpus) -> RunConfig:
    """
    Fill the languages in from the files' endings where they are not set.

    Parameters
    ----------
    config : RunConfig
        Settings.
    corpus : Corpus
        The text files.

    Returns
    -------
    RunConfig
        With languages, if the endings tell any.

    Notes
    -----
    `train.en.gz` is English.
    """
    return config.with_settings(
        {
            "data.source_language": config.data.source_language or language_of(corpus.source[0]),
            "data.target_language": config.data.target_language or language_of(corpus.target[0]),
        }
    )


def claim_folder(folder: RunFolder, config: RunConfig, corpus: Corpus, resume: bool) -> None:
    """
    Make the run folder, or check that it may be continued with these settings.

    Parameters
    ----------
    folder : RunFolder
        Where the run will be.
    config : RunConfig
        Its settings.
    corpus : Corpus
        Its text.
    resume : bool
        Whether there may be a run already.

    Returns
    -------
    None
        Nothing.

    Notes
    -----
    Raises `RunFolderError` if the folder is taken or holds another run.
    """
    if not resume:
        if folder.path.exists() and (not folder.path.is_dir() or any(folder.path.iterdir())):
            raise RunFolderError(
                f"--out must be a new or empty folder, but {folder.path} is not; add --resume to "
                "continue the run in it, or name another folder."
            )
    elif folder.config.exists():
        _check_same(folder, config, corpus)
    with writing(folder.path):
        folder.path.mkdir(parents=True, exist_ok=True)


def _check_same(folder: RunFolder, config: RunConfig, corpus: Corpus) -> None:
    """Refuse to resume what would become another run."""
    old, new = _flat(read_settings(folder).to_dict()), _flat(config.to_dict())
    other = [
        f"{key} was {old.get(key)!r} and is now {new.get(key)!r}"
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key) and key not in _MAY_CHANGE
    ]
    if other:
        raise RunFolderError(
            f"--resume must continue the run in {folder.path} with the settings it was begun with, "
            f"but {'; '.join(other)}. Use the same settings, or start a new run with another --out."
        )
    sizes = {side: [file["bytes"] for file in files] for side, files in _sizes(corpus).items()}
    began = read_corpus(folder)
    if {side: [f["bytes"] for f in began.get(side, [])] for side in sizes} != sizes:
        raise RunFolderError(
            f"--resume must continue the run in {folder.path} with the text it was begun with, but "
            "the files now have other sizes. Give the same files, or start a new run."
        )


def _flat(tables: dict[str, Any]) -> dict[str, Any]:
    """Name settings by their dotted keys."""
    flat = {}
    for key, value in tables.items():
        if isinstance(value, dict):
            flat.update({f"{key}.{name}": inner for name, inner in value.items()})
        else:
            flat[key] = value
    return flat


def _sizes(corpus: Corpus) -> dict[str, list[dict[str, Any]]]:
    """List names and sizes of the text files."""
    sides = {"source": corpus.source, "target": corpus.target}
    return {
        side: [{"file": path.name, "bytes": path.stat().st_size} for path in paths]
        for side, paths in sides.items()
    }


def choose(
    folder: RunFolder, config: RunConfig, corpus: Corpus, ranks: Ranks, inexact: bool
) -> Choices:
    """
    Choose for this machine, or honour what an earlier sitting chose.

    Parameters
    ----------
    folder : RunFolder
        Where the run is.
    config : RunConfig
        Its settings.
    corpus : Corpus
        Its text.
    ranks : Ranks
        Who trains together.
    inexact : bool
        Whether a machine without the device of the first sitting may go on.

    Returns
    -------
    Choices
        The same on every rank.

    Notes
    -----
    Written to `config.json` before the first step.
    """
    if ranks.is_first:
        choices = _honoured(folder, inexact) if folder.config.exists() else _chosen(config, ranks)
        write_config(folder, config, choices, _sizes(corpus), describe_machine())
    ranks.tell(0.0)
    return read_choices(folder)


def _chosen(config: RunConfig, ranks: Ranks) -> Choices:
    """Choose device, threads, precision and the size of what is computed at once."""
    settings = config.train
    device = resolve_device(settings.device)
    threads = resolve_threads(settings.threads)
    precision = resolve_precision(settings.precision, device)
    micro = settings.micro_batch_tokens
    if micro is None and device.type == "cuda":
        micro = -(-settings.batch_tokens // ranks.world)
    elif micro is None:
        micro = _CPU_MICRO_BATCH_TOKENS
    return Choices(device.type, precision, threads, min(micro, settings.batch_tokens))


def _honoured(folder: RunFolder, inexact: bool) -> Choices:
    """Return an earlier sitting's choices if this machine can keep them."""
    choices = read_choices(folder)
    try:
        resolve_device(choices.device)
    except DeviceError as error:
        if not inexact:
            raise RunFolderError(
                f"--resume must continue on {choices.device} in {choices.precision}, as the run in "
                f"{folder.path} began, to repeat it bit for bit, but that device is not here; add "
                "--inexact to go on with what this machine has."
            ) from error
        device = resolve_device("auto")
        precision = resolve_precision("auto", device)
        return Choices(device.type, precision, resolve_threads(0), choices.micro_batch_tokens)
    return choices


def prepare_data(
    folder: RunFolder, config: RunConfig, corpus: Corpus, ranks: Ranks
) -> tuple[Run, EncodedPairs]:
    """
    Train the subwords and encode the pairs, if that has not been done.

    Parameters
    ----------
    folder : RunFolder
        Where the run is.
    config : RunConfig
        Its settings.
    corpus : Corpus
        Its text.
    ranks : Ranks
        Who trains together; the first one works, the others wait.

    Returns
    -------
    run : Run
        With its tokenizer.
    pairs : EncodedPairs
        Memory-mapped ids.

    Notes
    -----
    Both are written whole or not at all, so a killed run begins here again.
    """
    if ranks.is_first:
        if not (folder.path / "tokenizer.json").exists():
            for _ in corpus.pairs():
                pass  # unequal line counts and broken characters show before any work is done
            data = config.data
            Tokenizer.train(
                corpus.source,
                corpus.target,
                kind=data.subwords,
                vocabulary_size=data.vocabulary_size,
                shared=data.shared_vocabulary,
                source_language=data.source_language,
                target_language=data.target_language,
                seed=config.train.seed,
            ).save(folder.path)
        if not folder.data.exists():
            pair_filter = PairFilter(config.data.max_length, config.data.max_ratio)
            encode_corpus(corpus, Tokenizer.load(folder.path), pair_filter, folder.data)
    ranks.tell(0.0)
    run = Run.open(folder.path)
    return run, EncodedPairs.open(folder.data, run.tokenizer.fingerprint)
