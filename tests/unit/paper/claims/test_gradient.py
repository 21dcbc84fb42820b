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
    source, target = "w1 w2 w3", "w7 w8"
    model = differentiable_model(run)
    found = gradient_norms(run, model, source, target)
    assert found.shape == (4,)  # the end symbol too
    embedding = translator.models[0].embed_source
    row = translator.tokenizer.encode_source([source])[0][0]
    slopes = []
    for index in range(16):
        values = []
        for step in (0.01, -0.01):
            with torch.no_grad():
                embedding.weight[row, index] += step
            values.append(translator.score(source, target)[-1])
            with torch.no_grad():
                embedding.weight[row, index] -= step
        slopes.append((values[0] - values[1]) / 0.02)
    # of the embedding times the square root of d_model
    expected = torch.tensor(slopes).norm() / 4
    torch.testing.assert_close(found[0], expected, rtol=0.02, atol=1e-5)
    assert not model.embed_source._forward_hooks
