"""
Conversion of a model from the hub to a run folder: download, checks and a parity check.

config.json determines the class before large files are downloaded. Only settings, subwords and one
layout of the weights are downloaded; no code of a model is ever downloaded or run.
"""

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from heedful._version import __version__
from heedful.errors import DownloadError, ExchangeError, escape_controls
from heedful.exchange.convert import import_model
from heedful.exchange.hub.cache import CONVERSION, ModelCache, say
from heedful.exchange.hub.client import HubClient, HubFile, HubModel
from heedful.exchange.hub.transfer import digest_of
from heedful.exchange.huggingface.files import text_files, weights_name
from heedful.exchange.huggingface.weights import shard_names
from heedful.exchange.registry import HUGGING_FACE
from heedful.files import replacing
from heedful.runs.folder import write_json
from heedful.runs.foreign_models import recognize
from heedful.runs.hub_names import RECORD, HubName

_CONFIG = "config.json"
# Files of settings and subwords have a few megabytes; sizes are checked before a download.
_LARGEST_TEXT = 1 << 27


def fetch_run(name: HubName) -> Path:
    """
    Return the run of a model; convert the model first if needed.

    A revision stays pinned to the commit of its first use; a pinned commit needs no network, and
    not even huggingface_hub.
    """
    cache = ModelCache(name.repo)
    if run := cache.find(name.revision):
        return run
    client = HubClient(f"{name} is not a folder here; as a model of Hugging Face's hub it")
    with cache.locked():
        if run := cache.find(name.revision):  # another process was faster
            return run
        commit = cache.commit_of(name.revision)
        model = client.describe(HubName(name.repo, commit or name.revision))
        if not cache.find(model.commit):
            _convert(client, model, cache, name.revision)
        cache.pin(name.revision, model.commit)
    return cache.place(model.commit)


def update_run(name: HubName) -> tuple[str | None, str]:
    """Convert the newest commit of a revision; return the old and the new commit."""
    cache = ModelCache(name.repo)
    client = HubClient("updating a model of Hugging Face's hub")
    with cache.locked():
        before = cache.commit_of(name.revision)
        model = client.describe(name)
        if not cache.find(model.commit):
            _convert(client, model, cache, name.revision)
        cache.pin(name.revision, model.commit)
    return before, model.commit


def download_original(name: HubName) -> Path:
    """Download the files that the import of a model needs, and return their folder."""
    client = HubClient(f"{name} is not a folder here; as a model of Hugging Face's hub it")
    model = client.describe(name)
    _announce(client, model)
    return download(client, model)[0].parent


def download(client: HubClient, model: HubModel) -> list[Path]:
    """Download the files that the import of a model needs, config.json first."""
    config = _fetch(client, model, _CONFIG, _LARGEST_TEXT)
    known = recognize(config.parent)
    if known is None or not known.kind:
        title = "not a model of a class that heedful reads" if known is None else known.name
        advice = "name another model" if known is None else known.advice
        raise ExchangeError(f"{model.repo} is {title}; {advice}.")
    weights = weights_name(model.files)
    if weights is None:
        raise ExchangeError(
            f"{model.repo} must contain weights for PyTorch (model.safetensors or "
            "pytorch_model.bin), but contains none; name another model."
        )
    files = [_fetch(client, model, file, _LARGEST_TEXT) for file in text_files(model.files)]
    files.append(_fetch(client, model, weights))
    if files[-1].suffix == ".json":
        shards = sorted({*shard_names(files[-1]).values()})
        files += [_fetch(client, model, file) for file in shards]
    client.record(model)
    return [config, *files]


def _fetch(client: HubClient, model: HubModel, file: str, most: int | None = None) -> Path:
    """Download one file; refuse a file that is missing or too large for its kind."""
    listed = model.files.get(file)
    if listed is None:
        raise DownloadError(
            f"{model.repo} must contain {file}, with a digest, but commit {model.commit[:12]} does "
            "not; the repository is incomplete or contains no model."
        )
    if most is not None and (listed.size or 0) > most:
        raise ExchangeError(
            f"{file} of {model.repo} must have at most {most >> 20} MiB, but has {listed.size:,} "
            "bytes; it is not a file of settings or subwords."
        )
    return client.fetch(model, file)


def _convert(client: HubClient, model: HubModel, cache: ModelCache, revision: str) -> None:
    """Download and convert a commit; the complete run gets its final name at the end."""
    license = _announce(client, model)
    files = download(client, model)
    say(f"{model.repo}: converting it once ...")
    with replacing(cache.folder / model.commit) as temporary_folder:
        run = temporary_folder / HubName(model.repo).title
        report, notes = import_model(HUGGING_FACE, files[0].parent, run)
        record = {
            "name": model.repo,
            "revision": revision,
            "commit": model.commit,
            "license": license,
            "endpoint": client.shown,
            "heedful": __version__,
            "conversion": CONVERSION,
            "converted": datetime.now(UTC).isoformat(" ", "seconds"),
            "files": {file.name: _digest(file, model.files[file.name]) for file in files},
            "report": str(report),
            "parity": None if report.parity is None else asdict(report.parity),
            "notes": list(notes),
        }
        write_json(run / RECORD, record)
    for note in notes:
        say(f"{model.repo}: {note}")
    say(f"{model.repo}: {report}.")


def _announce(client: HubClient, model: HubModel) -> str:
    """Print the origin of a model, and return its license."""
    license = escape_controls(" ".join(model.license.split()))[:80] or "not stated"
    page = f"{client.shown}/{model.repo}"
    say(f"{model.repo}, commit {model.commit[:12]}, license: {license} ({page})")
    return license


def _digest(path: Path, file: HubFile) -> dict[str, object]:
    """Record size and SHA-256 of a downloaded file."""
    sha256 = file.digest if len(file.digest) == 64 else digest_of(path, "0" * 64)
    return {"bytes": path.stat().st_size, "sha256": sha256}
