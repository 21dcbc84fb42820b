"""The training texts of Multi30k that tests/unit leaves out."""

import pytest

from tests.unit.evaluation.test_moses import multi30k_differences


@pytest.mark.parametrize("language", ["cs", "de", "en", "fr"])
def test_multi30k_is_what_the_perl_scripts_made_of_it(corpora, language):
    assert multi30k_differences(corpora, language, "train") == []
