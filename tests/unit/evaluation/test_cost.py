import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from heedful.analysis.training_cost import training_work
from heedful.config.model import ModelConfig
from heedful.evaluation.cost import SUSTAINED_TFLOPS, ForwardFlops, Work, paper_flops
from heedful.families.build import build_model
from heedful.families.bytenet.config import ByteNetConfig
from heedful.families.recurrent.config import RecurrentConfig
from heedful.model.initialise import initialise
from heedful.training.history import read_history
from heedful.training.loss import chunked_loss

SMALL = {"d_model": 16, "d_ff": 24, "heads": 4, "encoder_layers": 2, "decoder_layers": 3}
SHAPES = {
    "as in the paper": {},
    "d_k and d_v of their own": {"d_k": 3, "d_v": 7},
    "stacks that differ": {
        "encoder_layers": 4,
        "decoder_layers": 1,
        "encoder_heads": 2,
        "decoder_heads": 8,
        "encoder_d_ff": 40,
        "decoder_d_ff": 8,
    },
    "three tables": {"tie_embeddings": "none", "output_bias": True},
    "no biases, norm first": {"tie_embeddings": "output", "projection_bias": False, "norm": "pre"},
    "learned positions, one wide head": {"positions": "learned", "heads": 1, "d_k": 20, "d_v": 5},
}


@pytest.fixture(autouse=True)
def products_that_torch_counts(monkeypatch):
    """The plain ones: torch's counter does not know oneDNN's."""
    monkeypatch.setattr("heedful.machine.onednn._HAS_ONEDNN", False)


def counted(call) -> int:
    """What torch counts while something runs."""
    with FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()


def model_and_batch(settings, rows, source_length, target_length):
    config = ModelConfig(**{**SMALL, **settings})
    source_rows, target_rows = (31, 31) if config.tie_embeddings == "all" else (29, 37)
    model = build_model(config, source_rows, target_rows, max_length=600)
    initialise(model, 1)
    source = torch.randint(4, 29, (rows, source_length))
    target = torch.randint(4, 29, (rows, target_length))
    source[0, 5:] = 0
    target[-1, 3:] = 0
    return model, source, target, target != 0


@pytest.mark.parametrize("settings", SHAPES.values(), ids=SHAPES)
def test_products_are_counted_exactly_as_torch_counts_them(settings):
    model, source, target, real = model_and_batch(settings, 3, 11, 7)
    cost = ForwardFlops.of(model)
    work = Work.of_batch(3, 11, 7, int(real.sum()))

    def loss():
        states = model(source, target)
        chunked_loss(states[real], target[real], model.output.weight, model.output.bias)[
            0
        ].backward()

    assert counted(lambda: model.project(model(source, target)[real])) == cost.forward(work)
    assert counted(loss) == cost.training(work)


def test_the_fused_kernels_of_long_sentences_compute_the_same_products():
    # Made of plain products; torch does not count inside the fused kernel of a processor.
    model, source, target, real = model_and_batch({"d_k": 3, "d_v": 7}, 2, 300, 280)
    work = Work.of_batch(2, 300, 280, int(real.sum()))
    with sdpa_kernel(SDPBackend.MATH):
        found = counted(lambda: model.project(model(source, target)[real]))
    assert found == ForwardFlops.of(model).forward(work)


RECURRENT = {
    "Joey NMT's": {"score": "additive", "start": "zero"},
    "GNMT's": {
        "score": "normed-additive",
        "direction": "first-bidirectional",
        "residual_from": 3,
        "query": "previous",
        "feed": "context",
        "feed_layers": "all",
        "readout": "state-context",
        "start": "zero",
    },
    "without attention": {"score": "none", "feed": "none", "readout": "state", "start": "last"},
    "Deep-Att's": {"direction": "interleaved", "fast_forward": True, "score": "general"},
}


@pytest.mark.filterwarnings("ignore:TF32")  # torch's own, of switching its kernels off
@pytest.mark.parametrize("recurrent", RECURRENT.values(), ids=RECURRENT)
def test_products_of_recurrent_models_are_counted_as_torch_counts_them(recurrent):
    families = {"encoder": "recurrent", "decoder": "recurrent", "tie_embeddings": "none"}
    choices = RecurrentConfig(**{"start": "zero", **recurrent})
    model, source, target, _ = model_and_batch({**families, "recurrent": choices}, 3, 11, 7)
    model.eval()
    source, target = source.clamp(min=4), target.clamp(min=4)  # torch counts no padding here
    with torch.backends.mkldnn.flags(enabled=False):  # nor what its fused kernels multiply
        found = counted(lambda: model.project(model(source, target)))
    work = Work.of_batch(3, 11, 7, 21)
    if "additive" in choices.score:  # nor products with a vector
        found += 2 * 16 * work.target_source
    assert found == ForwardFlops.of(model).forward(work)


@pytest.mark.filterwarnings("ignore:TF32")
@pytest.mark.parametrize("encoder", ["bytenet", "transformer"])
@pytest.mark.parametrize("join", ["concatenated", "summed"])
def test_products_of_bytenet_are_counted_with_the_columns_that_make_room(encoder, join):
    choices = ByteNetConfig(join=join, unfolding_factor=2.0)
    settings = {"encoder": encoder, "decoder": "bytenet", "bytenet": choices}
    model, source, target, _ = model_and_batch(settings, 3, 11, 7)
    model.eval()
    source, target = source.clamp(min=4), target.clamp(min=4)
    with torch.backends.mkldnn.flags(enabled=False), sdpa_kernel(SDPBackend.MATH):
        found = counted(lambda: model.project(model(source, target)))
    assert found == ForwardFlops.of(model).forward(Work.of_batch(3, 11, 7, 21))


def test_shapes_are_enough():
    with torch.device("meta"):
        model = build_model(ModelConfig(), 37_000, 37_000, max_length=257)
    cost = ForwardFlops.of(model)
    # A source position of the base model: six layers of 12 d^2 weights and, for the decoder's six
    # layers, 2 d^2 more, a multiply-add being two operations.
    assert cost.source == 2 * 6 * (12 + 2) * 512**2
    assert cost.target == 2 * 6 * (12 + 2) * 512**2
    assert cost.predicted == 2 * 512 * 37_000
    assert cost.source_source == cost.target_target == cost.target_source == 2 * 6 * 2 * 512


def test_the_costs_of_table_2_are_met_as_they_are_printed():
    p100 = SUSTAINED_TFLOPS["P100"]
    assert f"{paper_flops(12, 8, p100):.1e}" == "3.3e+18"  # base: 12 hours on 8 GPUs
    assert f"{paper_flops(3.5 * 24, 8, p100):.1e}" == "2.3e+19"  # big: 3.5 days


def history_of(tmp_path, lines):
    path = tmp_path / "log.jsonl"
    path.write_text("".join(line + "\n" for line in lines))
    return read_history(path)


def test_a_log_says_what_was_computed_on(tmp_path):
    line = (
        '{{"step": {}, "source_places": {}, "target_places": {}, "target_tokens": {}, '
        '"encoder_pairs": {}, "decoder_pairs": {}, "cross_pairs": {}}}'
    )
    logged = [line.format(1, 20, 30, 25, 200, 400, 300), line.format(2, 50, 60, 55, 500, 700, 600)]
    assert training_work(history_of(tmp_path, logged)) == Work(50, 60, 55, 500, 700, 600)


def test_nothing_is_counted_where_the_log_does_not_say(tmp_path):
    line = '{"step": 1, "source_tokens": 30, "target_tokens": 20, "padding": 0.1}'
    assert training_work(history_of(tmp_path, [line])) is None
    assert training_work(history_of(tmp_path, [])) is None
