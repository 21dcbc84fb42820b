"""A Transformer of sizes alone, in a loop that is not heedful's."""

import jaxtyping
import pytest
import torch
from torch.nn import functional as F

import heedful
from heedful.config.model import ModelConfig
from heedful.config.recipes import recipe
from heedful.families.build import build_model
from heedful.model.initialize import initialize
from heedful.model.weights import parameter_count
from heedful.search.beam import beam_search
from tests.support.models import batch

SIZES = {"d_model": 16, "d_ff": 32, "heads": 2}


def test_the_defaults_are_the_base_model():
    with torch.device("meta"):
        model = heedful.Transformer(vocabulary=37_000)
    assert model.device.type == "meta"
    assert parameter_count(model) == 63_082_496  # of the recipe paper-base


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm": "pre", "dropout": 0.3, "activation": "gelu"},
        {"positions": "learned", "tie_embeddings": "output", "output_bias": True},
        {"positions": "halves", "tie_embeddings": "none", "scale_embeddings": False},
        {"positions": "none", "d_k": 4, "d_v": 6, "projection_bias": False, "residuals": False},
    ],
)
def test_it_is_the_model_that_a_recipe_of_the_same_sizes_makes(changes):
    model = heedful.Transformer(30, layers=2, max_length=9, seed=5, **SIZES, **changes)
    settings = {**SIZES, "encoder_layers": 2, "decoder_layers": 2, **changes}
    config = recipe("paper-base").with_settings(
        {f"model.{name}": value for name, value in settings.items()}
    )
    made = build_model(config.model, 30, 30, max_length=9)
    initialize(made, 5)
    assert type(made) is heedful.Transformer
    assert repr(model) == repr(made)
    stored, expected = model.state_dict(), made.state_dict()
    assert [*stored] == [*expected]
    assert all(torch.equal(stored[name], weight) for name, weight in expected.items())
    source, target = batch()
    for mode in (True, False):
        torch.manual_seed(3)
        states = made.train(mode).states(source, target)
        torch.manual_seed(3)
        logits = model.train(mode)(source, target)
        assert torch.equal(logits, made.project(states))


def rotated():
    from heedful.families.rotary.rotation import RotaryPositions

    return {"rotation": lambda layer: RotaryPositions(layer.d_model // layer.heads)}


def related():
    from heedful.families.shaw.vectors import DistanceVectors

    return {"relation": lambda layer: DistanceVectors(layer.d_k, layer.d_v)}


def biased():
    from heedful.families.relative_buckets.buckets import RelativeBuckets

    return {"score_bias": lambda layer: RelativeBuckets(layer.heads)}


@pytest.mark.parametrize(
    ("keywords", "settings"),
    [
        pytest.param(rotated, {"positions": "rotary"}, marks=pytest.mark.family("rotary")),
        pytest.param(related, {"positions": "shaw"}, marks=pytest.mark.family("shaw")),
        (lambda: {"kv_heads": 1}, {"positions": "none", "attention": {"kv_heads": 1}}),
        (
            lambda: {"attention_dropout": 0.5, "gated": True, "activation": "silu"},
            {
                **{"positions": "none", "attention": {"dropout": 0.5}},
                **{"gated": True, "activation": "silu"},
            },
        ),
        pytest.param(
            lambda: {"norm_kind": torch.nn.RMSNorm, "qk_norm": torch.nn.RMSNorm},
            {"positions": "none", "norm_kind": "rms", "attention": {"qk_norm": "rms"}},
            marks=pytest.mark.family("rms_norm", "qk_norm"),
        ),
    ],
)
def test_parts_that_fields_build_are_those_of_settings(keywords, settings):
    widths = {"d_k": 6, "d_v": 5} if settings["positions"] == "shaw" else {}
    model = heedful.Transformer(
        30, layers=2, seed=5, positions="none", **SIZES, **widths, **keywords()
    )
    made = build_model(
        ModelConfig(encoder_layers=2, decoder_layers=2, **SIZES, **widths, **settings),
        *(30, 30),
        max_length=9,
    )
    initialize(made, 5)
    stored, expected = model.state_dict(), made.state_dict()
    assert [*stored] == [*expected]
    assert all(torch.equal(stored[name], weight) for name, weight in expected.items())
    results = []
    for one in (model, made):
        torch.manual_seed(3)
        results.append(one.train()(*batch()))
    assert torch.equal(*results)


@pytest.mark.family("relative_buckets")
def test_a_stack_takes_a_bias_of_its_scores():
    model = heedful.Transformer(30, layers=1, positions="none", **SIZES, **biased())
    assert model.encoder.score_bias is not None and model.decoder.score_bias is not None


def test_both_sides_may_have_their_own_vocabulary_and_depth():
    model = heedful.Transformer((20, 30), layers=(1, 3), **SIZES)
    assert model(*batch()).shape == (3, 5, 30)
    assert (len(model.encoder.layers), len(model.decoder.layers)) == (1, 3)
    assert model.embed_source is not model.embed_target
    assert model.output.weight is model.embed_target.weight


def test_torchs_seed_decides_the_weights_unless_a_seed_is_given():
    def first(**seed):
        return heedful.Transformer(20, layers=1, **SIZES, **seed).embed_source.weight

    torch.manual_seed(1)
    before = first()
    assert not torch.equal(first(), before)
    torch.manual_seed(1)
    assert torch.equal(first(), before)
    assert torch.equal(first(seed=7), first(seed=7))


def test_it_learns_in_a_plain_loop_and_is_searched():
    torch.manual_seed(1)
    model = heedful.Transformer(12, layers=1, dropout=0.0, d_model=32, d_ff=64, heads=4)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    edge, losses = torch.ones(32, 1, dtype=torch.long), []
    for _ in range(150):
        source = torch.randint(4, 12, (32, 4))
        target = torch.cat((edge * 2, source, edge * 3), dim=1)
        logits = model(source, target[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[0] > 2.0
    assert losses[-1] < 0.3

    model.eval()
    source = torch.randint(4, 12, (20, 4))
    found = beam_search(model, source, [6] * 20, heedful.SearchOptions(beam=2))
    right = [best[0].tokens == tuple(row) for best, row in zip(found, source.tolist(), strict=True)]
    assert sum(right) >= 15


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"vocabulary": 0}, "`vocabulary` must be at least 1, but is 0"),
        ({"vocabulary": 3}, "must hold the special ids 0, 2, 3"),
        ({"vocabulary": "8000"}, "`vocabulary` of Transformer must be a whole number or a list of"),
        ({"vocabulary": (1, 2, 3)}, "must be a number or a pair of numbers, but got (1, 2, 3)"),
        ({"vocabulary": (8, 9), "tie_embeddings": "all"}, "8 source ids and 9 target ids"),
        ({"d_model": 510}, "`heads` must divide d_model=510, but 8 does not"),
        ({"d_model": 7, "heads": 7}, "`d_model` must be even for sines and cosines, but is 7"),
        ({"d_model": "512"}, "`d_model` of Transformer must be a whole number, but got '512'"),
        ({"layers": 0}, "`layers` must be at least 1"),
        ({"dropout": 1.0}, "`dropout` must be at least 0 and below 1, but is 1.0"),
        ({"norm": "sandwich"}, "`norm` of Transformer must be 'post' or 'pre'"),
        ({"positions": "rotary"}, "`positions` of Transformer must be 'interleaved' or"),
        ({"activation": "elu"}, "`activation` must be relu or gelu"),
        ({"padding": -1}, "must hold the special ids -1, 2, 3"),
    ],
)
def test_sizes_that_do_not_fit_are_refused_in_a_sentence(arguments, words):
    jaxtyping.config.update("jaxtyping_disable", True)  # a user has no such checks
    with pytest.raises(heedful.HeedfulError) as refusal:
        heedful.Transformer(**{"vocabulary": 100, **arguments})
    assert words in str(refusal.value)


def test_an_unknown_size_is_refused_as_python_does():
    with pytest.raises(TypeError, match="unexpected keyword argument 'd_modell'"):
        heedful.Transformer(100, d_modell=512)
    with pytest.raises(TypeError, match="missing"):
        heedful.Transformer()
