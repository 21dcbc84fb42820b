"""Searches run twice: with plain models, and with models whose steps are recorded."""

import pytest

from heedful.model.graphed import GraphedModel, can_record
from tests.support import exhaustive_search


@pytest.fixture(scope="module", params=["plain", "recorded"])
def tiny(request):
    """Make tiny models as `exhaustive_search.tiny` does, and replay graphs the second time."""
    if request.param == "plain":
        return exhaustive_search.tiny

    def recorded(*given, **changes):
        model = exhaustive_search.tiny(*given, **changes)
        assert can_record(model)
        return GraphedModel(model)

    return recorded
