"""A text and measured systems, for tests of experiments and of the paper's tables."""

from pathlib import Path

import pytest

from heedful.data.toy_grammar.corpus import write_grammar_text
from heedful.experiments.corpus import TableCorpus
from heedful.experiments.measured import CurvePoint, MeasuredSystem


@pytest.fixture(scope="session")
def corpus(tmp_path_factory) -> TableCorpus:
    """A small text of the grammar."""
    folder: Path = tmp_path_factory.mktemp("corpus")
    write_grammar_text(folder, (1_000, 20, 30))
    return TableCorpus(folder, "en", "fr", 300, 2)


@pytest.fixture
def make():
    """A function that makes measured systems."""

    def made(name, **changed):
        curve = tuple(
            CurvePoint(step, 2.0 * step, 1e9 * step, 100 / step, 0.1 * step)
            for step in (100, 200, 300)
        )
        plain = {
            "title": name,
            "parameters": 1_000,
            "steps": 300,
            "target_tokens": 3_000,
            "seconds": 600.0,
            "tokens_per_second": 5.0,
            "flops": 3e11,
            "perplexity": 5.0,
            "valid_bleu": 30.0,
            "valid_interval": (29.0, 31.0),
            "bleu": 28.0,
            "interval": (27.0, 29.0),
            "chrf": 50.0,
            "signature": "s",
            "sentences_per_second": 7.0,
            "curve": curve,
            "search_tokens_per_second": 90.0,
        }
        return MeasuredSystem(name, **{**plain, **changed})

    return made
