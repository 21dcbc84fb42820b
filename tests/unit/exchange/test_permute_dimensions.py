import pytest
import torch

from heedful.config.model import ModelConfig
from heedful.errors import ExchangeError
from heedful.exchange.permute_dimensions import grouped_order, reorder_dimensions
from heedful.families.build import build_model
from heedful.model.initialize import initialize


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("tie", ["all", "output", "none"])
def test_a_model_with_grouped_positions_computes_what_the_interleaved_one_does(norm, tie):
    shape = {"d_model": 16, "d_ff": 20, "heads": 2, "encoder_layers": 2, "decoder_layers": 2}
    settings = shape | {"norm": norm, "tie_embeddings": tie, "output_bias": True}
    models = [
        build_model(ModelConfig(**settings, positions=layout), 30, 30, max_length=9).eval()
        for layout in ("interleaved", "grouped")
    ]
    initialize(models[0], 1)
    with torch.no_grad():
        for parameter in models[0].parameters():
            parameter.add_(torch.rand_like(parameter))
    weights = reorder_dimensions(dict(models[0].named_parameters()), grouped_order(16))
    models[1].load_state_dict(weights, strict=False)
    source, target = torch.randint(4, 30, (3, 7)), torch.randint(4, 30, (3, 5))
    with torch.inference_mode():
        first, second = (model.project(model.states(source, target)) for model in models)
    assert torch.allclose(first, second, atol=1e-4)


def test_a_weight_that_is_not_known_is_not_left_as_it_is():
    with pytest.raises(ExchangeError, match="strange"):
        reorder_dimensions({"strange.weight": torch.rand(2, 2)}, torch.tensor([0, 1]))
