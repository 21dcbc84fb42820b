"""
From a text to its translation: which model, which sentences, and everything put together again.

::

    text ─ its language, if that was not said ─ a model ─ sentences ─ Worker ─ the text's layout

A sentence with more subwords than the model reads is translated in parts, at spaces if there are
any; nothing is ever cut away.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from heedful.search.watch import Snapshot
from heedful.serve.combining import combined, untagged
from heedful.serve.limits import Refused
from heedful.serve.models import Direction, Model, Models
from heedful.serve.text.detect import Guess, detect
from heedful.serve.text.markup import Markup
from heedful.serve.text.sentences import Layout, split
from heedful.serve.worker import Search, Worker
from heedful.workflow.translation import Translation

Form = Literal["text", "html", "sentence"]
"""What a text is; a sentence is not taken apart."""

# Longer texts are taken apart in a thread, so that others need not wait.
_AT_ONCE = 2000
# In a language that a text is already in with this confidence, it stays as it is.
_SURE = 50.0


@dataclass(frozen=True)
class Chosen:
    """
    Hold what translates a text.

    Attributes
    ----------
    model : Model, optional
        None where the text is in the target language and stays as it is.
    direction : Direction
        From which language to which.
    detected : Guess, optional
        If the language was not said.

    Notes
    -----
    Made by `Speaker.choose`.
    """

    model: Model | None
    direction: Direction
    detected: Guess | None = None


@dataclass(frozen=True)
class Spoken:
    """
    Hold a translated text.

    Attributes
    ----------
    chosen : Chosen
        What translated it.
    whole : Translation
        Of the text, with its alternatives.
    pieces : tuple of str
        Its sentences.
    translations : tuple of Translation
        One each.

    Notes
    -----
    A text without anything to translate has no pieces and is itself.
    """

    chosen: Chosen
    whole: Translation
    pieces: tuple[str, ...] = ()
    translations: tuple[Translation, ...] = ()


@dataclass(frozen=True)
class Watched:
    """
    Hold what is to be told while a text is being translated.

    Attributes
    ----------
    piece : callable
        Called in the event loop with each sentence that is done: its number, the sentence, its
        translation.
    step : callable
        Called in the translating thread after each step: the sentence's number and what is seen.

    Notes
    -----
    An engine that cannot be watched calls only `piece`.
    """

    piece: Callable[[int, str, Translation], None]
    step: Callable[[int, Snapshot], None]


class Speaker:
    """
    Translate texts.

    Parameters
    ----------
    models : Models
        What translates.
    worker : Worker
        Where it does.

    Notes
    -----
    What the routes have in common.
    """

    def __init__(self, models: Models, worker: Worker) -> None:
        self.models, self.worker = models, worker

    async def choose(self, text: str, source: str, target: str | None, name: str | None) -> Chosen:
        """
        Find what translates a text.

        Parameters
        ----------
        text : str
            The text, for its language.
        source : str
            Code of its language, or ``auto``.
        target : str or None
            Code of the language to translate into; None for the first that the models know.
        name : str or None
            Of a model; None for any.

        Returns
        -------
        Chosen
            What was found.

        Notes
        -----
        Raises `Refused` for what is not there.
        """
        models = self.models.called(name)
        if not models:
            raise Refused(404, "model must be a name of GET /v1/models, but is none.")
        every = [direction for model in models for direction in model.directions]
        if target is None:
            fits = [one for one in every if source in ("auto", one.source)]
            target = (fits or every)[0].target
        sources = list(dict.fromkeys(one.source for one in every if one.target == target))
        if not sources:
            known = ", ".join(dict.fromkeys(one.target for one in every))
            raise Refused(
                400, f"target must be a language that can be translated into ({known}), but is not."
            )
        detected = None
        if source == "auto":
            detected, source = await _detected(text, sources, target)
        same = source == target and source not in sources
        found = None if same else self.models.find(name, source, target)
        if found is None and not same:
            raise Refused(
                400,
                f"source must be auto or a language that can be translated into {target} "
                f"({', '.join(sources)}), but is not.",
            )
        if found is None:
            return Chosen(None, Direction(source, target, ""), detected)
        return Chosen(*found, detected)

    async def translate(
        self,
        text: str,
        chosen: Chosen,
        search: Search,
        *,
        form: Form = "text",
        watched: Watched | None = None,
    ) -> Spoken:
        """
        Translate a text.

        Parameters
        ----------
        text : str
            The text.
        chosen : Chosen
            With what.
        search : Search
            How.
        form : {'text', 'html', 'sentence'}, default 'text'
            What the text is; a sentence is not taken apart.
        watched : Watched, optional
            Told of every step and every sentence.

        Returns
        -------
        Spoken
            With the text's layout or markup.

        Notes
        -----
        Cancelled, it takes what waits out of the queue.
        """
        parted = await _Text.part(text, chosen, form)
        if chosen.model is None or watched is None:
            return (await self._speak([parted], search))[0]
        parts, pieces = parted.parts, parted.layout.pieces

        def each(part: int, translation: Translation) -> None:
            if (whole := parts.add(part, translation)) is not None:
                watched.piece(parts.owners[part], pieces[parts.owners[part]], whole)

        def step(part: int, snapshot: Snapshot) -> None:
            watched.step(parts.owners[part], snapshot)

        watch = step if chosen.model.looks else None
        found = await self.worker.translate(
            chosen.model, parts.texts, search, each=each, watch=watch
        )
        return parted.spoken(found)

    async def translate_all(
        self, texts: Sequence[str], chosen: Sequence[Chosen], search: Search, *, form: Form = "text"
    ) -> list[Spoken]:
        """
        Translate the texts of one request.

        Parameters
        ----------
        texts : sequence of str
            Texts.
        chosen : sequence of Chosen
            With what each.
        search : Search
            How.
        form : {'text', 'html', 'sentence'}, default 'text'
            What they are.

        Returns
        -------
        list of Spoken
            In order.

        Notes
        -----
        The sentences of all texts wait together, so a request is taken or refused as a whole.
        """
        pairs = zip(texts, chosen, strict=True)
        return await self._speak([await _Text.part(*pair, form) for pair in pairs], search)

    async def _speak(self, parted: Sequence["_Text"], search: Search) -> list[Spoken]:
        """Translate texts that were taken apart, those of one model together."""
        spoken: list[Spoken | None] = [None] * len(parted)
        groups: dict[tuple[Model | None, bool], list[int]] = {}
        for number, one in enumerate(parted):
            groups.setdefault((one.chosen.model, one.linked), []).append(number)
        for (model, linked), numbers in groups.items():
            lines = [line for number in numbers for line in parted[number].parts.texts]
            how = replace(search, alignments=True) if linked else search
            found = await self.worker.translate(model, lines, how) if model else []
            for number in numbers:
                mine = len(parted[number].parts.texts)
                spoken[number], found = parted[number].spoken(found[:mine]), found[mine:]
        return [one for one in spoken if one is not None]


@dataclass(frozen=True)
class _Text:
    """A text that was taken apart."""

    text: str
    chosen: Chosen
    layout: Layout | Markup
    parts: "_Parts"

    @classmethod
    async def part(cls, text: str, chosen: Chosen, form: Form) -> "_Text":
        """Take a text apart, unless it stays as it is."""
        if chosen.model is None:
            return cls(text, chosen, Layout((), (text,)), _Parts())
        fits = partial(_fits, chosen.model, chosen.direction.tag)
        layout = await _apart(text, form, chosen.direction.source, fits)
        parts = _Parts(chosen.direction.tag)
        for piece in layout.pieces:
            parts.put(chosen.model, piece)
        return cls(text, chosen, layout, parts)

    @property
    def linked(self) -> bool:
        """Whether alignments are needed to put it together, and can be had."""
        model = self.chosen.model
        return model is not None and model.looks and any(self.layout.linked)

    def spoken(self, found: Sequence[Translation]) -> Spoken:
        """Put it together again."""
        if not found:
            return Spoken(self.chosen, Translation(self.text, 0.0, (), 0.0))
        translations = self.parts.joined(found)
        whole = combined(translations, self.layout)
        return Spoken(self.chosen, whole, self.layout.pieces, tuple(translations))


class _Parts:
    """Sentences with their tags, those that are too long in parts."""

    def __init__(self, tag: str = "") -> None:
        self.texts: list[str] = []
        self.owners: list[int] = []
        self._tag = tag
        self._found: dict[int, Translation] = {}
        self._pieces = 0

    def put(self, model: Model, piece: str) -> None:
        """Take the next sentence."""
        for part in _fitting(model, piece, self._tag):
            self.texts.append(f"{self._tag} {part}" if self._tag else part)
            self.owners.append(self._pieces)
        self._pieces += 1

    def add(self, part: int, translation: Translation) -> Translation | None:
        """Take a part; give its sentence if that is complete now."""
        owner = self.owners[part]
        self._found[part] = translation
        mine = [number for number, one in enumerate(self.owners) if one == owner]
        if any(number not in self._found for number in mine):
            return None
        return self._sentence([self._found[number] for number in mine])

    def joined(self, found: Sequence[Translation]) -> list[Translation]:
        """Give all sentences."""
        mine: dict[int, list[Translation]] = {}
        for owner, translation in zip(self.owners, found, strict=True):
            mine.setdefault(owner, []).append(translation)
        return [self._sentence(parts) for parts in mine.values()]

    def _sentence(self, parts: Sequence[Translation]) -> Translation:
        """Put the parts of a sentence together, without the tag."""
        parts = [untagged(part, self._tag) for part in parts]
        return parts[0] if len(parts) == 1 else combined(parts, None)


def _fits(model: Model, tag: str, piece: str) -> bool:
    """Whether a model can read a sentence as a whole."""
    room = model.longest - 1
    # No subword is shorter than a byte, and the space before the first word may be one more.
    if len(piece.encode()) < room:
        return True
    return model.lengths([f"{tag} {piece}" if tag else piece])[0] <= room


def _fitting(model: Model, piece: str, tag: str) -> list[str]:
    """Halve a sentence that nothing took apart until every part of it can be read as a whole."""
    if len(piece) < 2 or _fits(model, tag, piece):
        return [piece]
    middle = len(piece) // 2
    spaces = [
        place for place in (piece.rfind(" ", 1, middle), piece.find(" ", middle)) if place > 0
    ]
    at = min(spaces, key=lambda place: abs(place - middle), default=middle)
    halves = piece[:at].strip(), piece[at:].strip()
    return [part for half in halves if half for part in _fitting(model, half, tag)]


async def _apart(
    text: str, form: Form, language: str, fits: Callable[[str], bool]
) -> Layout | Markup:
    """Find the sentences of a text; those that are too long are cut."""
    if form == "sentence":
        inner = " ".join(text.strip().splitlines())
        if not inner:
            return Layout((), (text,))
        begin, end = len(text) - len(text.lstrip()), len(text.rstrip())
        return Layout((inner,), (text[:begin], text[end:]))
    take: Callable[..., Layout | Markup] = Markup.parse if form == "html" else split
    if len(text) <= _AT_ONCE:
        return take(text, language, fits)
    return await asyncio.to_thread(take, text, language, fits)


async def _detected(text: str, sources: Sequence[str], target: str) -> tuple[Guess, str]:
    """Tell what a text is in, and as what it is to be read."""
    languages = list(dict.fromkeys([*sources, target]))
    if len(text) <= _AT_ONCE:
        guesses = detect(text, languages)
    else:
        guesses = await asyncio.to_thread(detect, text, languages)
    best = guesses[0]
    if best.language in sources or best.confidence >= _SURE:
        return best, best.language
    return best, next(guess.language for guess in guesses if guess.language in sources)
