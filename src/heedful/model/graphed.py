"""
A trained model whose search steps are recorded as graphs on a GPU.

An eager step of a base model starts two hundred kernels. A GPU runs each kernel in less time than
Python takes to start it. With graphs, a step consists of two replays. The first computes states
from the newest tokens in the buffers of a lane (`heedful.model.static_cache`). The second computes
log-probabilities from the states. The model has the same layers as without graphs. On a CPU the
graphs are plain function calls, so the tests run the same code.
"""

from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.kernels.api import kernels_choice
from heedful.model.attention import MultiHeadAttention
from heedful.model.contracts import DecoderInput
from heedful.model.embedding import OutputLayer, TiedOutput, TokenEmbedding
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.model.feed_forward import FeedForward
from heedful.model.halves import Memory
from heedful.model.kv_cache import mask_to_bias, own_slots
from heedful.model.layers import Decoder, DecoderLayer
from heedful.model.residual import PostNorm, PreNorm
from heedful.model.score_bias import bias_of_slots
from heedful.model.static_cache import Lane, Lanes, Prepare, StaticState, StepBuffers

_NORMS = nn.LayerNorm | nn.RMSNorm | nn.Identity
# Larger batches and longer sources keep a GPU busy without graphs.
_MOST_SENTENCES, _MOST_SOURCE = 1024, 1024


def record_searches(model: EncoderDecoder, device: torch.device) -> EncoderDecoder:
    """Return a model whose searches replay graphs on a GPU, or else the model itself."""
    if device.type != "cuda" or kernels_choice() == "plain" or not can_record(model):
        return model
    return GraphedModel(model)


def can_record(model: nn.Module) -> bool:
    """Return whether the steps of a model depend only on tensors of fixed shapes."""
    if not isinstance(model, EncoderDecoder) or type(model.decoder) is not Decoder:
        return False
    return (
        model.decoder.window is None
        and type(model.output) in (OutputLayer, TiedOutput)
        and type(model.embed_target) is TokenEmbedding
        and isinstance(model.decoder.norm, _NORMS)
        and model.decoder.score_bias is None
        and all(map(_can_record_layer, model.decoder.layers))
    )


def _can_record_layer(layer: DecoderLayer) -> bool:
    """Return whether a layer can be recorded; layers with other mixers or networks cannot."""
    own = layer.self_attention
    attentions = (own, layer.cross_attention)
    residuals = (layer.self_residual, layer.cross_residual, layer.feed_forward_residual)
    return (
        all(type(part) is MultiHeadAttention and part.scorer is None for part in attentions)
        and all(part.norms is None or isinstance(part.norms.query, _NORMS) for part in attentions)
        and all(part is None or part.is_static for part in (own.rotation, own.relation))
        and type(layer.feed_forward) is FeedForward
        and all(type(part) in (PostNorm, PreNorm) for part in residuals)
        and all(isinstance(part.norm, _NORMS) for part in residuals)
    )


class GraphedModel(EncoderDecoder):
    """
    A model whose searches replay graphs, which contain the addresses of its weights.

    New values may be copied into the weights, but the tensors must not be replaced.
    """

    def __init__(self, plain: EncoderDecoder) -> None:
        nn.Module.__init__(self)
        vars(self).update(vars(plain))
        self.lanes = Lanes()

    def start(self, memory: Memory) -> Any:
        sentences, source = memory.mask.size(0), memory.mask.size(3)
        return self.begin(memory) if self.can_begin(sentences, source) else super().start(memory)

    def can_begin(self, sentences: int, source: int) -> bool:
        """Return whether a search can use a lane and graphs; `source`: length of the sources."""
        learns = self.training or torch.is_grad_enabled()
        is_bare = type(self.decoder_input) is DecoderInput
        is_small = 0 < sentences <= _MOST_SENTENCES and source <= _MOST_SOURCE
        return is_small and is_bare and not learns

    def begin(self, memory: Memory, beam: int = 1, prepare: Prepare | None = None) -> StaticState:
        """Take a lane for a search (`StaticState.begin`)."""
        decoder = self._decoder
        projected = [layer.cross_attention.project_kv(memory.states) for layer in decoder.layers]
        bias = mask_to_bias(memory.mask, memory.states.dtype)
        width = self.embed_target.weight.size(1)
        return StaticState.begin(self.lanes, projected, bias, width, beam, prepare)

    def step(
        self, state: Any, tokens: Int[Tensor, " rows"]
    ) -> tuple[Float[Tensor, "rows d_model"], Any]:
        if not isinstance(state, StaticState):
            return super().step(state, tokens)
        return self._replay_step(state, tokens)

    @torch.no_grad()
    def _replay_step(
        self, state: StaticState, tokens: Int[Tensor, " rows"]
    ) -> tuple[Float[Tensor, "rows d_model"], StaticState]:
        """Process one more token of each hypothesis with a graph."""
        rows, sentences = len(tokens), state.sentences
        # 1. copy the inputs into the buffers that the graph reads
        step, newer = state.advance(rows // sentences)
        lane = newer.lease.lane
        step.tokens[:sentences].copy_(tokens.view(sentences, -1))
        if self.target_positions is not None:
            lane.position.copy_(self.target_positions(state.length, 1))
        # 2. run all layers; the replay overwrites the results of the warm-up
        work = partial(self.decode_step, lane, step)
        lane.record(("decode", rows // sentences), work).replay()
        assert step.states is not None
        states = step.states[:rows]
        self.lanes.newest.step = (states, lane, step)
        return states, newer

    def log_probabilities(
        self, states: Float[Tensor, "*batch d_model"]
    ) -> Float[Tensor, "*batch vocabulary"]:
        newest: tuple[Tensor, Lane, StepBuffers] | None = getattr(self.lanes.newest, "step", None)
        if newest is None or newest[0] is not states:
            return super().log_probabilities(states)
        self.lanes.newest.step = None  # the reference must not outlive the search
        _, lane, step = newest
        with torch.no_grad():
            name = ("project", step.tokens.size(1))
            lane.record(name, partial(self.project_step, step)).replay()
        assert step.scores is not None
        return step.scores[: len(states)]

    @property
    def _decoder(self) -> Decoder:
        """The decoder, whose type `can_record` has checked."""
        assert isinstance(self.decoder, Decoder)
        return self.decoder

    def decode_step(self, lane: Lane, step: StepBuffers) -> None:
        """Run all layers on the newest token of each hypothesis; a graph records this."""
        # 1. embeddings of the tokens, with their position, (B, K, D)
        x = self.embed_target(step.tokens)
        if self.target_positions is not None:
            x = x + lane.position
        if self.target_norm is not None:
            x = self.target_norm(x)
        # 2. each hypothesis attends to its own newest token, but not to newest tokens of other
        # hypotheses
        width, heads = x.size(1), self._decoder.layers.first.cross_attention.heads
        places = lane.slot + torch.arange(width, device=x.device)  # (K,)
        diagonal = own_slots(width, step.table.dtype, x.device)
        step.table.index_copy_(2, places, diagonal.expand(len(x), -1, -1))
        own_bias = bias_of_slots(self._decoder.score_bias, step.table, heads)  # (B, H, K, L)
        memory_bias = lane.memory_bias.repeat(1, heads, width, 1)  # (B, H, K, S)
        # 3. the layers
        for index, layer in enumerate(self._decoder.layers):
            write = partial(lane.write, index, places)
            x = layer.step(x, write, own_bias, lane.memory[index], memory_bias)
        step.states = self._decoder.norm(x).flatten(0, 1)  # (B * K, D)

    def project_step(self, step: StepBuffers) -> None:
        """Compute log-probabilities in fp32, without a copy of the logits in fp32."""
        step.scores = torch.log_softmax(self.output(step.states), dim=-1, dtype=torch.float32)
