"""All claims: a statement, its source, what is measured, and the rule that decides."""

from functools import partial

from heedful.paper.claims.exact import measure_convolution, measure_shift
from heedful.paper.claims.layers import (
    measure_additive_cost,
    measure_batch_norm,
    measure_gradients,
    measure_parallel,
)
from heedful.paper.claims.long_distance import measure_long_distance
from heedful.paper.claims.models import (
    ATTENTION,
    BATCH_SIZES,
    BATCHES,
    COST,
    ENCODERS,
    HEADS,
    KINDS_OF_SCORE,
    LONG,
    MASK,
    NORMS,
    SCORES,
    TUNED,
    TUNED_ENCODER,
    WIDTHS,
)
from heedful.paper.claims.repeated_name import write_repeated_names
from heedful.paper.claims.statement import PaperClaim, between
from heedful.paper.claims.trained import (
    Grid,
    by_lead,
    by_longest_sentences,
    by_pairs,
    compare_pairs,
    measure_cost,
    measure_heads,
    measure_mask,
    words_of_a_translation,
)

_NOTES = "often said about the paper"
_QUARTERS = 4
"""Number of validations if the rise of BLEU in the last quarter of a training run must be known."""
_BATCH_PAIRS = tuple((f"layer-{tokens}", f"batch-{tokens}") for tokens in BATCHES)
_SCORE_PAIRS = tuple((f"additive-{width}", f"unscaled-{width}") for width in WIDTHS)

CLAIMS: dict[str, PaperClaim] = {
    claim.name: claim
    for claim in (
        PaperClaim(
            "convolution",
            "A convolution applies a different linear map at each relative position.",
            _NOTES,
            measure_convolution,
        ),
        PaperClaim(
            "shift",
            "The encoding of pos + k is a linear function of the encoding of pos.",
            "section 3.5",
            measure_shift,
        ),
        PaperClaim(
            "batch-norm",
            "In training, batch norm depends on the rest of the batch, and layer norm does not.",
            _NOTES,
            measure_batch_norm,
        ),
        PaperClaim(
            "gradients",
            "Layer norm and residual connections keep gradients alive in deep stacks.",
            _NOTES,
            measure_gradients,
        ),
        PaperClaim(
            "dot-product",
            "Dot-product attention is much faster than additive attention in practice.",
            "section 3.2.1",
            measure_additive_cost,
        ),
        PaperClaim(
            "parallel",
            "Recurrence precludes parallelization within a training example.",
            "section 1",
            measure_parallel,
        ),
        PaperClaim(
            "mask",
            "A decoder without its mask learns nothing useful for translation.",
            _NOTES,
            measure_mask,
            MASK,
            may_learn_nothing=("no-mask",),
        ),
        PaperClaim(
            "attention",
            "A recurrent translator needs attention, above all for long sentences.",
            _NOTES,
            partial(compare_pairs, pairs=(("attending", "blind"),), decide_by=by_longest_sentences),
            ATTENTION,
            decided_by_bleu=True,
            validations=_QUARTERS,
        ),
        PaperClaim(
            "long",
            "Recurrence and convolution forget distant words, and self-attention does not.",
            "section 4",
            measure_long_distance,
            LONG,
            note=TUNED,
            weight=3,  # models learn long distances last, so they train longer
            text=write_repeated_names,
        ),
        PaperClaim(
            "encoders",
            "Self-attention encodes better than recurrence, convolution, an average or a sum.",
            _NOTES,
            partial(
                compare_pairs,
                pairs=tuple((ENCODERS[0].name, system.name) for system in ENCODERS[1:]),
                decide_by=by_pairs,
            ),
            ENCODERS,
            note=TUNED_ENCODER,
            decided_by_bleu=True,
            validations=_QUARTERS,
        ),
        PaperClaim(
            "batch-size",
            "Layer norm works with batches of any size, and batch norm needs large batches.",
            _NOTES,
            partial(
                compare_pairs,
                pairs=_BATCH_PAIRS,
                deciding=(_BATCH_PAIRS[0], _BATCH_PAIRS[-1]),
                decide_by=partial(
                    by_lead,
                    lead=f"From {BATCHES[-1]} to {BATCHES[0]} tokens per batch, layer norm's lead "
                    "over batch norm",
                ),
                grid=Grid(
                    "target tokens per batch",
                    BATCHES,
                    {f"{norm} norm": norm for norm in NORMS},
                    {"bleu": ("BLEU", "x"), "perplexity": ("validation perplexity", "both")},
                ),
                more=words_of_a_translation,
            ),
            BATCH_SIZES,
            must_learn=tuple(f"layer-{tokens}" for tokens in BATCHES),
            decided_by_bleu=True,
            validations=_QUARTERS,
        ),
        PaperClaim(
            "scores",
            "For large d_k, additive attention is better than dot products without the scale.",
            "section 3.2.1",
            partial(
                compare_pairs,
                pairs=_SCORE_PAIRS,
                deciding=(_SCORE_PAIRS[-1], _SCORE_PAIRS[0]),
                decide_by=partial(
                    by_lead,
                    lead=f"From d_k {WIDTHS[0]} to {WIDTHS[-1]}, additive attention's lead over "
                    "dot products without the scale",
                ),
                grid=Grid(
                    "d_k",
                    WIDTHS,
                    {score: score for score in KINDS_OF_SCORE},
                    {"perplexity": ("validation perplexity", "x"), "bleu": ("BLEU", "x")},
                ),
            ),
            SCORES,
            must_learn=(f"additive-{WIDTHS[-1]}",),
            decided_by_bleu=True,
            validations=_QUARTERS,
        ),
        PaperClaim(
            "heads",
            "Heads learn to attend to different things.",
            "section 4",
            measure_heads,
            HEADS,
            between,
        ),
        PaperClaim(
            "cost",
            "The Transformer reaches the same quality with a fraction of the training.",
            "abstract and section 6.1",
            measure_cost,
            COST,
            note=TUNED,
            must_learn=tuple(system.name for system in COST),
            validations=24,  # many, because costs below the first validation are unknown
        ),
    )
}
