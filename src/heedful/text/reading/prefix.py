"""The beginning of a translation as the user gave it, which stays unchanged."""

from typing import NamedTuple

from heedful.text.reading.draft import Draft, Edit


class Prefix(NamedTuple):
    """A prefix, in the model's and in the user's spelling."""

    decoded: str = ""
    """The model's text, with a symbol for each unknown subword."""
    written: str = ""


NO_PREFIX = Prefix()
"""An empty prefix: the user gave none."""


def with_prefix(translation: Draft, prefix: Prefix) -> tuple[Draft, int]:
    """Write the prefix as the user did; also return the end of its last word."""
    if not prefix.written or not translation.text.startswith(prefix.decoded):
        return translation, 0
    if prefix.decoded != prefix.written:
        translation = translation.edited([Edit(0, len(prefix.decoded), prefix.written)])
    # The model may have continued the last word of the prefix.
    end = len(prefix.written)
    while end < len(translation.text) and not translation.text[end].isspace():
        end += 1
    return translation, end


def move_after_prefix(edit: Edit, translation: str, end: int) -> Edit:
    """Move insertions inside a prefix to its end; drop those that the prefix already contains."""
    put = edit.text.strip()
    if put and put in translation[:end]:
        return Edit(end, max(end, edit.end), "")
    return Edit(end, max(end, edit.end), f" {put}") if edit.start < end else edit
