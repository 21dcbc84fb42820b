"""A compact memory of what has been seen, for finding duplicates in text of any size."""

import hashlib
from collections.abc import Iterable

import numpy as np
from jaxtyping import Bool, UInt64

Hashes = UInt64[np.ndarray, " entries"]


def hash_texts(texts: Iterable[str]) -> Hashes:
    """
    Hash texts to 64 bits each.

    Parameters
    ----------
    texts : iterable of str
        Any text.

    Returns
    -------
    ndarray of uint64, shape (entries,)
        One hash for each, the same on every machine.

    Notes
    -----
    BLAKE2b, not Python's own hash, which differs from process to process: a text that is read
    again after an interruption must lose the same lines.
    """
    digests = (
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        for text in texts
    )
    return np.frombuffer(b"".join(digests), np.dtype("<u8")).astype(np.uint64)


class SeenHashes:
    """
    Remember 64-bit hashes in little more than their own size.

    Notes
    -----
    A few sorted arrays, each at least twice as long as the next; what is new becomes a short one,
    and short ones are merged (the log-structured merge of O'Neil et al. 1996). That is 8 bytes a
    hash, 20 while the longest arrays are merged; a set of Python's takes about 100.

    Two different texts share a hash with a probability of 2^-64, so among n texts about
    n^2 / 2^65 are taken for duplicates wrongly: 3e-8 among a million, 3e-4 among a hundred
    million.
    """

    def __init__(self) -> None:
        self._blocks: list[Hashes] = []

    def __len__(self) -> int:
        """Count the hashes."""
        return sum(map(len, self._blocks))

    def add(self, hashes: Hashes) -> Bool[np.ndarray, " entries"]:
        """
        Add hashes and tell which ones are new.

        Parameters
        ----------
        hashes : ndarray of uint64, shape (entries,)
            In the order in which they come.

        Returns
        -------
        ndarray of bool, shape (entries,)
            True where a hash was met for the first time, here or in an earlier call.

        Notes
        -----
        Some thousands at a time are quick: they are sorted before they are looked up, so that
        neighbours are found in the same pages.
        """
        distinct, first = np.unique(hashes, return_index=True)
        known = np.zeros(len(distinct), bool)
        for block in self._blocks:
            places = np.searchsorted(block, distinct)
            known |= block[np.minimum(places, len(block) - 1)] == distinct
        new = np.zeros(len(hashes), bool)
        new[first[~known]] = True
        self._keep(distinct[~known])
        return new

    def _keep(self, fresh: Hashes) -> None:
        """Add a sorted array and merge those that have become too short."""
        if not len(fresh):
            return
        while self._blocks and len(self._blocks[-1]) < 2 * len(fresh):
            fresh = np.concatenate([self._blocks.pop(), fresh])
            fresh.sort(kind="stable")  # merges runs that are sorted already
        self._blocks.append(fresh)
