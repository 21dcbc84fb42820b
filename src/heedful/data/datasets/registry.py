"""
The registry of public corpora, including the paper's own training text from WMT 2014.

The addresses come from the scripts and indexes that the field uses: fairseq's `prepare-*.sh`,
TensorFlow Datasets, Hugging Face Datasets, sacreBLEU, mtdata. None of the addresses was tested when
this list was written. If an address is dead, use `--mirror` or put the file into the folder by
hand.

SHA-256 checksums were computed from a copy of the file (Multi30k, Tanaka) or taken from an index.
The indexes are `url_checksums/wmt14_translate.txt` of TensorFlow Datasets (WMT) and
`dataset_infos.json` of Hugging Face Datasets (IWSLT 2017).

For WMT 2014, addresses are those of fairseq's `prepare-wmt14en2de.sh` and `prepare-wmt14en2fr.sh`.
SHA-256 and sizes come from `url_checksums/wmt14_translate.txt` of TensorFlow Datasets, which also
takes both test sets from `dev.tgz`. The size of the 10^9 corpus comes from TensorFlow's first
translation tutorial.
"""

import difflib
import re
from collections.abc import Iterator
from dataclasses import replace

from heedful.data.datasets.spec import ArchiveMember, CorpusText, Download, KnownCorpus, opus
from heedful.errors import UserError

_LICENSE = "free for research, according to the organizers of WMT; Europarl: no restriction known"


def _statmt(path: str, size: int | None = None, sha256: str | None = None) -> Download:
    """Describe a file on statmt.org; scripts use its address with http and with https."""
    host = "data.statmt.org" if path.startswith("wmt19") else "www.statmt.org"
    return Download((f"https://{host}/{path}", f"http://{host}/{path}"), size, sha256)


# Files that the English-German and English-French tasks of 2014 share.
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


def _texts(foreign: str) -> Iterator[CorpusText]:
    """Describe the texts of one task; English is the target side in the archives."""
    pair = f"{foreign}-en"
    for language in ("en", foreign):
        side = "ref" if language == "en" else "src"
        for stem, archive, member in (
            ("train.europarl-v7", _EUROPARL, f"training/europarl-v7.{pair}.{language}"),
            ("train.commoncrawl", _CRAWL, f"commoncrawl.{pair}.{language}"),
            ("train.news-commentary-v9", _NEWS, f"training/news-commentary-v9.{pair}.{language}"),
            ("newstest2013", _DEV, f"dev/newstest2013.{language}"),
            ("newstest2014", _DEV, f"dev/newstest2014-{foreign}en-{side}.{language}.sgm"),
        ):
            form = "segments" if member.endswith(".sgm") else "plain"
            yield CorpusText(f"{stem}.{language}", (ArchiveMember(archive.name, member, form),))


def wmt14_en_de() -> KnownCorpus:
    """Describe the paper's English-German training data."""
    # Section 5.1 of the paper names the task and 4.5 million pairs; the task's web page lists the
    # files, and `prepare-wmt14en2de.sh --icml17` of fairseq agrees.
    return KnownCorpus(
        name="wmt14-en-de",
        about="the paper's English-German text: Europarl v7, Common Crawl, News Commentary v9; "
        "held out: newstest2013 and newstest2014",
        languages=("en", "de"),
        pairs=4_509_000,
        license=_LICENSE,
        downloads=(_EUROPARL, _CRAWL, _NEWS, _DEV),
        texts=tuple(_texts("de")),
        valid="newstest2013",
        recipe="paper-base",
    )


def wmt14_en_fr() -> KnownCorpus:
    """Describe the paper's English-French training data."""
    # Section 5.1 of the paper names 36 million pairs; about as many remain of this corpus after
    # cleaning.
    un = _statmt("wmt13/training-parallel-un.tgz")
    giga = _statmt("wmt10/training-giga-fren.tar", 2595102720)
    more = [
        CorpusText(
            f"train.{stem}.{language}", (ArchiveMember(archive.name, member.format(language)),)
        )
        for language in ("en", "fr")
        for stem, archive, member in (
            ("un", un, "un/undoc.2000.fr-en.{}"),
            ("giga", giga, "giga-fren.release2.fixed.{}.gz"),
        )
    ]
    return KnownCorpus(
        name="wmt14-en-fr",
        about="the paper's English-French text: the corpora of wmt14-en-de, and the UN and "
        "10^9 corpora",
        languages=("en", "fr"),
        pairs=40_837_000,
        license=_LICENSE,
        downloads=(_EUROPARL, _CRAWL, _NEWS, un, giga, _DEV),
        texts=(*_texts("fr"), *more),
        valid="newstest2013",
        recipe="paper-base-en-fr",
    )


_OPUS = re.compile(r"opus:(\w[\w.-]*)/(\w[\w.-]*)/([a-zA-Z_]{2,10})-([a-zA-Z_]{2,10})", re.ASCII)


# SHA-256, bytes, name
_MULTI30K = """\
d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f 568929 train.en.gz
726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6 637044 train.de.gz
622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c 604242 train.fr.gz
a65adb8b32e3bc664f21ecba7a6e7f6950fd1f405e135f7c312faabdb6255077 593827 train.cs.gz
14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28  21650 val.en.gz
f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a  24681 val.de.gz
ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9  23001 val.fr.gz
b63226e05c4bd5dd6a42897d74b86a1b9d2c31498252c572b1ea7f7996927fcc  22096 val.cs.gz
611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9  21077 test_2016_flickr.en.gz
9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8  22890 test_2016_flickr.de.gz
6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90  22310 test_2016_flickr.fr.gz
200a4a74cc9560f051924abb9803be008d1908d77f747e9141aeb86dfd2797f1  22572 test_2016_flickr.cs.gz
"""
_TANAKA = """\
4dd6b09e59cc03bd78d5e541bf306ab6e5139e2ce2e12d02d093e0cc47cfcf8e 339768 train.en.000
99db039cb12e4758268f48640902d29ee1c58d883cba69939cc3e2c63d633164 340186 train.en.001
3aee4a770ea651d4cb30df12c85704d7743118d79c40f7cd341a185bb1017d36 341174 train.en.002
6dd6ff06bde9daf2201de14a9511881be76f4f09278d39fbdd02513dd0f1fa7f 339953 train.en.003
34b035922267b7e29b6919261c9583dfa24354a4cbae6890c8e3e5026c162488 340275 train.en.004
6090d2bc45563d9d6b2244bf69edeb5cc004dd8aa5ab39469c83574d291ffe15 556444 train.ja.000
578e6d076882830aae1c09a8134c8126fcc28ec1ab1d078c9e9a609bac9c7870 555732 train.ja.001
f6cbe72342daf076d218dd1de2804fe4c969e495e0ec6ae9af85b55347e96406 557218 train.ja.002
d0eba6255389f36864eab89435e6b6d5acb47c05fee92ea64dac28d78689ef7e 557538 train.ja.003
8e510b88524ed92fa49d8620dbaed5defc1197ff03acb5c724cceadf7a576d61 557515 train.ja.004
04a2673449770657fd5e3b963cb856be3130923212b6db8ac7eaeef18f06c041  17054 dev.en
cd534f56b8639dc130f86a365e5ec0aa70042000bdd740a622fbbf8b6be4acca  27781 dev.ja
45edb380749ec2b49cca7618fc5a7595fc9f791180672ba466b90c873a4aa8bf  17301 test.en
d37dc460a81b064e4106c8913eb11fa300da05cf3f58a7a5bbfec7e20947ddef  27793 test.ja
"""


def find_corpus(name: str) -> KnownCorpus:
    """
    Look a corpus up by name.

    OPUS has thousands of corpora at addresses that follow one pattern, so a name is enough.

    Raises `UserError` if no corpus has this name.
    """
    if name in CORPORA:
        return CORPORA[name]
    if match := _OPUS.fullmatch(name):
        return opus(*match.groups())
    near = difflib.get_close_matches(name, CORPORA, n=1)
    hint = f"did you mean {near[0]}?" if near else "`heedful data list` shows the names."
    raise UserError(
        "the name must be a known corpus or opus:CORPUS/VERSION/SOURCE-TARGET, but is "
        f"{name!r}; {hint}"
    )


def _table(lines: str) -> dict[str, tuple[int, str]]:
    """Parse a table of sizes and SHA-256 checksums."""
    rows = (line.split() for line in lines.splitlines())
    return {name: (int(size), sha256) for sha256, size, name in rows}


def _multi30k() -> KnownCorpus:
    """Describe Multi30k, task 1, as published in its repository."""
    raw = (
        "https://raw.githubusercontent.com/multi30k/dataset/"
        "a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/raw",
        "https://github.com/multi30k/dataset/raw/master/data/task1/raw",
    )
    files = _table(_MULTI30K)
    return KnownCorpus(
        name="multi30k",
        about="image captions, line-aligned in four languages (Elliott et al. 2016)",
        languages=("en", "de", "fr", "cs"),
        pairs=29_000,
        license="no license file; its README allows noncommercial research and education",
        downloads=tuple(
            Download(tuple(f"{base}/{name}" for base in raw), *known)
            for name, known in files.items()
        ),
        texts=tuple(CorpusText(name.removesuffix(".gz"), (ArchiveMember(name),)) for name in files),
        valid="val",
        recipe="multi30k",
    )


def _stanford(name: str, about: str, pairs: int, folder: str, *stems: str) -> KnownCorpus:
    """Describe a corpus from Stanford's NMT project, whose files are plain text."""
    languages = tuple(folder.rpartition(".")[2].split("-"))
    names = [f"{stem}.{language}" for stem in stems for language in languages]
    base = f"https://nlp.stanford.edu/projects/nmt/data/{folder}"
    return KnownCorpus(
        name=name,
        about=about,
        languages=languages,
        pairs=pairs,
        license="none stated by the source; the shared task was for research",
        downloads=tuple(Download((f"{base}/{file}",)) for file in names),
        texts=tuple(CorpusText(file, (ArchiveMember(file),)) for file in names),
        valid=stems[1],
    )


def _iwslt14() -> KnownCorpus:
    """Describe the German-English TED talks of 2014."""
    sets = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")
    archive = "de-en.tgz"
    texts = []
    for language in ("de", "en"):
        parts = (f"de-en/IWSLT14.{name}.de-en.{language}.xml" for name in sets)
        train = ArchiveMember(archive, f"de-en/train.tags.de-en.{language}", "talks")
        texts += [
            CorpusText(f"train.{language}", (train,)),
            CorpusText(
                f"test.{language}",
                tuple(ArchiveMember(archive, part, "segments") for part in parts),
            ),
        ]
    return KnownCorpus(
        name="iwslt14-de-en",
        about="TED talks; the test text joins the usual five sets (6,750 pairs); every 23rd "
        "training pair, usually held out for validation, is in the training text",
        languages=("de", "en"),
        pairs=172_000,
        license="CC BY-NC-ND 3.0, TED Conference LLC",
        downloads=(
            Download(
                (
                    "https://dl.fbaipublicfiles.com/fairseq/data/iwslt14/de-en.tgz",
                    "http://dl.fbaipublicfiles.com/fairseq/data/iwslt14/de-en.tgz",
                    "https://wit3.fbk.eu/archive/2014-01/texts/de/en/de-en.tgz",
                )
            ),
        ),
        texts=tuple(texts),
    )


def _iwslt17(foreign: str, pairs: int, size: int, sha256: str) -> KnownCorpus:
    """Describe the TED talks of 2017 in English and another language."""
    pair = f"en-{foreign}"
    sets = ("dev2010", *(f"tst{year}" for year in range(2010, 2016)))
    texts = []
    for language in ("en", foreign):
        train = ArchiveMember(f"{pair}.tgz", f"{pair}/train.tags.{pair}.{language}", "talks")
        texts.append(CorpusText(f"train.{language}", (train,)))
        for name in sets:
            member = f"{pair}/IWSLT17.TED.{name}.{pair}.{language}.xml"
            texts.append(
                CorpusText(
                    f"{name}.{language}", (ArchiveMember(f"{pair}.tgz", member, "segments"),)
                )
            )
    server = (
        "https://huggingface.co/datasets/iwslt2017/resolve/"
        "ebd7c60d9800c2a1be010a227e5f0a2363730f7a/data"
    )
    path = f"2017-01-trnted/texts/en/{foreign}/{pair}.tgz"
    addresses = (f"{server}/{path}", f"https://wit3.fbk.eu/archive/{path}")
    return KnownCorpus(
        name=f"iwslt17-{pair}",
        about="TED talks; held out: dev2010 and tst2010 to tst2015",
        languages=("en", foreign),
        pairs=pairs,
        license="CC BY-NC-ND 3.0, TED Conference LLC",
        downloads=(Download(addresses, size, sha256),),
        texts=tuple(texts),
        valid="dev2010",
    )


def _tanaka() -> KnownCorpus:
    """Describe 50,000 short sentences of the Tanaka corpus, tokenized by its publisher."""
    base = (
        "https://raw.githubusercontent.com/odashi/small_parallel_enja/"
        "312408a11c5fbcbc09443bebb18121f7efdcd61e"
    )
    files = _table(_TANAKA)
    texts = []
    for language in ("en", "ja"):
        parts = tuple(ArchiveMember(name) for name in files if name.startswith(f"train.{language}"))
        held_out = [f"{stem}.{language}" for stem in ("dev", "test")]
        texts += [
            CorpusText(f"train.{language}", parts),
            *(CorpusText(n, (ArchiveMember(n),)) for n in held_out),
        ]
    return KnownCorpus(
        name="tanaka-en-ja",
        about="4 to 16 words per sentence, lower-cased and tokenized (small_parallel_enja)",
        languages=("en", "ja"),
        pairs=50_000,
        license="none stated by the source; derived from the Tanaka corpus",
        downloads=tuple(Download((f"{base}/{name}",), *known) for name, known in files.items()),
        texts=tuple(texts),
        valid="dev",
    )


def _with_name(name: str, about: str, license: str, corpus: KnownCorpus) -> KnownCorpus:
    """Give a corpus from OPUS its name and description in the registry."""
    return replace(corpus, name=name, about=about, license=license)


def _opus_corpora() -> list[KnownCorpus]:
    """Describe a few well-known corpora from OPUS."""
    corpora = []
    for language in ("de", "fr"):
        tatoeba = opus("Tatoeba", "v2023-04-12", "en", language)
        europarl = opus("Europarl", "v8", "en", language)
        about = "everyday sentences by volunteers, OPUS v2023-04-12; no held-out part"
        corpora.append(_with_name(f"tatoeba-en-{language}", about, "CC BY 2.0 FR", tatoeba))
        about = "proceedings of the European Parliament, OPUS v8; no held-out part"
        license = "its authors know of no restriction"
        corpora.append(_with_name(f"europarl-en-{language}", about, license, europarl))
    return corpora


CORPORA = {
    corpus.name: corpus
    for corpus in (
        _multi30k(),
        wmt14_en_de(),
        _stanford(
            "wmt14-en-de-stanford",
            "the task of wmt14-en-de, tokenized by Stanford (Luong et al. 2015): scores are "
            "computed on tokenized text",
            4_469_000,
            "wmt14.en-de",
            *("train", "newstest2013", "newstest2012", "newstest2014", "newstest2015"),
        ),
        wmt14_en_fr(),
        _iwslt14(),
        _iwslt17(
            "de",
            206_112,
            16751364,
            "623caec69988b224dbe741f16ad90411b93430117a8021c4bb2bcab7ad1eb21e",
        ),
        _iwslt17(
            "fr",
            232_825,
            27691674,
            "1f5bd8cd242de15fb58a04af265adb8e604a7e1b805a42cb0de7dfd15447c5c6",
        ),
        _stanford(
            "iwslt15-en-vi-stanford",
            "TED talks, already tokenized by Stanford (Luong and Manning 2015)",
            133_000,
            "iwslt15.en-vi",
            *("train", "tst2012", "tst2013"),
        ),
        _tanaka(),
        *_opus_corpora(),
    )
}
