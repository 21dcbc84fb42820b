"""
The options of a training, each defined in one place.

A field is a flag of `heedful train` and of the `train` of a task, a keyword of `heedful.train`, and
an input of `TrainingSetup.resolve`. Its metadata has the help of the flag; ``help(heedful.train)``
shows the text below the field. This module does not import torch, so the command line shows its
help quickly.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from heedful.arguments import PAIR_FORMS, WRITE_SENTENCES, Files, Pairs, Settings, flag
from heedful.runs.hub_names import run_path

_TEXT = (
    "lines, FILE.csv:COLUMN, FILE.tsv:COLUMN, FILE.jsonl:FIELD, FILE.tmx:LANGUAGE, .sgm or "
    "FILE.xml:SIDE; plain or compressed; may be repeated or a quoted glob."
)


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """The text of two languages; a task with another text has options of its own."""

    source: Files | None = flag(f"Source text: {_TEXT}", metavar="FILE", advice=WRITE_SENTENCES)
    """
    Sentences, a line each, or parts of files such as ``pairs.csv:en`` and ``memory.tmx:en``; plain
    or compressed.
    """
    target: Files | None = flag(
        "Target text, aligned line by line.", metavar="FILE", advice=WRITE_SENTENCES
    )
    """Their translations, in files of the same kinds: line n translates line n."""
    corpora: str | Path | None = flag(
        "A TOML file that describes several corpora, instead of --source and --target."
    )
    """A TOML file that describes several corpora, instead of `source` and `target`."""
    data: str | Path | None = flag(
        "A folder made by heedful data prepare, instead of --source, --target.",
        advice=WRITE_SENTENCES,
    )
    """A folder made by `heedful data prepare`, instead of all these."""
    exclude: Files | None = flag(
        "Text to remove from the training data, such as a test set: pairs that repeat a line of "
        "it, exactly or nearly; may be repeated.",
        metavar="FILE",
        advice=WRITE_SENTENCES,
    )
    """
    Texts that training must not see, such as test sets: pairs that repeat their lines, exactly or
    nearly, are dropped.
    """
    both_directions_first: float | None = flag(
        "Train for this share of the steps on both directions first, in the folder OUT-both; then "
        "OUT continues with one direction.",
        metavar="SHARE",
    )
    """
    Train for this share of the steps on both directions first, in a folder beside `out`; `out` goes
    on from there with one direction.
    """
    valid_source: Files | None = flag(
        "Held-out source text.", metavar="FILE", advice=WRITE_SENTENCES
    )
    """Sentences for validation."""
    valid_target: Files | None = flag(
        "Held-out target text.", metavar="FILE", advice=WRITE_SENTENCES
    )
    """Their translations."""
    pairs: Pairs | None = field(default=None, metadata={"advice": PAIR_FORMS})
    """
    Pairs in memory, instead of files: ``[("A dog.", "Ein Hund."), …]``, ``zip(sources, targets)``,
    a finite generator, or a table with two columns (pandas). A split of `datasets` may have two
    columns, or one named ``translation`` (set ``data.source_language`` for its order). They are
    stored in the run folder; a resumed run needs no pairs and refuses other pairs.
    """
    valid_pairs: Pairs | None = field(default=None, metadata={"advice": PAIR_FORMS})
    """Pairs for validation, in the same forms and stored in the same way."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options that do not depend on the kind of text."""

    out: str | Path | None = flag("The run folder to make.")
    """The run folder to create or, with `resume`, to continue."""
    tokenizer: str | Path | None = flag(
        "Tokenizer: a run folder, BPE codes of subword-nmt, a word list or a sentencepiece .model.",
        parser=run_path,
        metavar="PATH",
    )
    """
    A folder with ``tokenizer.json``, codes of subword-nmt, a list of words or a sentencepiece
    ``.model``, instead of subwords learned from the text. A resumed run keeps its own and refuses
    others.
    """
    settings: Settings = flag(
        "Change a setting: train.steps=200.", (), name="--set", metavar="KEY=VALUE"
    )
    """``{"train.steps": 200}``, ``{"train": {"steps": 200}}`` or ``["train.steps=200"]``."""
    resume: bool = flag(
        "Continue the run in --out, bit for bit; from the start if it has no checkpoint yet.", False
    )
    """Continue from the last checkpoint, or begin if there is none yet."""
    allow_inexact_resume: bool = flag(
        "Resume even if the results will not be bit-identical.", False
    )
    """Let `resume` continue even if this machine cannot reproduce the run bit for bit."""
    finetune_from: str | Path | None = flag(
        "Start from this run's weights, model settings and subwords; needed for "
        "train.objective=reward or risk.",
        parser=run_path,
        metavar="PATH",
    )
    """A pretrained run whose weights, shape and subwords are taken over."""
    finetune_weights: str = flag(
        "Weights of --finetune-from: average, best, last or step-N; the default is that of "
        "translate.",
        "default",
        show_default=False,
    )
    """Which of its weights: ``average``, ``best``, ``last`` or ``step-N``."""
    keep_state: Sequence[str] = flag(
        "Take over this state from --finetune-from: optimizer or schedule; may be repeated.",
        (),
        metavar="PART",
    )
    """State that is kept besides the weights: ``optimizer`` or ``schedule``."""
    reset: Sequence[str] = flag(
        "Do not take over this part from --finetune-from: tokenizer, embeddings, encoder or "
        "decoder; may be repeated.",
        (),
        metavar="PART",
    )
    """Parts that are reset: ``tokenizer``, ``embeddings``, ``encoder`` or ``decoder``."""
    tensorboard: str | Path | None = flag(
        "Write events for `tensorboard --logdir` to a subfolder of this folder."
    )
    """TensorBoard's `--logdir`; events are written to a folder in it, named like the run."""
    plugins: Files | None = None
    """Python files that register parts of your own (`heedful.plugins`); they are executed."""


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(RunOptions, TextOptions):
    """All options; the fields of the last base come first."""
