import gzip
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from heedful.errors import TextError
from heedful.text.corpus import Corpus, read_lines
from heedful.text.file_formats import TextSource, read_rows
from heedful.text.skipped_rows import SkippedRows

CODES = ("bpt", "ept", "it", "ph", "ut")
HEAD = '<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4">'


def memory(path: Path, *units: str, head: str = HEAD, encoding: str = "utf-8") -> Path:
    body = "\n".join(f"<tu>{unit}</tu>" for unit in units)
    header = '<header srclang="en"><note>seg</note><prop type="x">y</prop></header>'
    path.write_bytes(f"{head}{header}<body>{body}</body></tmx>".encode(encoding))
    return path


def variant(language: str, segment: str) -> str:
    return f'<tuv xml:lang="{language}"><prop type="a">b</prop><seg>{segment}</seg></tuv>'


def lines(path: Path, part: str) -> list[str]:
    return list(read_lines(TextSource(path, part)))


def message(path: Path, *parts: str) -> str:
    with pytest.raises(TextError) as caught:
        list(read_rows(path, parts))
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_the_text_of_a_language_is_read(tmp_path: Path) -> None:
    path = memory(
        tmp_path / "m.tmx",
        variant("EN", "Q &amp; A &#233;&#x20AC; &lt;b> <![CDATA[<i>]]>") + variant("de", "F"),
        variant("en", "\n  two\r\n\tlines&#10;here  ") + variant("DE", "a\u00a0b\u2028c"),
        "<!-- <tuv xml:lang='en'><seg>no</seg></tuv> -->" + variant("en", "") + variant("de", "x"),
        '<tuv lang="En"><seg>old</seg></tuv>' + variant("de", "alt"),
    )
    assert lines(path, "en") == ["Q & A é€ <b> <i>", "two lines here", "", "old"]
    assert lines(path, "dE") == ["F", "a\u00a0b\u2028c", "x", "alt"]


def test_codes_of_another_format_are_dropped_and_highlights_stay(tmp_path: Path) -> None:
    segment = (
        'a <bpt i="1">&lt;b title="<sub>hidden</sub>"></bpt>b<ept i="1">&lt;/b></ept>'
        '<hi type="x">c <hi>d<ph>&lt;br/></ph></hi></hi> <it pos="begin">i</it>e<ut>u</ut> f'
    )
    path = memory(tmp_path / "m.tmx", variant("en", segment))
    assert lines(path, "en") == ["a bc d e f"]


def test_a_language_is_also_found_in_its_variants(tmp_path: Path) -> None:
    path = memory(
        tmp_path / "m.tmx",
        variant("en-GB", "one"),
        variant("en-US", "two us") + variant("en-GB", "two gb"),
        variant("en_GB", "three gb") + variant("en", "three"),
        variant("enm", "Middle English"),
        variant("en-gb", "five") + variant("en-gb", "five again"),
    )
    assert lines(path, "en") == ["one", "two us", "three", "five"]
    assert lines(path, "EN-gb") == ["one", "two gb", "three gb", "five"]
    assert lines(path, "enm") == ["Middle English"]


def test_units_that_lack_a_language_are_left_out_on_both_sides(tmp_path: Path) -> None:
    path = memory(
        tmp_path / "m.tmx",
        variant("en", "1e") + variant("de", "1d"),
        variant("en", "2e"),
        variant("de", "3d") + variant("fr", "3f"),
        variant("de", "4d") + variant("en", "4e"),
    )
    assert lines(path, "en") == ["1e", "2e", "4e"]
    assert lines(path, "en+de") == ["1e", "4e"]
    corpus = Corpus((TextSource(path, "en"),), (TextSource(tmp_path / "." / "m.tmx", "de"),))
    assert list(corpus.pairs()) == [("1e", "1d"), ("4e", "4d")]
    # The subwords are learned from each side alone, and from nothing that is not in the pairs.
    assert list(read_lines(corpus.source[0])) == ["1e", "4e"]
    assert list(read_lines(corpus.target[0])) == ["1d", "4d"]
    assert Corpus(corpus.source, corpus.target).source == corpus.source
    both = Corpus(
        (TextSource(path, "en"), TextSource(path, "fr")),
        (TextSource(path, "de"), TextSource(path, "de")),
    )
    assert list(both.pairs()) == [("1e", "1d"), ("4e", "4d"), ("3f", "3d")]


def test_units_and_variants_inside_others_are_refused(tmp_path: Path) -> None:
    pair = variant("en", "dog") + variant("de", "Hund")
    path = memory(tmp_path / "units.tmx", pair, "<tu>" * 300 + pair + "</tu>" * 300)
    told = message(path, "en", "de")
    assert "must close each <tu> before the next begins, but line 4 opens one inside" in told
    path = memory(tmp_path / "variants.tmx", pair.replace("<prop", variant("fr", "x") + "<prop"))
    assert "must close each <tuv> before" in message(path, "en")


def test_a_segment_outside_of_a_variant_has_no_language(tmp_path: Path) -> None:
    path = memory(tmp_path / "m.tmx", variant("de", "Hund") + "<seg>no</seg>" + variant("en", "a"))
    assert list(read_rows(path, ["de", "en"])) == [("Hund", "a")]
    path = memory(tmp_path / "m.tmx", variant("en", "a"), "<seg>no</seg>" + variant("de", "Hund"))
    assert lines(path, "en") == ["a"]


def test_languages_that_are_not_there_are_answered_with_those_that_are(tmp_path: Path) -> None:
    path = memory(
        tmp_path / "m.tmx", variant("en-GB", "a") + variant("DE", "b"), variant("fr", "c")
    )
    assert "“cs”, but it holds “en-GB”, “DE”, “fr”" in message(path, "cs")
    assert "“cs”" in message(path, "en", "cs")
    assert "“en” and “fr” together" in message(path, "en", "fr")
    assert "no text in any" in message(memory(tmp_path / "empty.tmx"), "en")


# What XML can hold, with single spaces only.
letters = st.characters(
    codec="utf-8", exclude_categories=("Cc",), exclude_characters=" \ufffe\uffff"
)
sentence = st.lists(st.text(letters)).map(lambda words: " ".join(filter(None, words)))


@given(st.lists(st.tuples(sentence, sentence), min_size=1, max_size=6))
def test_pairs_come_back_as_they_were_written(tmp_path_factory, pairs) -> None:
    path = tmp_path_factory.mktemp("tmx") / "m.tmx"
    memory(path, *(variant("en", escape(s)) + variant("de", escape(t)) for s, t in pairs))
    assert list(Corpus((TextSource(path, "en"),), (TextSource(path, "de"),)).pairs()) == pairs


plain = st.text("ab &<>\u00e9\n ", max_size=5).map(escape)
content = st.recursive(
    plain,
    lambda inner: st.builds(
        lambda tag, *parts: f"{parts[0]}<{tag}>{parts[1]}</{tag}>{parts[2]}",
        st.sampled_from((*CODES, "sub", "hi", "other")),
        inner,
        inner,
        inner,
    ),
    max_leaves=12,
)


@given(st.lists(content, min_size=1, max_size=4))
def test_any_markup_is_read_as_another_parser_reads_it(tmp_path_factory, segments) -> None:
    path = memory(
        tmp_path_factory.mktemp("tmx") / "m.tmx", *(variant("en", text) for text in segments)
    )
    expected = []
    for segment in etree.parse(path).iter("seg"):
        etree.strip_elements(segment, *CODES, "sub", with_tail=False)
        expected.append(" ".join("".join(segment.itertext()).split()))
    assert lines(path, "en") == expected


@pytest.mark.parametrize("encoding", ["utf-16", "iso-8859-1", "windows-1252", "utf-8-sig"])
def test_the_declared_encoding_is_read(tmp_path: Path, encoding: str) -> None:
    name = encoding.removesuffix("-sig")
    head = HEAD.replace('"1.0"', f'"1.0" encoding="{name}"')
    path = memory(tmp_path / "m.tmx", variant("fr", "déjà"), head=head, encoding=encoding)
    assert lines(path, "fr") == ["déjà"]


def test_what_is_no_xml_is_named_with_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "m.tmx"
    path.write_bytes(b"<tmx><body>\n  <tu></body></tmx>")
    assert "line 2, column 9 is not (mismatched tag)" in message(path, "en")
    path.write_bytes(b"just words")
    assert "line 1, column 1" in message(path, "en")
    path.write_bytes(b"")
    assert "no element found" in message(path, "en")
    whole = memory(path, variant("en", "a")).read_bytes()
    path.write_bytes(whole[:-20])
    assert "line 3" in message(path, "en")
    path.write_bytes(whole.replace(b"<seg>a", b"<seg>\xe9"))
    assert "in the encoding that it declares (UTF-8 if none)" in message(path, "en")
    for name in (b"utf-7", b"nonsense", b"hex", b"idna"):
        path.write_bytes(whole.replace(b'"1.0"?', b'"1.0" encoding="%s"?' % name))
        assert "convert the file to UTF-8" in message(path, "en")


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    whole = gzip.compress(memory(tmp_path / "m.tmx", variant("en", "a")).read_bytes())
    packed = tmp_path / "m.tmx.gz"
    packed.write_bytes(whole)
    assert lines(packed, "en") == ["a"]
    packed.write_bytes(whole[:-12])
    assert "cut off or damaged" in message(packed, "en")
    assert "No such file" in message(tmp_path / "none.tmx", "en")


def test_an_entity_bomb_does_not_go_off(tmp_path: Path) -> None:
    bomb = '<!ENTITY a0 "lol">' + "".join(
        f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10)
    )
    head = f"<!DOCTYPE tmx [\n{bomb}]>\n<tmx>"
    path = memory(tmp_path / "m.tmx", variant("en", "&a9;"), head=head)
    tracemalloc.start()
    assert "line 2 declares “a0”" in message(path, "en")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


@pytest.mark.parametrize(
    "declaration",
    ['<!ENTITY x SYSTEM "{}">', '<!ENTITY % x SYSTEM "{}"> %x;', '<!ENTITY x PUBLIC "p" "{}">'],
)
def test_no_other_file_is_read_through_an_entity(tmp_path: Path, declaration: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret words")
    declared = declaration.format(secret.as_uri())
    head = f"<!DOCTYPE tmx [{declared}]><tmx>"
    path = memory(tmp_path / "m.tmx", variant("en", "a&x;b"), head=head)
    said = message(path, "en")
    assert "declares “x”" in said
    assert "secret words" not in said


def test_a_document_type_is_not_fetched(tmp_path: Path) -> None:
    """It declares an entity: were it read, the entity would be known."""
    (tmp_path / "tmx14.dtd").write_text('<!ENTITY nbsp "fetched">')
    head = f'<!DOCTYPE tmx SYSTEM "{(tmp_path / "tmx14.dtd").as_uri()}"><tmx>'
    path = memory(tmp_path / "m.tmx", variant("en", "a"), head=head)
    assert lines(path, "en") == ["a"]
    memory(path, variant("en", "a&nbsp;b"), variant("en", "c"), head=head)
    assert lines(path, "en") == ["c"]


@pytest.mark.parametrize("forbidden", ["&#x1F;", "&#xFFFF;", "\x0b", "R&D", "a&nbsp;dog"])
def test_a_unit_that_xml_forbids_is_skipped_with_its_number(tmp_path, forbidden: str) -> None:
    pair = [variant("en", text) + variant("fr", "un") for text in ("a", forbidden, "b")]
    path = memory(tmp_path / "m.tmx", *pair, variant("en", "c") + variant("fr", forbidden))
    skipped = SkippedRows()
    assert list(read_lines(TextSource(path, "en"), skipped)) == ["a", "b", "c"]
    (note,) = skipped.notes()
    assert "1 row was skipped (unit 2 has a character or a reference that XML" in note
    corpus = Corpus((TextSource(path, "en"),), (TextSource(path, "fr"),))
    assert list(corpus.pairs()) == [("a", "un"), ("b", "un")]
    assert "2 rows were skipped" in next(corpus.skipped.notes())


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    unit = variant("en", "some words " * 9) + variant("de", "ein paar Wörter " * 9)
    for name, units in (("small", 1_000), ("large", 40_000)):
        path = memory(tmp_path / f"{name}.tmx", *[unit] * units)
    assert path.stat().st_size > 13_000_000
    program = """
import resource, sys
from pathlib import Path
from heedful.text.corpus import Corpus
from heedful.text.file_formats import TextSource
for name in ("small", "large"):
    path = Path(sys.argv[1]) / f"{name}.tmx"
    print(sum(1 for _ in Corpus([TextSource(path, "en")], [TextSource(path, "de")]).pairs()))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    units, before, more_units, after = map(int, done.stdout.split())
    assert (units, more_units) == (1_000, 40_000)
    assert after - before < 2_000  # kilobytes
