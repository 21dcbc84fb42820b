"""
How a corpus that lies on some server is described: files to fetch, and the text they hold.

::

    KnownCorpus ─ downloads: train.en.gz, dev.tgz …           addresses, size, SHA-256
                └ texts: train.en, newstest2013.en …          made of parts of the downloads
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Download:
    """
    Describe a file as it lies on a server.

    Attributes
    ----------
    addresses : tuple of str
        Where it lies; the first one that works is taken. All end in the same file name.
    size : int or None, default None
        Bytes, where known.
    sha256 : str or None, default None
        Checksum, where known.

    Notes
    -----
    The name on the disk is the one that a browser would save, so a file that was fetched by hand
    fits.
    """

    addresses: tuple[str, ...]
    size: int | None = None
    sha256: str | None = None

    @property
    def name(self) -> str:
        """Name of the file on the disk."""
        return self.addresses[0].rpartition("/")[2]


@dataclass(frozen=True)
class ArchiveMember:
    """
    Say where lines of a text come from.

    Attributes
    ----------
    download : str
        Name of the file that was downloaded.
    member : str, default ''
        Name inside it, if it is an archive of several files.
    form : str, default 'plain'
        “plain”, every line is a sentence; “segments”, what stands between ``<seg …>`` and
        ``</seg>``, as in test sets of WMT and IWSLT; “talks”, lines that do not begin with ``<``,
        as in the training text of IWSLT.

    Notes
    -----
    Members are found by their full name; nothing else in an archive is looked at.
    """

    download: str
    member: str = ""
    form: str = "plain"


@dataclass(frozen=True)
class CorpusText:
    """
    Describe a text file that a corpus ends in.

    Attributes
    ----------
    name : str
        Its name; the ending is the language.
    parts : tuple of ArchiveMember
        What it is made of, end to end.

    Notes
    -----
    Texts that differ only in the language are line-aligned.
    """

    name: str
    parts: tuple[ArchiveMember, ...]

    @property
    def stem(self) -> str:
        """The name without the language, “train” of “train.en”."""
        return self.name.rpartition(".")[0]

    @property
    def language(self) -> str:
        """The ending."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True)
class KnownCorpus:
    """
    Describe a corpus.

    Attributes
    ----------
    name : str
        What to call it.
    about : str
        What it is, in a few words.
    languages : tuple of str
        Its languages; a training command is shown for the first into the second.
    pairs : int or None
        Training pairs, about; None if not known.
    licence : str
        What its publishers say.
    downloads : tuple of Download
        Files to fetch.
    texts : tuple of CorpusText
        Files to end in.
    valid : str, default ''
        Stem of the texts that are usual for validation.
    recipe : str, default 'small'
        Recipe that suits it.
    tried : bool, default False
        Whether the addresses were tried when the entry was written.

    Notes
    -----
    Training texts are those whose stem is “train” or begins with “train.”.
    """

    name: str
    about: str
    languages: tuple[str, ...]
    pairs: int | None
    licence: str
    downloads: tuple[Download, ...]
    texts: tuple[CorpusText, ...]
    valid: str = ""
    recipe: str = "small"
    tried: bool = False


def opus(corpus: str, version: str, source: str, target: str) -> KnownCorpus:
    """
    Describe a corpus of OPUS by its name there.

    Parameters
    ----------
    corpus : str
        As OPUS writes it: “Tatoeba”.
    version : str
        As OPUS writes it: “v2023-04-12”.
    source, target : str
        Codes of the languages, in either order.

    Returns
    -------
    KnownCorpus
        Its Moses archive, which holds two line-aligned files.

    Notes
    -----
    The form of the address and of the names inside is the one that mtdata uses for all of OPUS:
    codes in alphabetical order.

    Examples
    --------
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
        licence="see LICENSE and README in the archive",
        downloads=(Download((address,)),),
        texts=tuple(
            CorpusText(
                f"train.{language}",
                (ArchiveMember(f"{pair}.txt.zip", f"{corpus}.{pair}.{language}"),),
            )
            for language in (source, target)
        ),
    )
