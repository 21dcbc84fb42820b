"""transformers as an engine: what it prints is silenced, and its settings are restored."""

import pytest
from transformers.utils import logging

from heedful.exchange.huggingface.engine import _quietly


@pytest.mark.parametrize("shown", [True, False])
def test_progress_bars_are_as_before(shown):
    before = logging.is_progress_bar_enabled()
    switch = {True: logging.enable_progress_bar, False: logging.disable_progress_bar}
    switch[shown]()
    try:
        with _quietly():
            assert not logging.is_progress_bar_enabled()
        assert logging.is_progress_bar_enabled() == shown
    finally:
        switch[before]()
