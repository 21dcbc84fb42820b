import hashlib
import lzma
import re

import pytest

from heedful.config.recipes import recipe_names
from heedful.data.datasets.registry import CORPORA, find_corpus
from heedful.errors import UserError

ALL = [*CORPORA.values(), find_corpus("opus:TED2020/v1/pt_br-en")]
ARCHIVES = (".tgz", ".tar.gz", ".tar", ".zip")


def _name(corpus):
    return corpus.name


@pytest.mark.parametrize("corpus", ALL, ids=_name)
def test_an_entry_fits_together(corpus):
    downloads = {download.name: download for download in corpus.downloads}
    assert len(downloads) == len(corpus.downloads)
    for name, download in downloads.items():
        for address in download.addresses:
            assert re.fullmatch(r"https?://[a-z0-9.]+/[\w./~-]+", address, re.ASCII)
            assert address.endswith(f"/{name}")
        assert download.sha256 is None or re.fullmatch("[0-9a-f]{64}", download.sha256)
        assert download.size is None or download.size > 0
    used = [part.download for text in corpus.texts for part in text.parts]
    assert set(used) == set(downloads)
    for text in corpus.texts:
        assert text.name.rpartition(".")[2] in corpus.languages
        for part in text.parts:
            assert bool(part.member) == part.download.endswith(ARCHIVES)
            assert part.form in ("plain", "segments", "talks")
    members = [(part.download, part.member) for text in corpus.texts for part in text.parts]
    assert len(set(members)) == len(members)
    assert len({text.name for text in corpus.texts}) == len(corpus.texts)


@pytest.mark.parametrize("corpus", ALL, ids=_name)
def test_every_text_is_there_in_every_language(corpus):
    stems = {text.stem for text in corpus.texts}
    assert any(stem.split(".")[0] == "train" for stem in stems)
    assert not corpus.valid or corpus.valid in stems
    for stem in stems:
        found = sorted(text.name.rpartition(".")[2] for text in corpus.texts if text.stem == stem)
        assert found == sorted(corpus.languages)


@pytest.mark.parametrize("corpus", ALL, ids=_name)
def test_an_entry_tells_what_a_person_needs(corpus):
    assert corpus.about
    assert corpus.license
    assert corpus.recipe in recipe_names()
    assert re.fullmatch(r"[\w.-]+", corpus.name)


def test_multi30k_has_the_sums_of_the_real_files(corpora):
    listed = (corpora / "multi30k" / "SHA256SUMS").read_text().split("\n")
    sums = {line[66:].removeprefix("raw/"): line[:64] for line in listed if "  raw/" in line}
    downloads = CORPORA["multi30k"].downloads
    assert {download.name: download.sha256 for download in downloads} == sums
    for download in downloads:
        assert download.size == (corpora / "multi30k" / "raw" / download.name).stat().st_size


def test_tanaka_has_the_sums_of_the_real_text(corpora):
    folder = corpora / "tanaka-en-ja"
    downloads = {download.name: download for download in CORPORA["tanaka-en-ja"].downloads}
    for text in CORPORA["tanaka-en-ja"].texts:
        content = lzma.decompress((folder / f"{text.name}.xz").read_bytes())
        lines = content.splitlines(keepends=True)
        size = len(lines) // len(text.parts)
        for number, part in enumerate(text.parts):
            piece = b"".join(lines[number * size : (number + 1) * size])
            download = downloads[part.download]
            assert (len(piece), hashlib.sha256(piece).hexdigest()) == (
                download.size,
                download.sha256,
            )


def test_the_test_sets_of_wmt_come_from_the_archive_whose_sum_is_known():
    for name in ("wmt14-en-de", "wmt14-en-fr"):
        held_out = [text for text in CORPORA[name].texts if text.stem.startswith("newstest")]
        assert len(held_out) == 4
        assert {part.download for text in held_out for part in text.parts} == {"dev.tgz"}
        assert all(d.sha256 for d in CORPORA[name].downloads if d.name == "dev.tgz")


def test_a_corpus_of_opus_is_found_by_its_name_there():
    corpus = find_corpus("opus:Tatoeba/v2023-04-12/en-de")
    (download,) = corpus.downloads
    address = "https://object.pouta.csc.fi/OPUS-Tatoeba/v2023-04-12/moses/de-en.txt.zip"
    assert download.addresses == (address,)
    assert corpus.languages == ("en", "de")
    assert [part.member for text in corpus.texts for part in text.parts] == [
        "Tatoeba.de-en.en",
        "Tatoeba.de-en.de",
    ]
    assert CORPORA["tatoeba-en-de"].downloads == corpus.downloads


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("multi30", ("multi30k", "did you mean")),
        ("zzzzz", ("'zzzzz'", "heedful data list")),
        ("opus:Tatoeba/v1", ("opus:CORPUS/VERSION/SOURCE-TARGET",)),
        ("opus:../x/v1/en-de", ("opus:CORPUS/VERSION/SOURCE-TARGET",)),
        ("opus:x/../en-de", ("opus:CORPUS/VERSION/SOURCE-TARGET",)),
        ("opus:x/v1/en-../../de", ("opus:CORPUS/VERSION/SOURCE-TARGET",)),
        ("opus:x@evil/v1/en-de", ("opus:CORPUS/VERSION/SOURCE-TARGET",)),
    ],
)
def test_a_name_that_is_not_known(name, parts):
    with pytest.raises(UserError) as caught:
        find_corpus(name)
    for part in parts:
        assert part in str(caught.value)


def test_names_are_those_of_the_entries():
    assert all(name == corpus.name for name, corpus in CORPORA.items())
