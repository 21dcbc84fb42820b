"""A mixer of one's own in the place of self-attention, without a family."""

import pytest
import torch

from heedful.errors import ArgumentError, SettingError
from heedful.model.halves import Memory
from heedful.model.kv_cache import KVCache
from heedful.model.layer_config import LayerConfig
from heedful.model.layers import Decoder, Encoder
from heedful.model.layout import Layout, pad
from heedful.model.parts import KeyValue, Mixer, TargetMixer, check_mixed

SIZES = {"d_model": 8, "d_ff": 8, "heads": 2, "dropout": 0.0}
X, MEMORY = torch.randn(2, 5, 8), torch.randn(2, 4, 8)


class Mean(Mixer):
    """The mean of all real positions."""

    def __init__(self, config):
        super().__init__()
        self.width = config.d_model

    def forward(self, queries_from, keys_from, layout=None):
        layout = Layout.of(layout)
        check_mixed("Mean", self.width, queries_from, keys_from, layout.mask)
        x = pad(queries_from, layout.query_packing)
        real = torch.ones(x.shape[:2]) if layout.mask is None else layout.mask[:, 0, 0].float()
        mean = (x * real.unsqueeze(2)).sum(1, keepdim=True) / real.sum(1)[:, None, None]
        out = mean.expand_as(x)
        return (out if layout.query_packing is None else layout.query_packing.pack(out)), None

    def flops(self, lengths, leaves_out):
        return int(lengths.places.sum())


class Sum(Mixer, TargetMixer):
    """The sum of a position and those before it."""

    def __init__(self, config):
        super().__init__()
        self.heads = config.heads

    def forward(self, queries_from, keys_from, layout=None):
        packing = Layout.of(layout).query_packing
        out = pad(queries_from, packing).cumsum(1)
        return (out if packing is None else packing.pack(out)), None

    def flops(self, lengths, leaves_out):
        return 0

    def start_cache(self, layers, memory, window):
        return KVCache.empty(layers, memory, window)

    def step(self, x, write, mask_bias):
        split = x.unflatten(2, (self.heads, -1)).transpose(1, 2)  # (sentences, heads, width, d)
        values = write(KeyValue(split, split)).values
        shares = mask_bias.exp()  # one where a hypothesis has the token
        return (shares @ values).transpose(1, 2).flatten(2)


def test_an_encoder_has_one_that_reads_everything():
    encoder = Encoder(LayerConfig(**SIZES, mixer=Mean), 2).eval()
    assert [type(layer.self_attention) for layer in encoder.layers] == [Mean, Mean]
    real = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    out = encoder(X, real[:, None, None])
    torch.testing.assert_close(out[1:, :3], encoder(X[1:, :3]))
    with pytest.raises(SettingError, match="of DecoderLayer must be a TargetMixer"):
        Decoder(LayerConfig(**SIZES, mixer=Mean), 1)


def test_a_decoder_has_one_that_reads_what_precedes():
    decoder = Decoder(LayerConfig(**SIZES, mixer=Sum), 2).eval()
    with torch.no_grad():
        known = decoder(X, MEMORY)
        state = decoder.start(Memory(MEMORY, torch.ones(2, 1, 1, 4, dtype=torch.bool)))
        for place in range(X.size(1)):
            out, state = decoder.step(X[:, place : place + 1], state)
            torch.testing.assert_close(out[:, 0], known[:, place])
    with pytest.raises(SettingError, match="of EncoderLayer must not be a TargetMixer"):
        Encoder(LayerConfig(**SIZES, mixer=Sum), 1)


def test_what_mixes_one_sequence_refuses_two_and_masks_by_query():
    mixer = Mean(LayerConfig(**SIZES))
    with pytest.raises(ArgumentError, match="must be the same sequence as `queries_from`"):
        mixer(X, X.clone())
    with pytest.raises(ArgumentError, match="the same for all heads and queries"):
        mixer(X, X, torch.ones(1, 1, 5, 5, dtype=torch.bool))
    with pytest.raises(ArgumentError, match="with d_model=8"):
        mixer(X[..., :7], X[..., :7])
