"""The beginning of a translation that a user has decided, which reading does not change."""

from typing import NamedTuple

from heedful.text.reading.draft import Draft, Edit


class Prefix(NamedTuple):
    """A beginning, as the model wrote it and as the user did."""

    decoded: str = ""
    """With a sign for what the vocabulary lacks."""
    written: str = ""


NO_PREFIX = Prefix()
"""A translation that may begin freely."""


def with_prefix(translation: Draft, prefix: Prefix) -> tuple[Draft, int]:
    """Write the prefix as the user did; returns the end of its last word, too."""
    if not prefix.written or not translation.text.startswith(prefix.decoded):
        return translation, 0
    if prefix.decoded != prefix.written:
        translation = translation.edited([Edit(0, len(prefix.decoded), prefix.written)])
    # The model may have gone on within the last word.
    end = len(prefix.written)
    while end < len(translation.text) and not translation.text[end].isspace():
        end += 1
    return translation, end


def behind_prefix(edit: Edit, translation: str, end: int) -> Edit:
    """Move what would be put into a prefix behind it; leave out what stands in it already."""
    put = edit.text.strip()
    if put and put in translation[:end]:
        return Edit(end, max(end, edit.end), "")
    return Edit(end, max(end, edit.end), f" {put}") if edit.start < end else edit
