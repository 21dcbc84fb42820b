"""
The text that the paper's models were trained on (section 5.1), as the tasks of WMT 2014 had it.

Addresses as in fairseq's `prepare-wmt14en2de.sh` and `prepare-wmt14en2fr.sh`; SHA-256 and sizes of
`url_checksums/wmt14_translate.txt` of TensorFlow Datasets, which also takes both test sets from
`dev.tgz`; the size of the 10^9 corpus from TensorFlow's first translation tutorial.
"""

from collections.abc import Iterator

from heedful.data.catalogue.entries import Download, KnownCorpus, Part, Text

_LICENCE = "free for research, by the organisers of WMT; Europarl: no restriction known"


def _statmt(path: str, size: int | None = None, sha256: str | None = None) -> Download:
    """Describe a file of statmt.org; scripts name it with either protocol."""
    host = "data.statmt.org" if path.startswith("wmt19") else "www.statmt.org"
    return Download((f"https://{host}/{path}", f"http://{host}/{path}"), size, sha256)


# What the English-German and the English-French task of 2014 have in common.
_EUROPARL = _statmt(
    "wmt13/training-parallel-europarl-v7.tgz",
    657632379,
    "0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7",
)
_CRAWL = _statmt(
    "wmt13/training-parallel-commoncrawl.tgz",
    918311367,
    "c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5",
)
_NEWS = _statmt(
    "wmt14/training-parallel-nc-v9.tgz",
    80418416,
    "cb8953f292298e6877ae433c98912b927cb0766b303f4540512ddd286c748485",
)
_DEV = _statmt(
    "wmt19/translation-task/dev.tgz",
    38654961,
    "7a7deccf82ebb05ba508dba5eb21356492224e8f630ec4f992132b029b4b25e7",
)


def _texts(other: str) -> Iterator[Text]:
    """Describe the texts that both tasks have; English is the target side of the archives."""
    pair = f"{other}-en"
    for language in ("en", other):
        side = "ref" if language == "en" else "src"
        for stem, archive, member in (
            ("train.europarl-v7", _EUROPARL, f"training/europarl-v7.{pair}.{language}"),
            ("train.commoncrawl", _CRAWL, f"commoncrawl.{pair}.{language}"),
            ("train.news-commentary-v9", _NEWS, f"training/news-commentary-v9.{pair}.{language}"),
            ("newstest2013", _DEV, f"dev/newstest2013.{language}"),
            ("newstest2014", _DEV, f"dev/newstest2014-{other}en-{side}.{language}.sgm"),
        ):
            form = "segments" if member.endswith(".sgm") else "plain"
            yield Text(f"{stem}.{language}", (Part(archive.name, member, form),))


def wmt14_en_de() -> KnownCorpus:
    """
    Describe what the paper trained its English-German models on.

    Returns
    -------
    KnownCorpus
        Four archives of statmt.org.

    Notes
    -----
    Section 5.1 of the paper names the task and 4.5 million pairs; which files make it up is told by
    the page of the task, and `prepare-wmt14en2de.sh --icml17` of fairseq agrees.
    """
    return KnownCorpus(
        name="wmt14-en-de",
        about="the paper's English-German: Europarl v7, Common Crawl, News Commentary v9; "
        "newstest2013 and 2014",
        languages=("en", "de"),
        pairs=4_509_000,
        licence=_LICENCE,
        downloads=(_EUROPARL, _CRAWL, _NEWS, _DEV),
        texts=tuple(_texts("de")),
        valid="newstest2013",
        recipe="paper-base",
    )


def wmt14_en_fr() -> KnownCorpus:
    """
    Describe what the paper trained its English-French models on.

    Returns
    -------
    KnownCorpus
        Six archives of statmt.org.

    Notes
    -----
    Section 5.1 of the paper says 36 million pairs, about what is left of these after cleaning.
    """
    un = _statmt("wmt13/training-parallel-un.tgz")
    giga = _statmt("wmt10/training-giga-fren.tar", 2595102720)
    more = [
        Text(f"train.{stem}.{language}", (Part(archive.name, member.format(language)),))
        for language in ("en", "fr")
        for stem, archive, member in (
            ("un", un, "un/undoc.2000.fr-en.{}"),
            ("giga", giga, "giga-fren.release2.fixed.{}.gz"),
        )
    ]
    return KnownCorpus(
        name="wmt14-en-fr",
        about="the paper's English-French: as English-German, and the UN and 10^9 corpora",
        languages=("en", "fr"),
        pairs=40_837_000,
        licence=_LICENCE,
        downloads=(_EUROPARL, _CRAWL, _NEWS, un, giga, _DEV),
        texts=(*_texts("fr"), *more),
        valid="newstest2013",
        recipe="paper-base-en-fr",
    )
