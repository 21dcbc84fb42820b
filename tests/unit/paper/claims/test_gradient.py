import torch

from heedful.bench.random_run import make_random_run
from heedful.config.schema import RunConfig
from heedful.paper.claims.gradient import differentiable_model, gradient_norms
from heedful.translation.translator import Translator

SMALL = {
    "model.d_model": 16,
    "model.d_ff": 32,
    "model.heads": 2,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "model.tie_embeddings": "none",
    "data.vocabulary_size": 50,
}


def test_they_are_those_of_small_steps(tmp_path):
    run = make_random_run(tmp_path, RunConfig().with_settings(SMALL), 50)
    translator = Translator.load(tmp_path, device="cpu", precision="fp32", threads=1)
    source, target = "w1 w2 w3", "w7 w8 w9"
    model = differentiable_model(run)
    found = gradient_norms(run, model, source, target, token=2)
    assert found.shape == (2,)
    embedding = translator.models[0].embed_target
    row = translator.tokenizer.encode_target([target])[0][1]
    slopes = []
    for index in range(16):
        values = []
        for step in (0.01, -0.01):
            with torch.no_grad():
                embedding.weight[row, index] += step
            values.append(translator.score(source, target)[2])
            with torch.no_grad():
                embedding.weight[row, index] -= step
        slopes.append((values[0] - values[1]) / 0.02)
    # of the embedding times the square root of d_model
    expected = torch.tensor(slopes).norm() / 4
    torch.testing.assert_close(found[1], expected, rtol=0.02, atol=1e-5)
    assert not model.embed_target._forward_hooks


def test_one_matrix_for_both_sides_is_followed_where_it_embeds_the_target(tmp_path):
    tied = {**SMALL, "model.tie_embeddings": "all"}
    run = make_random_run(tmp_path, RunConfig().with_settings(tied), 50)
    model = differentiable_model(run)
    assert model.embed_source is model.embed_target
    # a source of one word has no second token to follow
    norms = gradient_norms(run, model, "w1", "w7 w8 w9", token=2)
    assert norms.shape == (2,)
    assert norms.min() > 0
    longer = gradient_norms(run, model, "w1 w2 w3 w4 w5 w6", "w7 w8 w9", token=2)
    assert longer.shape == (2,)
