"""Messages for failures of the hub and of its library."""

from importlib import import_module

from heedful.errors import DownloadError, ExchangeError, HeedfulError, StorageError
from heedful.runs.hub_names import HubName

_LOG_IN = "log in with `hf auth login`, or set HF_TOKEN"
_NOT_ALLOWED = (401, 403)


def explain(error: Exception, name: HubName, endpoint: str, is_offline: bool) -> HeedfulError:
    """Convert an exception of huggingface_hub to an error with a message of one paragraph."""
    errors = import_module("huggingface_hub.errors")
    refusals = {
        errors.GatedRepoError: (
            f"you must have access to {name}, but its authors require an agreement first; accept "
            f"it on {endpoint}/{name.repo}, then {_LOG_IN}, and try again."
        ),
        errors.RevisionNotFoundError: (
            f"the revision of {name.repo} must exist, but the hub has no {name.revision!r}; "
            f"{endpoint}/{name.repo}/tree/main lists its revisions."
        ),
        errors.RepositoryNotFoundError: (
            f"{name.repo} must be a folder here or a model on {endpoint}, but is neither, or is "
            f"private; check the spelling. For a private model, {_LOG_IN}."
        ),
    }
    for kind, message in refusals.items():
        if isinstance(error, kind):
            return ExchangeError(message)
    if is_offline:
        return DownloadError(
            f"{name} must have been fetched before it is used offline, but it is not on this "
            "machine; use it once without HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE."
        )
    if isinstance(error, errors.HfHubHTTPError):
        return _explain_status(error.response.status_code, name, endpoint)
    if isinstance(error, OSError) and error.errno and error.filename:
        return StorageError(
            f"downloaded files must be written, but {error.filename} cannot be written: "
            f"{error.strerror}. Free some space, or set HF_HOME to another folder."
        )
    reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    return DownloadError(
        f"{endpoint} must answer requests for {name}, but did not ({reason}); try again. "
        "Downloaded data is kept."
    )


def _explain_status(status: int, name: HubName, endpoint: str) -> HeedfulError:
    """Explain an HTTP status of the hub."""
    if status in _NOT_ALLOWED:
        return ExchangeError(
            f"the hub must allow access to {name.repo}, but answers {status}; {_LOG_IN} to a "
            "token that allows it."
        )
    return DownloadError(
        f"{endpoint} must answer requests for {name}, but answers {status}; try again later. "
        "Downloaded data is kept."
    )
