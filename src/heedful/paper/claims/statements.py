"""All claims."""

from heedful.paper.claims.exact import check_convolution, check_shift
from heedful.paper.claims.layers import (
    check_additive_cost,
    check_batch_norm,
    check_gradients,
    check_parallel,
)
from heedful.paper.claims.long_distance import check_long
from heedful.paper.claims.models import (
    ATTENTION,
    BATCH_SIZES,
    BATCHES,
    COST,
    ENCODERS,
    HEADS,
    LONG,
    MASK,
    SCORES,
    WIDTHS,
)
from heedful.paper.claims.repeated_name import write_repeated_names
from heedful.paper.claims.statement import Statement, TrainedStatement
from heedful.paper.claims.trained import (
    check_attention,
    check_batch_sizes,
    check_cost,
    check_encoders,
    check_heads,
    check_mask,
    check_scores,
)

_NOTES = "often said of the paper"
Claim = Statement | TrainedStatement

CLAIMS: dict[str, Claim] = {
    claim.name: claim
    for claim in (
        Statement(
            "convolution",
            "A convolution applies a different linear map at each relative position.",
            _NOTES,
            check_convolution,
        ),
        Statement(
            "shift",
            "The sinusoid of pos + k is a linear function of that of pos.",
            "section 3.5",
            check_shift,
        ),
        Statement(
            "batch-norm",
            "Batch norm depends in training on the rest of a batch, and layer norm does not.",
            _NOTES,
            check_batch_norm,
        ),
        Statement(
            "gradients",
            "Layer norm and residual connections keep gradients alive in deep stacks.",
            _NOTES,
            check_gradients,
        ),
        Statement(
            "dot-product",
            "Dot-product attention is much faster than additive attention in practice.",
            "section 3.2.1",
            check_additive_cost,
        ),
        Statement(
            "parallel",
            "Recurrence precludes parallelization within a training example.",
            "section 1",
            check_parallel,
        ),
        TrainedStatement(
            "mask",
            "A decoder without its mask learns nothing that is of use in translation.",
            _NOTES,
            MASK,
            check_mask,
            may_learn_nothing=("no-mask",),
        ),
        TrainedStatement(
            "attention",
            "A recurrent translator needs attention, above all for long sentences.",
            _NOTES,
            ATTENTION,
            check_attention,
            decided_by_bleu=True,
        ),
        TrainedStatement(
            "long",
            "Recurrence and convolution lose what is far away, and self-attention does not.",
            "section 4",
            LONG,
            check_long,
            weight=3,  # what lies far back is learnt last
            text=write_repeated_names,
        ),
        TrainedStatement(
            "encoders",
            "Self-attention encodes better than recurrence, convolution, an average or a sum.",
            _NOTES,
            ENCODERS,
            check_encoders,
            decided_by_bleu=True,
        ),
        TrainedStatement(
            "batch-size",
            "Layer norm learns with batches of any size, and batch norm needs large ones.",
            _NOTES,
            BATCH_SIZES,
            check_batch_sizes,
            must_learn=tuple(f"layer-{tokens}" for tokens in BATCHES),
            decided_by_bleu=True,
        ),
        TrainedStatement(
            "scores",
            "For large d_k additive attention is ahead of dot products without the scale.",
            "section 3.2.1",
            SCORES,
            check_scores,
            must_learn=(f"additive-{WIDTHS[-1]}",),
            decided_by_bleu=True,
        ),
        TrainedStatement(
            "heads",
            "Heads learn to attend to different things.",
            "section 4",
            HEADS,
            check_heads,
        ),
        TrainedStatement(
            "cost",
            "The Transformer is as good after a fraction of the training.",
            "abstract and section 6.1",
            COST,
            check_cost,
            must_learn=tuple(one.name for one in COST),
            validations=24,  # a quality that the first one has already tells nothing
        ),
    )
}
