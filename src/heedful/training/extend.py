"""
Extension of a run's vocabulary for another language.

The embedding, output row and bias of a new subword start as the means over the old subwords that
spell it. Those of a new language tag start as the means over the old tags, or over all old subwords
if there are no tags. All other weights are unchanged. The result is an ordinary run that `heedful
train --finetune-from` can continue.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor

from heedful.arguments import Files
from heedful.errors import RunFolderError, SettingError, TextError, TokenizerError
from heedful.families.build import padded_vocabulary
from heedful.files import replacing
from heedful.preparation.training_data import as_list
from heedful.runs.hub_names import pinned_name
from heedful.runs.origin import ORIGIN
from heedful.runs.run import Run, flat_settings
from heedful.runs.write_run import write_run
from heedful.tasks.registry import task_of
from heedful.tasks.task import TRANSLATION
from heedful.text.corpus import expand, read_lines
from heedful.text.language_codes import BARE_CODE, parse_code
from heedful.tokenization.extension.merges import NewPiece
from heedful.tokenization.extension.models import ExtensibleModel, without
from heedful.tokenization.frame import Frame
from heedful.tokenization.imported_model import is_imported
from heedful.tokenization.special_symbols import PAD, SPECIAL_PIECES, is_tag, split_tag
from heedful.tokenization.subword_model import SubwordModel
from heedful.tokenization.tokenizer import Tokenizer
from heedful.training.finetune import TABLES

# Maximum number of lines from which new subwords are learned.
_MOST_LINES = 1_000_000
_FIRST_FREE = len(SPECIAL_PIECES)

Rows = list[list[int]]
"""For each new id, the old ids whose rows are averaged to initialize its row."""


@dataclass(frozen=True)
class NewLanguage:
    """A language to add, with its text."""

    source: Files | None = None
    """Text that the model will read, in the new language."""
    target: Files | None = None
    """Text that the model will write, in the new language."""
    pieces: int = 500
    """Maximum number of new subwords to learn for each subword model."""
    tag: str = ""
    """The language tag, with or without angle brackets; empty for none."""
    keep: Files | None = None
    """Text that must be split into the same subwords as before."""

    @property
    def code(self) -> str:
        """The language tag without angle brackets."""
        return self.tag[2:-2] if is_tag(self.tag) else self.tag

    def symbol(self, tokenizer: Tokenizer) -> str:
        """Return the vocabulary entry of the tag, spelled like the tags of the known languages."""
        frame = tokenizer.frame
        if not self.tag or frame is None or not frame.languages:
            return self.tag and f">>{self.code}<<"
        known, number = next(iter(frame.languages.items()))
        return tokenizer.models[1].piece(number).replace(known, self.code)


@dataclass(frozen=True)
class Extended:
    """The result of an extension."""

    run: Path
    """The new run folder."""
    sizes: tuple[tuple[int, int], tuple[int, int]]
    """Vocabulary sizes before and after, of the source and of the target."""
    notes: tuple[str, ...] = ()
    """Notes for the user."""

    def __str__(self) -> str:
        """Format as one line."""
        sides = [f"{old:,} entries become {new:,}" for old, new in dict.fromkeys(self.sizes)]
        return f"{self.run}: {'; '.join(sides)}"


def extend(
    run: str | Path, out: str | Path, language: NewLanguage, *, weights: str = "default"
) -> Extended:
    """
    Write a copy of a run whose vocabulary contains another language.

    Raises `TextError` for text that cannot be read or is empty, and `SettingError` for a tag that
    cannot be added. Raises `TokenizerError` for a vocabulary that cannot be extended, or text
    without new subwords. In all these cases the folder `out` is not created.
    """
    goal, old = Path(out), Run.open(run)
    if goal.exists():
        raise RunFolderError(f"--out must be a new folder, but {goal} exists; name another one.")
    _check(old, language)
    checkpoint = old.load_checkpoint(old.checkpoint_folder(weights)).model
    models, rows, notes = _extend_models(old, language)
    frame = _longer_frame(old.tokenizer, language, models[-1])
    tokenizer = old.tokenizer.changed(*models, frame=frame)
    config = old.config
    if not is_imported(tokenizer.kind):
        size = max(tokenizer.source_size, tokenizer.target_size)
        config = config.with_settings({"data.vocabulary_size": size})
    sizes = (
        (old.tokenizer.source_size, tokenizer.source_size),
        (old.tokenizer.target_size, tokenizer.target_size),
    )
    longer = _longer_tables(checkpoint, sizes, rows, config.data.vocabulary_multiple)
    reason = f"vocabulary of {pinned_name(run)} extended"
    state = {"reason": reason, "notes": list(notes), ORIGIN: pinned_name(run)}
    with replacing(goal) as temporary_folder:
        try:
            write_run(temporary_folder, config, tokenizer, longer, state, goal)
        except RunFolderError as error:
            raise TokenizerError(
                f"the vocabulary of {old.folder.path} cannot be extended, because its model may "
                "have weights for each subword besides the embeddings and the output layer; "
                f"fine-tune with train --finetune-from {old.folder.path} --reset tokenizer "
                f"instead. {error}"
            ) from error
    return Extended(goal, sizes, notes)


def _check(run: Run, language: NewLanguage) -> None:
    """Refuse invalid arguments before text is read."""
    if task_of(flat_settings(run.config)) is not TRANSLATION:
        raise SettingError(
            f"a language can only be added to a translator, but {run.folder.path} has another "
            "task; give the run of a translator."
        )
    known = (*run.tokenizer.tags, *run.tokenizer.languages)
    tag = language.symbol(run.tokenizer)
    if tag and not is_tag(f">>{language.code}<<"):
        raise SettingError(
            f"--tag must be a code of letters, digits, - and _, such as fr, but got "
            f"{language.tag!r}."
        )
    if tag and (tag in known or language.code in known):
        raise SettingError(
            f"--tag must be new, but {run.folder.path} already has {tag}; leave --tag out to add "
            "subwords alone."
        )
    alike = _alike(language.code, run.tokenizer.languages) if tag else []
    if alike:
        raise SettingError(
            f"--tag must be a new language, but {language.code} is the same language as {alike[0]} "
            f"of {run.folder.path}; leave --tag out to add subwords alone."
        )
    if tag and tag == language.code and not BARE_CODE.fullmatch(tag):
        raise SettingError(
            f"--tag must have the form of the codes of {run.folder.path}, such as {known[0]}, but "
            f"is {tag!r}: a language token without a script or country could be a word."
        )
    if language.pieces and language.source is None and language.target is None:
        raise TextError(
            "new subwords are learned from text, but there is none; give --source, --target or "
            "both, or --pieces 0 for the tag alone."
        )
    if not language.pieces and not tag:
        raise SettingError(
            "--pieces 0 adds nothing without --tag; give --tag, or --pieces above 0."
        )


def _alike(code: str, known: Sequence[str]) -> list[str]:
    """List the known codes that a code includes; ``sr`` includes every script and country."""
    meant = parse_code(code)
    if meant is None:
        return []
    parsed = [parse_code(name) for name in known]
    is_bare = not (meant.script or meant.region or meant.variants)
    return [
        name
        for name, tag in zip(known, parsed, strict=True)
        if tag == meant or (is_bare and tag is not None and tag.language == meant.language)
    ]


def _extend_models(
    run: Run, language: NewLanguage
) -> tuple[list[SubwordModel], tuple[Rows, Rows], tuple[str, ...]]:
    """Extend the subword models of both sides; shared ids stay shared."""
    tokenizer = run.tokenizer
    sides = [ExtensibleModel(model) for model in dict.fromkeys(tokenizer.models)]
    texts: list[Sequence[Files | None]] = [(language.source,), (language.target,)]
    if len(sides) == 1:
        texts = [(language.source, language.target)]
    keep_lines = list(_lines(language.keep)) if language.keep is not None else []
    notes = []
    learned: list[list[NewPiece]] = []
    for side, files in zip(sides, texts, strict=True):
        lines = [line for part in files if part is not None for line in _lines(part)]
        pieces = side.learn(lines, keep_lines, language.pieces) if lines and language.pieces else []
        learned.append(_harmless(side, pieces, keep_lines))
    if language.pieces and not any(learned):
        raise TokenizerError(
            "the text must contain, at least twice, a subword that the vocabulary lacks"
            + (" and that is absent from --keep" if keep_lines else "")
            + ", but it contains none; give more text, or --pieces 0 for the tag alone."
        )
    shared = tokenizer.shared
    together = [new for pieces in learned for new in pieces]
    symbol = language.symbol(tokenizer)
    tags = [symbol] if symbol else []
    same = list(tokenizer.frame.languages.values()) if tokenizer.frame is not None else []
    models, rows = [], []
    for number, (side, own) in enumerate(zip(sides, learned, strict=True)):
        entries = {new.piece: new for new in (together if shared else own)}
        names = [name for name in entries if name not in side.ids]
        listed = [*(tags if shared or number == 0 else []), *names]
        models.append(side.extended(own, listed))
        rows.append(_means(side, entries, listed, same or [*side.model.tags.values()]))
        notes.append(f"{len(own):,} new {side.model.kind} subwords")
    if keep_lines:
        notes.append(f"all {len(keep_lines):,} lines of --keep still have the same ids")
    else:
        notes.append(
            "text with the new subwords is now split differently, in the old languages too; --keep "
            "with text in the old languages prevents this"
        )
    if tags and not (tokenizer.tags or same):
        notes.append(f"lines without {tags[0]} are read without a language tag, as before")
    return models, (rows[0], rows[-1]), tuple(notes)


def _harmless(
    side: ExtensibleModel, pieces: list[NewPiece], keep_lines: list[str]
) -> list[NewPiece]:
    """Remove new subwords until the lines of `--keep` are split as before."""
    while keep_lines and pieces:
        longer = side.extended(pieces, [new.piece for new in pieces if new.piece not in side.ids])
        names = {new.piece for new in pieces}
        met = {
            longer.piece(number)
            for row in side.changed_by(longer, keep_lines)
            for number in row
            if longer.piece(number) in names
        }
        if not met:
            break
        pieces = without(pieces, met)
    return pieces


def _longer_frame(old: Tokenizer, language: NewLanguage, model: SubwordModel) -> Frame | None:
    """Add the language to a `Frame` with language tokens; return any other `Frame` unchanged."""
    frame, symbol = old.frame, language.symbol(old)
    if frame is None or not frame.languages or not symbol:
        return frame
    number = next(n for n in range(model.size) if model.piece(n) == symbol)
    return replace(frame, languages={**frame.languages, language.code: number})


def _means(
    side: ExtensibleModel,
    entries: Mapping[str, NewPiece],
    listed: Sequence[str],
    tags: Sequence[int],
) -> Rows:
    """List the old ids whose rows are averaged for each new entry; `tags`: ids of language tags."""
    every = [number for number in range(_FIRST_FREE, side.model.size) if number not in tags]
    rows = []
    for name in listed:
        old = side.old_ids(entries[name]) if name in entries else tags
        rows.append([*old] or every)
    return rows


def _longer_tables(
    weights: Mapping[str, Tensor],
    sizes: tuple[tuple[int, int], tuple[int, int]],
    rows: tuple[Rows, Rows],
    multiple: int,
) -> dict[str, Tensor]:
    """Add rows to the weights that have one row per token; spare rows repeat the padding's row."""
    longer = dict(weights)
    for name, side in TABLES.items():
        if name not in weights:
            continue
        number = 0 if side == "source" else 1
        (old, new), table = sizes[number], weights[name]
        first = table[:old]
        means = [first[torch.tensor(ids)].mean(0) for ids in rows[number]]
        filling = padded_vocabulary(new, multiple) - new
        longer[name] = torch.stack([*first, *means, *[table[PAD]] * filling])
    return longer


def _lines(files: Files) -> Iterator[str]:
    """Read lines and remove their language tags; `TextError` if all are empty."""
    lines = (line for text in expand(as_list(files)) for line in read_lines(text))
    count = 0
    for line in islice(lines, _MOST_LINES):
        text = split_tag(line)[1]
        if text.strip():
            count += 1
            yield text
    if not count:
        names = ", ".join(str(name) for name in as_list(files))
        raise TextError(
            f"new subwords are learned from text, but {names} is empty; give other text."
        )
