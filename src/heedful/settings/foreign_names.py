"""
Names of options and settings in other toolkits, each with our name for it.

The toolkits are fairseq, OpenNMT-py, Joey NMT, Hugging Face Transformers and sacreBLEU. An error
about an unknown option or setting suggests our name; a foreign name is never accepted.
`docs/howto/coming-from.md` explains the differences.
"""

from collections.abc import Mapping


def _by_name(names: Mapping[tuple[str, ...], str]) -> dict[str, tuple[str, ...]]:
    """Invert a table from our names to foreign names, which are separated by spaces."""
    return {name: ours for ours, theirs in names.items() for name in theirs.split()}


SETTINGS = _by_name(
    {
        ("data.max_length",): "max-sent-length max-source-positions src-seq-length tgt-seq-length",
        ("data.shared_vocabulary",): "joined-dictionary share-vocab",
        ("data.source_language",): "source-lang src-lang",
        ("data.target_language",): "target-lang tgt-lang trg-lang",
        ("data.vocabulary_size",): (
            "nwordssrc nwordstgt src-vocab-size tgt-vocab-size voc-limit vocab-size"
        ),
        ("model.activation",): "activation-fn",
        ("model.attention.dropout",): "attention-dropout",
        ("model.d_ff",): ("decoder-ffn-embed-dim encoder-ffn-embed-dim ff-size transformer-ff"),
        ("model.d_model",): (
            "decoder-embed-dim embedding-dim encoder-embed-dim hidden-size rnn-size word-vec-size"
        ),
        ("model.decoder_layers",): "dec-layers",
        ("model.encoder_layers",): "enc-layers",
        ("model.encoder_layers", "model.decoder_layers"): "layers num-layers",
        ("model.heads",): "decoder-attention-heads encoder-attention-heads num-heads",
        ("model.norm=pre",): "decoder-normalize-before encoder-normalize-before",
        ("model.positions=learned",): "decoder-learned-pos encoder-learned-pos",
        ("model.tie_embeddings",): (
            "share-all-embeddings share-decoder-embeddings share-decoder-input-output-embed "
            "share-embeddings tied-embeddings tied-softmax"
        ),
        ("train.batch_tokens",): (
            "accum-count batch-multiplier batch-size gradient-accumulation-steps max-tokens "
            "per-device-train-batch-size update-freq"
        ),
        ("train.best_by",): ("best-checkpoint-metric early-stopping-metric metric-for-best-model"),
        ("train.beta1",): "adam-beta1",
        ("train.beta1", "train.beta2"): "adam-betas",
        ("train.beta2",): "adam-beta2",
        ("train.checkpoint_steps",): (
            "save-checkpoint-steps save-interval save-interval-updates save-steps"
        ),
        ("train.clip_norm",): "clip-grad-norm max-grad-norm",
        ("train.decay_factor",): "decrease-factor learning-rate-decay lr-shrink",
        ("train.ema_decay",): "average-decay",
        ("train.epsilon",): "adam-eps adam-epsilon",
        ("train.keep_best",): "keep-best-checkpoints keep-best-ckpts",
        ("train.keep_last",): (
            "keep-checkpoint keep-interval-updates keep-last-epochs save-total-limit"
        ),
        ("train.label_smoothing",): "label-smoothing-factor",
        ("train.learning_rate_factor", "train.learning_rate"): "learning-rate lr",
        ("train.min_learning_rate",): "learning-rate-min min-lr stop-min-lr",
        ("train.minutes",): "stop-time-hours",
        ("train.optimizer",): "optim",
        ("train.patience",): "early-stopping early-stopping-patience",
        ("train.plateau_patience",): "lr-patience",
        ("train.precision=bf16",): "amp bf16 fp16",
        ("train.schedule",): "decay-method lr-scheduler lr-scheduler-type scheduling",
        ("train.seed",): "random-seed",
        ("train.steps",): (
            "epochs max-epoch max-epochs max-steps max-update num-epochs num-train-epochs "
            "train-steps updates"
        ),
        ("train.validate_steps",): (
            "eval-steps valid-steps validate-interval validate-interval-updates validation-freq"
        ),
        ("train.warmup",): "learning-rate-warmup warmup-steps warmup-updates",
    }
)
"""Our settings, some with a value, by foreign names in lower case with hyphens."""

_DEVICES = "cpu cuda gpu gpu-ranks gpus no-cuda use-cuda world-size"
_SEARCH: dict[tuple[str, ...], str] = {
    ("--beam",): "beam-size beams num-beams",
    ("--device",): _DEVICES,
    ("--input",): "path-src source src",
    ("--length-penalty",): "alpha beam-alpha lenpen",
    ("--output",): "out pred",
    ("--precision",): "bf16 fp16 fp32 half int8 quantization",
    ("--weights",): "checkpoint ckpt step",
    ("RUN",): "model model-path path run",
}
OPTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "average": _by_name(
        {
            ("--last",): "n num-epoch-checkpoints num-update-checkpoints",
            ("RUN",): "inputs models run",
        }
    ),
    "evaluate": _by_name(
        {
            ("--hypothesis",): "hyp hypotheses i input output sys system translations",
            ("no option, because every metric is printed",): "m metric metrics",
            ("--language",): "lang language-pair target-lang tgt-lang",
            ("--lowercase",): "ignore-case lc",
            ("--reference",): "ref references refs target tgt",
            ("--source",): "src",
        }
    ),
    "export": _by_name(
        {
            ("--format",): "output-format to",
            ("--quantization",): "quantize",
            ("DIR",): "o output output-dir",
            ("RUN",): "model model-path path",
        }
    ),
    "import": _by_name(
        {
            ("--from",): "format kind",
            ("--source-language",): "source-lang src-lang",
            ("--target-language",): "target-lang tgt-lang",
            ("--tokenizer",): "codes spm vocab",
        }
    ),
    "parse predict": _by_name(_SEARCH),
    "score": _by_name(
        {
            ("--device",): _DEVICES,
            ("--source",): "input src",
            ("--target",): "tgt trg",
            ("RUN",): "model model-path path run",
        }
    ),
    "serve": _by_name({("--device",): _DEVICES, ("RUN",): "model models path run"}),
    "train": _by_name(
        {
            ("--device",): _DEVICES,
            ("--finetune-from",): "finetune-from-model load-model pretrained",
            ("--out",): "model-dir o output output-dir save-dir save-model",
            ("--resume",): "restore-file resume-from-checkpoint train-from",
            ("--source",): "path-src src train-src",
            ("--source", "--target"): "train-file trainpref",
            ("--target",): "path-tgt tgt train-tgt train-trg trg",
            ("--tensorboard",): "tensorboard-log-dir tensorboard-logdir",
            ("--tokenizer",): "bpe-codes codes src-vocab tgt-vocab vocab",
            ("--valid-source",): "dev-src valid-src validation-src",
            ("--valid-source", "--valid-target"): "dev valid validation-file validpref",
            ("--valid-target",): "dev-tgt dev-trg valid-tgt valid-trg validation-tgt",
            ("RECIPE",): "a arch architecture config",
        }
    ),
    "translate": _by_name(
        {
            **_SEARCH,
            ("--alignments",): "print-alignment report-align return-attention",
            ("--dictionary",): "phrase-table",
            ("--diverse-groups",): "diverse-beam-groups num-beam-groups",
            ("--diversity-strength",): "diverse-beam-strength diversity-penalty",
            ("--max-length",): "max-len-a max-len-b max-new-tokens max-output-length",
            ("--min-length",): "min-len min-new-tokens min-output-length",
            ("--n-best",): "nbest num-return-sequences",
            ("--no-repeat-ngram",): "block-ngram-repeat no-repeat-ngram-size",
            ("--replace-unknown",): "replace-unk",
            ("--sample",): "do-sample random-sampling sampling",
            ("--target-language",): "forced-bos-token-id target-lang tgt-lang",
            ("--target-prefix",): "prefix-size tgt-prefix",
            ("--temperature",): "random-sampling-temp",
            ("--top-k",): "random-sampling-topk sampling-topk",
            ("--top-p",): "random-sampling-topp sampling-topp",
        }
    ),
}
"""Our options by command, then by foreign names without leading hyphens."""
