"""How much a translation's last word depends on each source word."""

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.model.encoder_decoder import EncoderDecoder
from heedful.runs.checkpoint import load_weights
from heedful.runs.run import Run


def differentiable_model(run: Run) -> EncoderDecoder:
    """Load a model as training has it; that of a `Translator` is prepacked and has no gradients."""
    model = run.build().eval()
    place = run.checkpoint_folder()
    load_weights(model, run.load_checkpoint(place).model, place)
    return model


def gradient_norms(
    run: Run, model: EncoderDecoder, source: str, target: str
) -> Float[Tensor, " source"]:
    """Compute norms of the gradients of the last target token at the source tokens' embeddings."""
    embedded: list[Tensor] = []

    def keep(_module: object, _inputs: object, states: Tensor) -> Tensor:
        if not embedded:  # the target's, where one matrix is both
            embedded.append(states.detach().requires_grad_())
            return embedded[0]
        return states

    tokenizer = run.tokenizer
    batch = run.collator(model).batch(
        tokenizer.encode_source([source]), tokenizer.encode_target([target])
    )
    hook = model.embed_source.register_forward_hook(keep)
    try:
        states = model(batch.source, batch.target_in)[0, -1:]  # (1, d_model)
        logits = model.output(states)
        torch.log_softmax(logits, dim=-1)[0, batch.target_out[0, -1]].backward()
    finally:
        hook.remove()
    gradient = embedded[0].grad
    assert gradient is not None
    return gradient[0].norm(dim=-1)
