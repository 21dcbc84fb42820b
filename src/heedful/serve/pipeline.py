"""
The pipeline of a translation: split a text into sentences, translate them, join the translations.

::

    text ─ sentences short enough for the model ─ Worker ─ the text's layout or markup

Nothing is ever truncated: a sentence with more subwords than the model accepts is split.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from heedful.search.observer import Snapshot
from heedful.serve.batch_queue import Search
from heedful.serve.documents.file_kinds import Form, Layout, split_text
from heedful.serve.limits import HttpError
from heedful.serve.models import ServedModel
from heedful.serve.routing import ModelRoute
from heedful.serve.worker import Worker, aside
from heedful.text.reading.terms import Terms
from heedful.text.sentences import TextLayout
from heedful.translation.join import join_sentences
from heedful.translation.result import Translation, WordAlignment


def drop_tag(translation: Translation, tag: str) -> Translation:
    """
    Remove the language tag from the source words of the alignments.

    `tag`: the language tag, such as ``>>fra<<``; empty for none.
    """
    alignment = translation.alignment
    if not tag or alignment is None or alignment.source_words[:1] != (tag,):
        return translation
    links = tuple((i - 1, j) for i, j in alignment.links if i > 0)
    others = tuple(drop_tag(alternative, tag) for alternative in translation.alternatives)
    without = WordAlignment(alignment.source_words[1:], alignment.target_words, links)
    return replace(translation, alignment=without, alternatives=others)


# Maximum number of sentences in a request with attention. The explorer's document of one sentence
# has the weights of every head in every layer, and may be as long as a book.
MAX_WITH_ATTENTION = 16


@dataclass(frozen=True)
class TextResult:
    """A translated text."""

    route: ModelRoute
    """Model and languages."""
    translation: Translation
    """Translation of the text, with its alternatives."""
    pieces: tuple[str, ...] = ()
    """Sentences of the source text."""
    translations: tuple[Translation, ...] = ()
    """Translations of the sentences."""


async def translate(
    worker: Worker,
    text: str,
    route: ModelRoute,
    search: Search,
    *,
    form: Form,
    on_sentence: Callable[[int, str, Translation], None],
    on_step: Callable[[int, Snapshot], None],
) -> TextResult:
    """
    Translate a text and report progress.

    `on_sentence`: called in the event loop with the index, source and translation of each finished
    sentence. `on_step`: called in the worker thread with the index of a sentence and each step of
    its search.

    Canceling removes the text's waiting sentences from the queue.
    """
    terms = Terms.of(search.glossary, search.protected)
    parted = await aside(len(text), _SplitText.of, text, route, form, terms)
    if route.model is None:
        return parted.result([])

    def report(number: int, translation: Translation) -> None:
        plain = drop_tag(translation, route.direction.tag)
        on_sentence(number, parted.layout.pieces[number], plain)

    _check_attention(search, len(parted.lines))
    observer = None if route.model.no_attention else on_step
    how = replace(search, languages=route.model.languages(route.direction))
    translations = await worker.translate(
        route.model, parted.lines, how, on_sentence=report, observer=observer
    )
    return await aside(len(text), parted.result, translations)


async def translate_all(
    worker: Worker,
    texts: Sequence[str],
    route: Sequence[ModelRoute],
    search: Search,
    *,
    form: Form = "text",
) -> list[TextResult]:
    """
    Translate the texts of one request.

    Texts with the same model, languages and need for alignments are queued together: all of their
    sentences are accepted, or none.
    """
    size = sum(map(len, texts))
    terms = Terms.of(search.glossary, search.protected)
    pairs = list(zip(texts, route, strict=True))
    parted = await aside(size, lambda: [_SplitText.of(*pair, form, terms) for pair in pairs])
    groups: dict[tuple[ServedModel | None, bool, tuple[str, str]], list[_SplitText]] = {}
    for part in parted:
        model, way = part.route.model, part.route.direction
        languages = model.languages(way) if model else ("", "")
        groups.setdefault((model, part.linked, languages), []).append(part)
    _check_attention(search, sum(len(part.lines) for part in parted))
    translations: dict[_SplitText, list[Translation]] = {}
    for (model, linked, languages), several in groups.items():
        lines = [line for part in several for line in part.lines]
        how = replace(search, alignments=search.alignments or linked, languages=languages)
        rest = iter(await worker.translate(model, lines, how) if model else [])
        translations |= {part: list(islice(rest, len(part.lines))) for part in several}
    return await aside(size, lambda: [part.result(translations[part]) for part in parted])


def _check_attention(search: Search, sentences: int) -> None:
    """Refuse attention for a request with too many sentences."""
    if search.attention and sentences > MAX_WITH_ATTENTION:
        raise HttpError(
            400,
            f"attention can be returned for at most {MAX_WITH_ATTENTION} sentences, but this "
            f"request has {sentences:,}; send several requests.",
        )


@dataclass(frozen=True, eq=False)
class _SplitText:
    """A text that is split into sentences."""

    text: str
    route: ModelRoute
    layout: Layout

    @classmethod
    def of(cls, text: str, route: ModelRoute, form: Form, terms: Terms | None) -> "_SplitText":
        """Split a text if it needs translation; `terms` are never divided."""
        if route.model is None:
            return cls(text, route, TextLayout((), (text,)))
        fits = route.model.reader.cut_rule(terms, route.direction.tag)
        return cls(text, route, split_text(text, form, route.direction.source, fits))

    @property
    def lines(self) -> list[str]:
        """The sentences with the model's language tag, if it has tags."""
        return [self.route.tagged(piece) for piece in self.layout.pieces]

    @property
    def linked(self) -> bool:
        """Whether the layout needs alignments to place tags, and the model provides them."""
        model = self.route.model
        return model is not None and not model.no_alignment and any(self.layout.linked)

    def result(self, line_translations: Sequence[Translation]) -> TextResult:
        """Join the translated sentences."""
        if not line_translations:
            return TextResult(self.route, Translation(self.text, 0.0, (), 0.0))
        translations = tuple(
            drop_tag(translation, self.route.direction.tag) for translation in line_translations
        )
        joined = join_sentences(translations, self.layout.fill)
        return TextResult(self.route, joined, self.layout.pieces, translations)
