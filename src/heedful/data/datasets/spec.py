"""
Descriptions of downloadable corpora: the files to fetch and the text in them.

::

    KnownCorpus ─ downloads: train.en.gz, dev.tgz …           addresses, size, SHA-256
                └ texts: train.en, newstest2013.en …          made of parts of the downloads
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Download:
    """A file on a server."""

    addresses: tuple[str, ...]
    """Addresses to try in order. All end in the same file name."""
    size: int | None = None
    """Size in bytes, if known."""
    sha256: str | None = None
    """SHA-256 checksum, if known."""

    @property
    def name(self) -> str:
        """Name of the file on the disk."""
        return self.addresses[0].rpartition("/")[2]


@dataclass(frozen=True)
class ArchiveMember:
    """The origin of some lines of a text."""

    download: str
    """Name of the file that was downloaded."""
    member: str = ""
    """Name of the member, if the download is an archive of several files."""
    form: str = "plain"
    """
    “plain”: every line is a sentence. “segments”: the text between ``<seg …>`` and ``</seg>``, as
    in test sets of WMT and IWSLT. “talks”: the lines that do not begin with ``<``, as in the
    training text of IWSLT.
    """


@dataclass(frozen=True)
class CorpusText:
    """A text file of a corpus; texts that differ only in the language are line-aligned."""

    name: str
    """Its name; the suffix is the language."""
    parts: tuple[ArchiveMember, ...]
    """Its parts, concatenated."""

    @property
    def stem(self) -> str:
        """Name without the language: “train” for “train.en”."""
        return self.name.rpartition(".")[0]


@dataclass(frozen=True)
class KnownCorpus:
    """
    A corpus in the registry.

    Training texts are those whose stem is “train” or begins with “train.”.
    """

    name: str
    """Its name."""
    about: str
    """A short description."""
    languages: tuple[str, ...]
    """Its languages; a training command translates from the first into the second."""
    pairs: int | None
    """Approximate number of training pairs; None if unknown."""
    license: str
    """The license as its publishers state it."""
    downloads: tuple[Download, ...]
    """Files to fetch."""
    texts: tuple[CorpusText, ...]
    """Text files to extract."""
    valid: str = ""
    """Stem of the usual validation texts."""
    recipe: str = "small"
    """Recipe that suits it."""


def opus(corpus: str, version: str, source: str, target: str) -> KnownCorpus:
    """
    Describe a corpus from OPUS, given its name and version in OPUS.

    Addresses and member names have the form that mtdata uses for all of OPUS, with language codes
    in alphabetical order.

    >>> opus("Tatoeba", "v2023-04-12", "en", "de").downloads[0].addresses[0]
    'https://object.pouta.csc.fi/OPUS-Tatoeba/v2023-04-12/moses/de-en.txt.zip'
    """
    pair = "-".join(sorted((source, target)))
    address = f"https://object.pouta.csc.fi/OPUS-{corpus}/{version}/moses/{pair}.txt.zip"
    return KnownCorpus(
        name=f"opus-{corpus}-{version}-{source}-{target}",
        about=f"{corpus} {version} as OPUS aligns it; no held-out part",
        languages=(source, target),
        pairs=None,
        license="see LICENSE and README in the archive",
        downloads=(Download((address,)),),
        texts=tuple(
            CorpusText(
                f"train.{language}",
                (ArchiveMember(f"{pair}.txt.zip", f"{corpus}.{pair}.{language}"),),
            )
            for language in (source, target)
        ),
    )
