"""Measurement of how much a token of a translation depends on each token before it."""

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.model.encoder_decoder import EncoderDecoder
from heedful.runs.checkpoint import load_weights
from heedful.runs.run import Run


def differentiable_model(run: Run) -> EncoderDecoder:
    """Load a model that can compute gradients; the prepacked model of a `Translator` cannot."""
    model = run.build().eval()
    place = run.checkpoint_folder()
    load_weights(model, run.load_checkpoint(place).model, place)
    return model


def gradient_norms(
    run: Run, model: EncoderDecoder, source: str, target: str, token: int
) -> Float[Tensor, " token"]:
    """
    Compute how much a token of the translation depends on each token before it.

    `token`: the index of the token. Returns the norms of the gradients of the token's
    log-probability with respect to the embeddings of the earlier tokens.
    """
    embedded: list[Tensor] = []
    # If source and target share an embedding, the source is embedded first.
    wanted = 2 if model.embed_target is model.embed_source else 1

    def keep(_module: object, _inputs: object, states: Tensor) -> Tensor:
        is_target = len(embedded) == wanted - 1
        embedded.append(states.detach().requires_grad_() if is_target else states)
        return embedded[-1]

    tokenizer = run.tokenizer
    batch = run.collator(model).batch(
        tokenizer.encode_source([source]), tokenizer.encode_target([target])
    )
    hook = model.embed_target.register_forward_hook(keep)
    try:
        states = model.states(batch.source, batch.target_in)[0, token : token + 1]  # (1, d_model)
        logits = model.output(states)
        torch.log_softmax(logits, dim=-1)[0, batch.target_out[0, token]].backward()
    finally:
        hook.remove()
    gradient = embedded[wanted - 1].grad
    assert gradient is not None
    return gradient[0, 1 : token + 1].norm(dim=-1)  # the first input is the start symbol
