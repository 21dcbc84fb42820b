"""The models that are trained for each claim."""

from heedful.experiments.system import TableSystem

_LAYERS = ("model.encoder_layers=2", "model.decoder_layers=2")
# With the usual initial range of 0.1 the logits of such a narrow model begin near 0, and it learns
# nothing in hundreds of steps. It also learns nothing with the Transformer's learning rate.
_RECURRENT = (
    *_LAYERS,
    "model.encoder=recurrent",
    "model.decoder=recurrent",
    "model.recurrent.initial_range=0.3",
    "train.learning_rate=4e-3",
)
TUNED = (
    "The learning rate and the initial weights of the recurrent model were tuned in trial runs; "
    "those of the Transformer were not."
)
"""A note for every comparison with the recurrent model."""
TUNED_ENCODER = (
    "The recurrent encoder has larger initial weights and twice the learning rate of the other "
    "models. With the values of the other models, it hardly begins to learn."
)
_CONVOLUTIONAL = (
    *("model.encoder=convs2s", "model.decoder=convs2s", "model.positions=learned"),
    *("model.convs2s.encoder_layers=2x(128,3)", "model.convs2s.decoder_layers=2x(128,3)"),
)
WIDTHS, HEAD_COUNTS = (16, 64, 256, 512), (2, 4, 8)
KINDS_OF_SCORE = ("scaled", "unscaled", "additive")
BATCHES = (32, 128, 512)
"""Target tokens of a batch: about 3, 12 and 50 sentences of the built-in grammar."""
NORMS = ("layer", "batch")
SEEDS = (1, 2, 3)


def _transformer(name: str, title: str, *settings: str, heads: int = 4) -> TableSystem:
    """Return a small Transformer with changed settings."""
    return TableSystem(name, title, (*_LAYERS, "model.d_ff=512", f"model.heads={heads}", *settings))


def _encoder(name: str, *settings: str) -> TableSystem:
    """Return a model that consists of an encoder and a Transformer's decoder."""
    sizes = ("model.d_ff=512", "model.heads=4", "model.decoder_layers=2")
    return TableSystem(name, name, (*sizes, *settings))


MASK = (
    _transformer("transformer", "Transformer"),
    _transformer("no-mask", "without mask", "model.causal_mask=false"),
)
ATTENTION = (
    TableSystem("attending", "with attention", _RECURRENT),
    TableSystem("blind", "without attention", (*_RECURRENT, "model.recurrent.score=none")),
)
LONG = (
    _transformer("transformer", "Transformer"),
    TableSystem("recurrent", "recurrent with attention", _RECURRENT),
    TableSystem("convolutional", "convolutional (2 layers, kernel 3)", _CONVOLUTIONAL),
    # the decoder of this model reads 41 earlier tokens; a decoder of two layers reads 5
    TableSystem(
        "far-reaching",
        "convolutional (5 layers, kernel 9)",
        (
            *("model.encoder=convs2s", "model.decoder=convs2s", "model.positions=learned"),
            *("model.convs2s.encoder_layers=2x(128,3)", "model.convs2s.decoder_layers=5x(128,9)"),
        ),
    ),
)
# All models have about 1,050,000 weights with the grammar's 1,000 subwords. Therefore the recurrent
# encoder has more layers, and the convolutional encoder has wider layers. A mean or a sum has no
# weights, so the whole model is wider.
_WIDER = ("model.d_model=176", "model.d_ff=528")
ENCODERS = (
    _encoder("self-attention", "model.encoder_layers=2"),
    _encoder(
        "recurrent",
        *("model.encoder_layers=4", "model.encoder=recurrent"),
        "model.recurrent.encoder_hidden_size=64",  # of each direction
        *("model.recurrent.initial_range=0.3", "train.learning_rate=3e-3"),  # as in _RECURRENT
    ),
    _encoder(
        "convolution",
        *("model.encoder_layers=2", "model.attention.encoder=convolution"),
        *("model.attention.window=3", "model.encoder_d_ff=576"),
    ),
    _encoder("average", "model.encoder=average", *_WIDER),
    _encoder("sum", "model.encoder=sum", *_WIDER),
)
# All models read equally many tokens: the smaller the batches, the more steps.
BATCH_SIZES = tuple(
    _transformer(
        f"{norm}-{tokens}",
        f"{norm} norm, {tokens} tokens",
        *(f"model.norm_kind={norm}", f"train.batch_tokens={tokens}"),
    )._replace(times=BATCHES[-1] // tokens)
    for norm in NORMS
    for tokens in BATCHES
)
SCORES = tuple(
    _transformer(
        f"{score}-{width}",
        f"{score}, d_k {width}",
        *(f"model.d_k={width}", f"model.attention.score={score}"),
        heads=1,
    )
    for width in WIDTHS
    for score in KINDS_OF_SCORE
)
HEADS = tuple(
    _transformer(f"heads-{count}", f"{count} heads", heads=count) for count in HEAD_COUNTS
)
# With the grammar's 1,000 subwords both models have about 1,250,000 weights.
_AS_LARGE = (LONG[0]._replace(settings=(*LONG[0].settings, "model.d_ff=704")), LONG[1])
COST = tuple(system.with_seed(seed) for seed in SEEDS for system in _AS_LARGE)
"""Pairs of a Transformer and a recurrent model, one for each seed."""
