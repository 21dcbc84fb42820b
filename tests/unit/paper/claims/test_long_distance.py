import numpy as np
import pytest
import torch

from heedful.bench.random_run import make_random_run
from heedful.config.load import load_config
from heedful.paper.claims import long_distance
from heedful.paper.claims.models import LONG
from heedful.paper.claims.repeated_name import DISTANCES, NAMES
from heedful.paper.claims.table import CLAIMS
from heedful.paper.claims.trainings import RECIPE

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
        ((0.97, 0.92), False),  # a little, but less than 0.1
        ((0.97, 0.87), None),  # near 0.1
        ((0.7, 0.7), False),  # worse, but not by distance
        ((0.2, 0.1), None),  # has learned nothing
    ],
)
def test_what_is_far_must_be_lost_by_both_and_kept_by_the_transformer(
    trainings, monkeypatch, recurrent, holds
):
    known = {
        "transformer": probabilities(0.95, 0.95),
        "recurrent": probabilities(*recurrent),
        "convolutional": probabilities(0.9, 0.1),
        "far-reaching": probabilities(0.9, 0.3),
    }
    monkeypatch.setattr(long_distance, "_probabilities", lambda _, name: known[name])
    monkeypatch.setattr(long_distance, "_gradient_shares", lambda *_: (1.0,) * len(DISTANCES))
    checked = CLAIMS["long"].check(trainings(dict.fromkeys(NAMED, 8)))
    assert checked.holds is holds
    assert checked.panels[0].sizes == DISTANCES
    assert ("train longer" in checked.sentence) is (recurrent[0] < 0.5)
    if recurrent == (0.97, 0.87):
        assert checked.headline == (
            "Recurrent with attention: from 1 to 32 words, the probability of the name falls by "
            "0.10 (0.10 to 0.10)."
        )
    assert "less. Recurrent with attention: 0." in checked.sentence


def test_a_transformer_that_loses_the_name_too_decides_against_it(trainings, monkeypatch):
    known = dict.fromkeys(NAMED, probabilities(0.97, 0.1)) | {
        "transformer": probabilities(0.97, 0.55)
    }
    monkeypatch.setattr(long_distance, "_probabilities", lambda _, name: known[name])
    monkeypatch.setattr(long_distance, "_gradient_shares", lambda *_: (1.0,) * len(DISTANCES))
    assert CLAIMS["long"].check(trainings(dict.fromkeys(NAMED, 8))).holds is False


def test_repetitions_of_the_training_text_are_counted_by_distance(trainings):
    found = trainings(dict.fromkeys(NAMED, 8))
    lines = ["Anna a Anna b Anna", *["Anna a b Anna"] * 4, "Anna c d Anna"]
    found.corpus.file("train", "yy").write_text("\n".join(lines) + "\n", "utf-8")
    assert long_distance._practice(found) == (
        "The training text repeats a name 2 times after 1 word, and 1 times after 32 words."
    )


@pytest.fixture
def random_models(trainings):
    """Trainings of random weights, and a text of their words: a name and its repetition."""
    found = trainings(dict.fromkeys(NAMED, 8))
    words = [f"w{n}" for n in range(1, 41)]
    lines = [
        " ".join([*words[: 35 - distance], "w9", *words[35 - distance : 35], "w9"])
        for distance in DISTANCES
    ]
    for language, each in (("xx", ["w1 w2"] * 12), ("yy", lines * 2)):
        found.corpus.file("test", language).write_text("\n".join(each) + "\n", "utf-8")
    for system in LONG:
        settings = [one for one in system.settings if one.startswith("model.")]
        config = load_config(RECIPE, [*settings, "model.d_model=16", "data.vocabulary_size=50"])
        folder = found.folder / "runs" / system.name
        folder.mkdir(parents=True)
        make_random_run(folder, config, 50)
    return found, lines


def test_probabilities_are_those_of_the_last_word(random_models):
    found, lines = random_models
    checked = CLAIMS["long"].check(found)
    assert checked.holds is None  # random weights know no name
    translator, begun = found.translator("transformer"), lines[0].rpartition(" ")[0]
    chances = {
        name: np.exp(translator.score("w1 w2", f"{begun} {name}")[-2])  # the end symbol follows
        for name in ("w9", *NAMES)
    }
    curve = checked.panels[0].curves[0]
    assert curve.values[0] == pytest.approx(chances["w9"] / sum(chances.values()), rel=1e-4)


def test_a_convolution_has_no_gradient_at_a_name_beyond_its_reach(random_models):
    checked = CLAIMS["long"].check(random_models[0])
    shares = {curve.name: curve.values for curve in checked.panels[1].curves}
    near, *_, far = shares["convolutional (2 layers, kernel 3)"]
    assert near > 0
    assert far == 0
    reached = [share > 0 for share in shares["convolutional (2 layers, kernel 3)"]]
    assert reached == [True, True, True, False, False, False]  # 1, 2 and 4 words, not 8
    for name in ("Transformer", "convolutional (5 layers, kernel 9)"):
        assert min(shares[name]) > 0


def test_a_word_of_several_subwords_has_the_product_of_their_probabilities(
    random_models, monkeypatch
):
    found, lines = random_models
    monkeypatch.setattr(
        long_distance,
        "_words",
        lambda _tokenizer, target: [range(n, n + 2) for n in range(len(target.split()) - 1)],
    )
    translator = found.translator("transformer")
    (known,) = long_distance._last_words(translator, ["w1 w2"], [lines[0]])
    scores = translator.score("w1 w2", lines[0])
    assert known == pytest.approx(np.exp(sum(scores[-3:-1])), rel=1e-4)
