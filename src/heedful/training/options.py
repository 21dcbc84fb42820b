"""
The options of training, each defined in one place.

Each field is a keyword of `heedful.train` and an input of `TrainingSetup.resolve`. Most fields are
also flags of `heedful train` and of a task's command `train`. The metadata has the help of the
flag; ``help(heedful.train)`` shows the text below the field. This module does not import torch, so
the command line shows its help quickly.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

from heedful.arguments import GIVE_PAIRS, PAIR_FORMS, Files, Pairs, Settings, flag
from heedful.runs.hub_names import run_path

_TEXT = (
    "a file of lines, FILE.csv:COLUMN, FILE.tsv:COLUMN, FILE.jsonl:FIELD, FILE.tmx:LANGUAGE, "
    "FILE.sgm or FILE.xml:SIDE; may be compressed, repeated or a quoted glob."
)


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """The text of two languages; a task with different text has its own options."""

    source: Files | None = flag(f"Source text: {_TEXT}", metavar="FILE", advice=GIVE_PAIRS)
    """
    Sentences, one per line, or parts of files such as ``pairs.csv:en`` and ``memory.tmx:en``; plain
    or compressed.
    """
    target: Files | None = flag(
        "Target text, aligned with the source line by line.", metavar="FILE", advice=GIVE_PAIRS
    )
    """Translations in files of the same kinds: line n translates line n of `source`."""
    corpora: str | Path | None = flag(
        "TOML file that describes several corpora, instead of --source and --target."
    )
    """A TOML file that describes several corpora, instead of `source` and `target`."""
    data: str | Path | None = flag(
        "Output folder of heedful data prepare, instead of --source and --target.",
        advice=GIVE_PAIRS,
    )
    """A folder made by `heedful data prepare`, instead of `source`, `target` and `corpora`."""
    exclude: Files | None = flag(
        "Text such as a test set; training pairs that repeat one of its lines, exactly or nearly, "
        "are dropped. May be repeated.",
        metavar="FILE",
        advice=GIVE_PAIRS,
    )
    """
    Texts that training must not see, such as test sets: pairs that repeat their lines, exactly or
    nearly, are dropped.
    """
    both_directions_first: float | None = flag(
        "Share of the steps to spend first on both directions, in the folder OUT-both; the "
        "training in OUT then continues in one direction.",
        metavar="SHARE",
    )
    """
    Share of the steps that train on both directions, in a folder next to `out`, before the training
    in `out` continues in one direction.
    """
    valid_source: Files | None = flag("Held-out source text.", metavar="FILE", advice=GIVE_PAIRS)
    """Sentences for validation."""
    valid_target: Files | None = flag("Held-out target text.", metavar="FILE", advice=GIVE_PAIRS)
    """Translations of `valid_source`, line by line."""
    pairs: Pairs | None = field(default=None, metadata={"advice": PAIR_FORMS})
    """
    Pairs in memory, instead of files: ``[("A dog.", "Ein Hund."), …]``, ``zip(sources, targets)``,
    a finite generator, or a table with two columns (pandas). A split from Hugging Face's `datasets`
    may have two columns, or one column named ``translation`` (set ``data.source_language`` to name
    the source). The pairs are stored in the run folder; a resumed run needs no pairs and refuses
    other pairs.
    """
    valid_pairs: Pairs | None = field(default=None, metadata={"advice": PAIR_FORMS})
    """Pairs for validation, in the same forms and stored in the same way."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options that do not depend on the kind of text."""

    out: str | Path | None = flag("Run folder to create.")
    """The run folder to create or, with `resume`, to continue."""
    tokenizer: str | PathLike[str] | None = flag(
        "Tokenizer: a run folder, BPE codes of subword-nmt, a word list or a sentencepiece "
        ".model; by default it is learned.",
        parser=run_path,
        metavar="PATH",
    )
    """
    A folder with ``tokenizer.json``, codes of subword-nmt, a list of words or a sentencepiece
    ``.model``, instead of subwords learned from the text. A resumed run keeps its tokenizer and
    refuses another one.
    """
    settings: Settings = flag(
        "Change a setting: train.steps=200.", (), name="--set", metavar="KEY=VALUE"
    )
    """``{"train.steps": 200}``, ``{"train": {"steps": 200}}`` or ``["train.steps=200"]``."""
    resume: bool = flag(
        "Continue the run in --out, bit for bit on a CPU, or start it if the folder has no "
        "checkpoint yet.",
        False,
    )
    """Continue from the last checkpoint, or start the run if there is no checkpoint yet."""
    allow_inexact_resume: bool = flag(
        "Resume even if the results will not be bit-identical.", False
    )
    """Let `resume` continue even if this machine cannot reproduce the run bit for bit."""
    finetune_from: str | PathLike[str] | None = flag(
        "Start from this run's weights, model settings and subwords; needed for "
        "train.objective=reward or risk.",
        parser=run_path,
        metavar="PATH",
    )
    """A pretrained run from whose weights, model settings and subwords the new run starts."""
    finetune_weights: str = flag(
        "Weights of --finetune-from: average, best, last or step-N. The default is the first of "
        "average, best and last that exists; an average older than the last checkpoint "
        "does not count.",
        "default",
        show_default=False,
    )
    """Weights of the pretrained run: ``average``, ``best``, ``last`` or ``step-N``."""
    keep_state: Sequence[str] = flag(
        "State to take from --finetune-from in addition to the weights: optimizer or schedule; "
        "may be repeated.",
        (),
        metavar="PART",
    )
    """State that is kept in addition to the weights: ``optimizer`` or ``schedule``."""
    reset: Sequence[str] = flag(
        "Part to train from scratch instead of taking it from --finetune-from: tokenizer, "
        "embeddings, encoder or decoder; may be repeated.",
        (),
        metavar="PART",
    )
    """Parts that start anew: ``tokenizer``, ``embeddings``, ``encoder`` or ``decoder``."""
    tensorboard: str | Path | None = flag(
        "Write events for `tensorboard --logdir` to a subfolder of this folder."
    )
    """TensorBoard's `--logdir`; events are written to a folder in it, named like the run."""
    plugins: Files | None = None
    """Python files that register your own parts (`heedful.plugins`); they are executed."""


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(RunOptions, TextOptions):
    """All options; the fields of the last base class come first."""
