"""
Changes that make training pairs resemble text that people type: `data.augment`.

Each augmentation takes a pair and a random generator and returns a changed pair. Changes to the
content, such as capitals and symbols, are made on both sides, so the model learns to copy them.
Typing errors are made only in the source. At most one augmentation changes a pair, and the target
keeps its words. `AUGMENTATIONS` in `heedful.settings.registries` lists them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from random import Random
from string import ascii_lowercase

from heedful.errors import PluginError
from heedful.settings.registries import AUGMENTATIONS, augmentation_shares
from heedful.tokenization.special_symbols import split_tag

Pair = tuple[str, str]

_MARKS = re.compile(r"[\s.!?…。！？]+$")
_NEW_MARKS = ("", ".", "!", "?", "...", "!!", " ?")
# Symbols of chats, lists and keyboards; each is one character, so it fits in a small vocabulary.
_SYMBOLS = "😀😂😊😍😉👍🎉🔥✨❤☺★☆✓✔✗→←⇒•▪♪©®™°€£¥§"
_LETTERS_TO_A_TYPO = 30


def augment_pairs(pairs: Iterable[Pair], shares: str, generator: Random) -> Iterator[Pair]:
    """
    Change some pairs. `shares`: the share of each augmentation, in the format of `data.augment`.

    A language tag stays at the beginning of its line, and an augmentation that would leave a side
    empty is not applied.
    """
    chosen = [
        (name, AUGMENTATIONS[name], share) for name, share in augmentation_shares(shares).items()
    ]
    for source, target in pairs:
        place = generator.random()
        for name, change, share in chosen:
            place -= share
            if place < 0:
                tag, text = split_tag(source)
                new_source, new_target = _pair(name, change(text, target, generator))
                if new_source.strip() and new_target.strip():
                    source, target = f"{tag} {new_source}" if tag else new_source, new_target
                break
        yield source, target


def _pair(name: str, changed: object) -> Pair:
    """Check the result of an augmentation, which may come from a plugin."""
    if isinstance(changed, tuple) and [*map(type, changed)] == [str, str]:
        return changed
    raise PluginError(
        f"the augmentation {name!r} must return a pair of texts, but returns {changed!r}."
    )


def capitals(source: str, target: str, generator: Random) -> Pair:
    """Write both sides in capital letters."""
    del generator
    return source.upper(), target.upper()


def title(source: str, target: str, generator: Random) -> Pair:
    """Begin every word of both sides with a capital letter."""
    del generator
    return _title_case(source), _title_case(target)


def typos(source: str, target: str, generator: Random) -> Pair:
    """Double, drop, swap or replace some letters of the source."""
    letters = list(source)
    places = [place for place, letter in enumerate(letters) if letter.isalpha()]
    for place in generator.sample(places, min(len(places), 1 + len(places) // _LETTERS_TO_A_TYPO)):
        kind, letter = generator.randrange(4), letters[place]
        if kind == 0:
            letters[place] = ""
        elif kind == 1:
            letters[place] = letter * 2
        elif kind == 2 and place + 1 < len(letters):
            letters[place], letters[place + 1] = letters[place + 1], letter
        else:
            letters[place] = source[generator.choice(places)]
    return "".join(letters), target


def punctuation(source: str, target: str, generator: Random) -> Pair:
    """Replace the final punctuation of both sides with a random mark, or remove it."""
    mark = generator.choice(_NEW_MARKS)
    return _MARKS.sub("", source) + mark, _MARKS.sub("", target) + mark


def symbols(source: str, target: str, generator: Random) -> Pair:
    """Put an emoji, an arrow or another symbol before or after both sides."""
    return _add_to_both_sides(source, target, generator.choice(_SYMBOLS), generator)


def tags(source: str, target: str, generator: Random) -> Pair:
    """Put HTML tags around both sides, or an address, number, date or placeholder next to them."""
    name = "".join(generator.choices(ascii_lowercase, k=generator.randint(1, 8)))
    number = generator.randrange(10_000)
    kind = generator.randrange(8)
    if kind == 0:
        element = generator.choice(("b", "i", "p", "em", "li", "span"))
        return f"<{element}>{source}</{element}>", f"<{element}>{target}</{element}>"
    copied = (
        f"{{{{{name}}}}}",
        f"{{{number % 10}}}",
        f"%{number % 9 + 1}$s",
        f"https://{name}.org/{number}",
        f"{name}@{name[::-1]}.com",
        f"#{number}",
        f"{number}-{number % 12 + 1:02}-{number % 28 + 1:02}",
    )[kind - 1]
    return _add_to_both_sides(source, target, copied, generator)


def _title_case(text: str) -> str:
    """Begin every word with a capital letter."""
    return " ".join(word[:1].upper() + word[1:] for word in text.split(" "))


def _add_to_both_sides(source: str, target: str, copied: str, generator: Random) -> Pair:
    """Put a text before or after both sides."""
    if generator.random() < 0.5:
        return f"{copied} {source}", f"{copied} {target}"
    return f"{source} {copied}", f"{target} {copied}"


def augmented_sides(
    sources: Sequence[str], targets: Sequence[str], shares: str, generator: Random
) -> tuple[list[str], list[str]]:
    """Change some pairs; the two sides are passed and returned as separate lists."""
    pairs = list(augment_pairs(zip(sources, targets, strict=True), shares, generator))
    return [source for source, _ in pairs], [target for _, target in pairs]
