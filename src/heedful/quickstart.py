"""
The quickstart: corpus, training, score and pictures without a download.

::

    text ─ train ─ average ─ translate ─ score ─ attention
"""

import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from heedful.alignment.links import read_gold
from heedful.analysis.attend import attend
from heedful.data.toy_grammar.corpus import SIZES, write_grammar_text
from heedful.errors import RunFolderError, UserError
from heedful.evaluation.bleu import evaluate_texts
from heedful.files import read_text_within
from heedful.runs.average import average_checkpoints
from heedful.runs.run import Run
from heedful.training.run_folder import Claim
from heedful.training.train import train
from heedful.translation.translator import Translator
from heedful.visualise.explorer import write_explorer
from heedful.visualise.figure_files import check_drawing
from heedful.visualise.heatmap import attention_heatmap
from heedful.visualise.record import ExplorerRecord

SENTENCE = "the big red dog"


def quickstart(
    out: Path,
    *,
    device: str = "auto",
    precision: str = "auto",
    threads: int = 0,
    say: Callable[[str], object],
    settings: Sequence[str] = (),
    sizes: tuple[int, int, int] = SIZES,
    resume: bool = False,
) -> float:
    """Train a small translator on the toy corpus and show what it does."""
    check_drawing()
    claim = claim_folder(out, resume)
    write_grammar_text(out / "text", sizes)
    say(f"wrote {sizes[0]:,} sentence pairs of a small grammar to {out / 'text'}")
    run = out / "run"
    with leaves_nothing(claim, run):
        train(
            "tiny",
            source=out / "text" / "train.en",
            target=out / "text" / "train.fr",
            valid_source=out / "text" / "valid.en",
            valid_target=out / "text" / "valid.fr",
            out=run,
            resume=resume and run.exists(),
            settings=[
                f"train.device={device}",
                f"train.precision={precision}",
                f"train.threads={threads}",
                *settings,
            ],
        )
    average_run(run, say)

    translator = Translator.load(run, device=device, precision=precision, threads=threads)
    bleu = _score(translator, out / "text", say)
    shown = attend(translator, SENTENCE)
    say(f"{SENTENCE}  ->  {shown.text}")
    picture, page = out / "attention.png", out / "attention.html"
    write_explorer(ExplorerRecord(SENTENCE, (shown,)), page)
    assert shown.cross is not None
    attention_heatmap(
        shown.cross[-1],
        shown.target,
        shown.source,
        picture,
        title="Where the decoder looks: last layer, every head",
    )
    say(f"text         {out / 'text'}")
    say(f"run folder   {run}")
    say(f"attention    {picture}")
    say(f"explore it   {page}")
    say(f'try next     echo "{SENTENCE}" | {command_name()} translate {run}')
    return bleu


def claim_folder(out: Path, resume: bool) -> Claim:
    """Check that a quickstart may start or resume in a folder."""
    if resume and not (out / "text").is_dir():
        raise RunFolderError(
            f"--resume continues an interrupted quickstart, but {out} holds no quickstart; leave "
            "--resume out."
        )
    if not resume and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RunFolderError(
            f"--out must be a new or empty folder, but {out} is not; to continue a quickstart "
            "in it, add --resume; otherwise delete it, or name another folder."
        )
    claim = Claim()
    claim.will_make(out)
    return claim


@contextmanager
def leaves_nothing(claim: Claim, run: Path) -> Iterator[None]:
    """Delete the text if training is refused, so that no files remain."""
    try:
        yield
    except UserError as error:
        if not run.exists():
            claim.cleanup_if_refused(error)
        raise


def average_run(run: Path, say: Callable[[str], object]) -> None:
    """Average the last checkpoints."""
    opened = Run.open(run)
    steps = average_checkpoints(opened.folder, opened.config.train.keep_last, opened.signature)
    say(f"averaged the last {len(steps)} checkpoints")


def command_name() -> str:
    """Return the command that runs heedful on this machine."""
    return "heedful" if shutil.which("heedful") else f"{sys.executable} -m heedful"


def _score(translator: Translator, text: Path, say: Callable[[str], object]) -> float:
    """Translate the test text and score it."""
    sources = read_text_within(text / "test.en").splitlines()
    references = read_text_within(text / "test.fr").splitlines()
    translations = [translation.text for translation in translator.translate(sources)]
    bleu = evaluate_texts(translations, [references], language="fr").bleu
    right = sum(a == b for a, b in zip(translations, references, strict=True))
    say(
        f"BLEU {bleu.score:.1f} on {len(sources):,} unseen sentences, {right:,} translations "
        f"equal to the reference; {bleu.signature}"
    )
    for source, translation in list(zip(sources, translations, strict=True))[:5]:
        say(f"  {source}  ->  {translation}")
    gold = [read_gold(line) for line in read_text_within(text / "test.links").splitlines()]
    best, counts = next(iter(translator.aligner.rate(sources, references, gold).items()))
    say(
        f"word alignments computed from the attention ({best}): error rate "
        f"{counts.error_rate:.1%}, precision {counts.precision:.1%}, recall {counts.recall:.1%}"
    )
    return bleu.score
