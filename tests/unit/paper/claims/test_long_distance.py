import numpy as np
import pytest
import torch

from heedful.bench.random_run import make_random_run
from heedful.config.schema import RunConfig
from heedful.paper.claims import long_distance
from heedful.paper.claims.long_distance import check_long
from heedful.paper.claims.models import LONG
from heedful.paper.claims.repeated_name import DISTANCES

SMALL = {
    "model.d_model": 16,
    "model.d_ff": 32,
    "model.heads": 2,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "data.vocabulary_size": 50,
}
NAMED = [one.name for one in LONG]


def probabilities(near, far):
    """Of twenty lines of each distance, falling from near to far."""
    noise = torch.linspace(-0.05, 0.05, 20).numpy()[:, None]
    return np.linspace(near, far, len(DISTANCES)) + noise


@pytest.mark.parametrize(
    ("recurrent", "holds"),
    [
        ((0.9, 0.2), True),
        ((0.9, 0.9), False),  # nothing is lost
        ((0.6, 0.6), False),  # worse, but not by distance
        ((0.2, 0.1), None),  # has learnt nothing
    ],
)
def test_what_is_far_must_be_lost_by_both_and_kept_by_the_transformer(
    trainings, monkeypatch, recurrent, holds
):
    known = {
        "transformer": probabilities(0.95, 0.95),
        "recurrent": probabilities(*recurrent),
        "convolutional": probabilities(0.9, 0.1),
    }
    monkeypatch.setattr(long_distance, "_probabilities", lambda _, name: known[name])
    monkeypatch.setattr(long_distance, "_gradient_shares", lambda *_: (1.0,) * len(DISTANCES))
    checked = check_long(trainings(dict.fromkeys(NAMED, 8)))
    assert checked.holds is holds
    assert checked.panels[0].sizes == DISTANCES
    assert ("nearest word" in checked.sentence) is (holds is None)


def test_probabilities_and_gradients_are_those_of_the_last_word(trainings):
    found = trainings(dict.fromkeys(NAMED, 8))
    words = [f"w{n}" for n in range(1, 41)]
    lines = [
        " ".join([*words[: 36 - distance], "w9", *words[36 - distance : 35], "w9"])
        for distance in DISTANCES
    ]
    for language, each in (("xx", ["w1 w2"] * 12), ("yy", lines * 2)):
        found.corpus.file("test", language).write_text("\n".join(each) + "\n", "utf-8")
    for name in NAMED:
        folder = found.folder / "runs" / name
        folder.mkdir(parents=True)
        make_random_run(folder, RunConfig().with_settings(SMALL), 50)
    checked = check_long(found)
    assert checked.holds is None  # random weights know no name
    translator = found.translator("transformer")
    scores = translator.score("w1 w2", lines[0])
    curve = checked.panels[0].curves[0]
    assert curve.values[0] == pytest.approx(np.exp(scores[-2]), rel=1e-4)  # the end symbol follows
    assert all(share > 0 for share in checked.panels[1].curves[0].values)
