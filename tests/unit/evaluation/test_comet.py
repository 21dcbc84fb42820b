from importlib.util import find_spec

import pytest

from heedful.errors import MissingExtra, TextError
from heedful.evaluation.comet import comet_score, require_comet


def test_one_reference_is_compared():
    with pytest.raises(TextError, match="one reference, but there are 2"):
        comet_score("Unbabel/wmt22-comet-da", ["a"], ["b"], [["c"], ["d"]])


def test_a_missing_package_is_reported_with_all_that_comet_needs():
    if find_spec("comet"):
        assert callable(require_comet([[]]).load_from_checkpoint)
        return
    for call in (lambda: require_comet([[]]), lambda: comet_score("model", ["a"], ["b"], [["c"]])):
        with pytest.raises(MissingExtra) as caught:
            call()
        message = str(caught.value)
        assert "\n" not in message
        for need in ("pip install 'heedful[comet]'", "2.3 GB", "--source", "GPU", "not installed"):
            assert need in message
