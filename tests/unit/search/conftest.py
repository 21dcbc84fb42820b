"""Searches run twice: with plain models, and with models whose steps are recorded."""

import pytest

from tests.support import exhaustive_search


@pytest.fixture(scope="module", params=["plain", "recorded"])
def each_way(request, monkeypatch_module):
    monkeypatch_module.setattr(exhaustive_search, "RECORDS", request.param == "recorded")


@pytest.fixture(scope="module")
def monkeypatch_module():
    with pytest.MonkeyPatch.context() as patch:
        yield patch
