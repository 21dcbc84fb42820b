"""Digests of uploaded cards, which show whether a card was edited on the hub."""

import hashlib

_BEFORE, _AFTER = b"\n<!-- SHA-256 of the text above: ", b" -->\n"


def signed(card: bytes) -> bytes:
    """Append the digest of a card as a comment, which the hub does not show."""
    return card + _BEFORE + hashlib.sha256(card).hexdigest().encode() + _AFTER


def is_edited(card: bytes) -> bool:
    """Return whether a card has changed since it was signed, or was never signed."""
    return card != signed(card[: card.rfind(_BEFORE)])
