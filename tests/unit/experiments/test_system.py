from heedful.config.load import load_config
from heedful.experiments.system import count_parameters, narrow
from heedful.model.weights import parameter_count


def test_all_widths_are_divided_and_nothing_else():
    settings = (
        *("model.d_model=128", "model.heads=4", "model.recurrent.hidden_size=112"),
        *("model.experts.d_ff=304", "model.experts.count=8", "train.batch_tokens=1024"),
        "model.convs2s.encoder_layers=4x(256,3) 2x(512,1)",
    )
    assert narrow(settings, 2) == (
        *("model.d_model=64", "model.heads=4", "model.recurrent.hidden_size=56"),
        *("model.experts.d_ff=152", "model.experts.count=8", "train.batch_tokens=1024"),
        "model.convs2s.encoder_layers=4x(128,3) 2x(256,1)",
    )


def test_weights_are_counted_without_being_made():
    from heedful.experiments.work import build

    config = load_config("tiny", ["data.vocabulary_size=200"])
    assert count_parameters(config) == parameter_count(build(config, 200)) > 10_000
