"""Each failure is one paragraph; test_fetch.py has those of a server."""

import errno

import pytest

from heedful.errors import DownloadError, StorageError
from heedful.exchange.hub.failures import explain
from heedful.runs.hub_names import HubName


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (
            OSError(errno.ENOSPC, "No space left", "/x/y"),
            StorageError,
            "/x/y cannot be written: No space",
        ),
        (OSError("Consistency check failed:\nsize"), DownloadError, "Consistency check failed"),
        (ValueError("odd"), DownloadError, "ValueError: odd"),
    ],
)
def test_what_the_library_raises_is_told(error, kind, words):
    told = explain(error, HubName("a/b"), "https://hub", False)
    assert type(told) is kind
    assert words in str(told)
    assert "\n" not in str(told)


def test_offline_every_lack_has_one_reason():
    told = explain(ValueError("no file"), HubName("a/b"), "https://hub", True)
    assert "use it once without HF_HUB_OFFLINE" in str(told)
