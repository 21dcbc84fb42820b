"""Small models of every kind."""

import torch

from heedful.config.model import ModelConfig
from heedful.config.train import TrainConfig
from heedful.families.build import build_model
from heedful.model.initialize import initialize
from heedful.model.parts import Network
from tests.support.families import are_here, cases

ATTENTIONS = [
    settings
    for settings in (
        {"attention": {"score": "unscaled"}},
        {"attention": {"score": "additive"}},
        {"attention": {"window": 3}, "norm": "pre"},
        {"attention": {"window": 2, "score": "additive"}},
        {"attention": {"encoder": "fastformer", "decoder": "fastformer-linear"}},
        {"attention": {"encoder": "convolution", "window": 3}},
    )
    if are_here(settings)
]
FAMILIES = cases(
    {
        "transformer": {},
        "recurrent": {
            "encoder": "recurrent",
            "decoder": "recurrent",
            "recurrent": {"hidden_size": 16, "readout_size": 16},
        },
        "convs2s": {
            "encoder": "convs2s",
            "decoder": "convs2s",
            "positions": "learned",
            "convs2s": {"encoder_layers": "2x(16,3)", "decoder_layers": "2x(16,3)"},
        },
        "bytenet": {"encoder": "bytenet", "decoder": "bytenet"},
        "experts": {"experts": {"count": 4}},
        "batch norm": {"norm_kind": "batch"},
    }
)
SETTINGS = [
    settings
    for settings in (
        *ATTENTIONS,
        {},
        {"norm": "pre"},
        {"encoder_norm": "pre-no-final", "decoder_norm": "post"},
        {"positions": "halves", "decoder_start": "zero"},
        {"positions": "learned"},
        {"positions": "learned", "embedding_norm": True, "scale_embeddings": False},
        {"tie_embeddings": "output", "output_bias": True, "projection_bias": False},
        {"tie_embeddings": "embeddings"},
        {"tie_embeddings": "none", "d_k": 3, "d_v": 5, "activation": "gelu"},
        {"norm_kind": "batch", "norm": "pre"},
        {"norm_kind": "none"},
        {"residuals": False},
        {"positions": "relative-buckets", "relative_buckets": {"count": 4, "max_distance": 3}},
        {
            "positions": "relative-buckets",
            "norm_kind": "rms",
            "norm": "pre",
            "attention": {"score": "unscaled"},
            **{"gated": True, "activation": "gelu_tanh", "d_k": 3, "d_v": 3},
            **{"projection_bias": False, "feed_forward_bias": False, "scale_embeddings": False},
            **{"scale_output": True, "decoder_start": "pad"},
        },
        {"positions": "rotary"},
        {
            **{"positions": "rotary", "rotary": {"base": 30.0}, "norm": "pre"},
            **{"attention": {"score": "unscaled"}, "d_k": 6, "d_v": 5, "encoder_heads": 4},
        },
        {"positions": "shaw", "shaw": {"max_distance": 2}},
        {"attention": {"qk_norm": "rms"}},
        {"attention": {"qk_norm": "layer", "kv_heads": 1}, "positions": "shaw"},
        {"attention": {"qk_norm": "l2"}, "norm": "pre"},
        {"attention": {"qk_norm": "l2", "kv_heads": 1}, "positions": "rotary"},
        {"gated": True, "activation": "silu", "feed_forward_bias": False},
        {"gated": True, "norm_kind": "rms"},
        {"norm_kind": "rms", "norm": "pre"},
        {"encoder_sharing": "1,1", "decoder_sharing": "1,1"},
        {"decoder_layers": 4, "decoder_sharing": "1,2,1,2", "norm": "pre"},
        {"attention": {"dropout": 0.3}},
        {"attention": {"kv_heads": 1}},
        {"attention": {"kv_heads": 2}, "heads": 4, "norm": "pre"},
        {"attention": {"kv_heads": 1, "window": 3}},
        {"attention": {"kv_heads": 1}, "positions": "relative-buckets", "d_k": 3, "d_v": 5},
        {
            **{"attention": {"kv_heads": 2, "qk_norm": "rms", "score": "unscaled"}, "heads": 4},
            **{"positions": "rotary", "encoder_heads": 2, "projection_bias": False},
        },
        {"attention": {"kv_heads": 1}, "positions": "shaw"},
        {
            **{"attention": {"qk_norm": "rms", "score": "unscaled"}, "positions": "rotary"},
            **{"projection_bias": False, "norm": "pre", "d_k": 4, "d_v": 3},
        },
        {"attention": {"qk_norm": "rms", "score": "additive", "window": 2}},
        {
            **{"positions": "shaw", "norm": "pre", "attention": {"score": "unscaled"}},
            **{"d_k": 6, "d_v": 5, "encoder_heads": 4},
        },
        {"encoder_layers": 1, "decoder_heads": 4, "decoder_d_ff": 24, "position_offset": 1},
    )
    if are_here(settings)
]


def small(**changes):
    values = {"d_model": 16, "d_ff": 32, "heads": 2, "encoder_layers": 2, "decoder_layers": 2}
    model = build_model(ModelConfig(**{**values, **changes}), 20, 20, max_length=12)
    initialize(model, 1)
    return model.eval()


def batch(seed=0):
    generator = torch.Generator().manual_seed(seed)
    source = torch.randint(4, 20, (3, 7), generator=generator)
    target = torch.randint(4, 20, (3, 5), generator=generator)
    source[1, 4:] = source[2, 2:] = 0
    return source, target


def networks(model):
    """The networks of another family, by their names."""
    return {name: part for name, part in model.named_modules() if isinstance(part, Network)}


def draw_gates(model, seed=1):
    """Draw the gates of all mixtures of experts, which begin at zero."""
    generator = torch.Generator().manual_seed(seed)
    for mixture in networks(model).values():
        for name, weight in mixture.gate.named_parameters():
            if name.endswith("threshold"):
                weight.data.fill_(0.2)
            else:
                weight.data.normal_(generator=generator)


def train_config(steps, seed=1, **settings):
    """Settings of a training, without checkpoints and validations unless they are among them."""
    none = {"checkpoint_minutes": None, "validate_steps": None}
    return TrainConfig(steps=steps, seed=seed, **{**none, **settings})
