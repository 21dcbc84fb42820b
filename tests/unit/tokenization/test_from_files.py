import gzip
import io
import json
import lzma
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

from heedful.errors import RunFolderError, TextError, TokenizerError
from heedful.tokenization.from_files import (
    CodesFile,
    WordList,
    could_have_given,
    read_given,
    tokenizer_from_files,
)
from heedful.tokenization.sentencepiece_model import SentencePieceModel
from heedful.tokenization.tokenizer import END, PAD, START, UNKNOWN, Tokenizer

SOURCE = ["the lower road", "the low road", "lower the road !"]
TARGET = ["der tiefe Weg", "der Weg", "tiefer !"]
CODES = "#version: 0.2\nl o\nlo w</w>\ne r</w>\nlo w\nlow er</w>\nt h\nth e</w>\n"


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def files(tmp_path: Path) -> tuple[list[Path], list[Path]]:
    return (
        [write(tmp_path / "text.en", "".join(f"{line}\n" for line in SOURCE))],
        [write(tmp_path / "text.de", "".join(f"{line}\n" for line in TARGET))],
    )


def taken(path: Path, files: tuple[list[Path], list[Path]], **options: Any) -> Tokenizer:
    defaults: dict[str, Any] = {
        "vocabulary_size": 1000,
        "shared": True,
        "source_language": "en",
        "target_language": "de",
    }
    return tokenizer_from_files(path, *files, **defaults | options)


# Codes.


def test_codes_get_their_vocabulary_from_the_text(
    tmp_path: Path, files: tuple[list[Path], list[Path]]
) -> None:
    tokenizer = taken(write(tmp_path / "codes", CODES), files, shared=False)
    assert tokenizer.kind == "codes"
    ids = tokenizer.encode_source(["the lower  road", "the flow ?", ""])
    assert tokenizer.pieces_source(ids[0]) == ["the", "lower", "r@@", "o@@", "a@@", "d"]
    assert tokenizer.pieces_source(ids[1]) == ["the", "<unk>", "low", "<unk>"]
    assert ids[2] == []
    # Three times “the” and the letters of “road”, then twice “lower”; ties as they sort.
    every = ["a@@", "d", "o@@", "r@@", "the", "lower", "!", "low"]
    specials = ["<pad>", "<unk>", "<s>", "</s>"]
    assert tokenizer.pieces_source(range(tokenizer.source_size)) == specials + every
    assert tokenizer.target_size != tokenizer.source_size
    assert UNKNOWN in tokenizer.encode_target(["the"])[0]
    assert tokenizer.decode(tokenizer.encode_target(["der  tiefe Weg"])[0]) == "der tiefe Weg"


def test_a_vocabulary_is_cut_where_the_setting_says(
    tmp_path: Path, files: tuple[list[Path], list[Path]]
) -> None:
    path = write(tmp_path / "codes", CODES)
    tokenizer = taken(path, files, vocabulary_size=9, shared=False)
    assert tokenizer.source_size == tokenizer.target_size == 9
    assert tokenizer.pieces_source(range(4, 9)) == ["a@@", "d", "o@@", "r@@", "the"]
    with pytest.raises(TokenizerError, match="at least 5 for this text, but got 4"):
        taken(path, files, vocabulary_size=4)


def test_rare_subwords_are_cut_smaller_below_the_threshold(
    tmp_path: Path, files: tuple[list[Path], list[Path]]
) -> None:
    path = write(tmp_path / "codes", CODES)
    tokenizer = taken(path, files, threshold=3, shared=False)
    (ids,) = tokenizer.encode_source(["the lower"])
    assert tokenizer.pieces_source(ids) == ["the", "l@@", "o@@", "w@@", "e@@", "r"]
    tokenizer.save(tmp_path)
    assert Tokenizer.load(tmp_path).encode_source(["the lower"]) == [ids]
    assert taken(path, files).encode_source(["the lower"]) != [ids]


def test_a_complete_vocabulary_has_what_only_dropout_gives(
    tmp_path: Path, files: tuple[list[Path], list[Path]]
) -> None:
    path = write(tmp_path / "codes", CODES)
    plain, complete = (taken(path, files, complete=complete) for complete in (False, True))
    known = complete.pieces_source(range(complete.source_size))
    assert {"th@@", "t@@", "low@@", "er", "h@@"} <= set(known)
    assert known[: plain.source_size] == plain.pieces_source(range(plain.source_size))


def test_decoding_codes_stops_at_the_end_and_shows_what_is_unknown(
    tmp_path: Path, files: tuple[list[Path], list[Path]]
) -> None:
    tokenizer = taken(write(tmp_path / "codes", CODES), files)
    (road,) = tokenizer.encode_target(["the road"])
    assert tokenizer.decode([START, PAD, *road, END, *road]) == "the road"
    assert tokenizer.decode([road[0], UNKNOWN, 10**9]) == "the ⁇ ⁇"
    assert tokenizer.decode(road[:2]) == "the r"
    assert tokenizer.decode([]) == ""


def test_real_codes_keep_every_word_of_a_real_text(corpora: Path, tmp_path: Path) -> None:
    folder = corpora / "fixtures-bpe" / "iwslt14-joint"
    texts = {}
    for side in ("de", "en"):
        path = corpora / f"ted-iwslt/iwslt14-de-en/valid.lc.tok.{side}.xz"
        with lzma.open(path, "rt", encoding="utf-8", newline="\n") as file:
            texts[side] = file.read().split("\n")[:300]
        write(tmp_path / side, "\n".join(texts[side]))
    files = [tmp_path / "de"], [tmp_path / "en"]
    tokenizer = taken(folder / "code.xz", files, vocabulary_size=50_000)
    for side, lines in texts.items():
        with lzma.open(folder / f"valid.bpe.{side}.xz", "rt", encoding="utf-8") as file:
            expected = file.read().split("\n")[: len(lines)]
        ids = tokenizer.encode_target(lines)
        assert [tokenizer.decode(row) for row in ids] == lines
        assert [" ".join(tokenizer.pieces_target(row)) for row in ids] == expected


# Lists of words.


@pytest.mark.parametrize("counted", ["{}\n", "{} 7\n", "{}\t7\n"])
def test_words_are_those_of_the_list_that_the_text_has(
    tmp_path: Path, files: tuple[list[Path], list[Path]], counted: str
) -> None:
    words = ["road", "the", "der", "nowhere", "Weg", "!"]
    path = write(tmp_path / "words.txt", "".join(map(counted.format, words)))
    tokenizer = taken(path, files)
    assert tokenizer.kind == "word-list"
    assert tokenizer.pieces_source(range(4, tokenizer.source_size)) == [
        *("road", "the", "!", "Weg", "der")
    ]
    (ids,) = tokenizer.encode_source(["the low \u00a0 road"])
    assert tokenizer.pieces_source(ids) == ["the", "<unk>", "road"]
    assert tokenizer.decode(ids) == "the ⁇ road"
    separate = taken(path, files, shared=False)
    assert separate.pieces_target(range(4, separate.target_size)) == ["Weg", "der", "!"]


def test_a_list_without_a_word_of_the_text_is_refused(
    tmp_path: Path, files: tuple[list[Path], list[Path]]
) -> None:
    path = write(tmp_path / "words.txt", "Straße\nBaum\n")
    with pytest.raises(TextError, match="none of its 2 words is in the"):
        taken(path, files)


def test_subwords_written_out_beforehand_are_words_of_a_list(tmp_path: Path) -> None:
    text = [write(tmp_path / "text.en", "ir@@ on c@@ ement\n")]
    tokenizer = taken(write(tmp_path / "dict.txt", "ir@@ 4\non 3\nc@@ 2\nement 1\n"), (text, text))
    assert tokenizer.kind == "word-list"
    assert tokenizer.decode(tokenizer.encode_target(["ir@@ on c@@ ement"])[0]) == "iron cement"


# What a file is.


def test_files_are_known_by_their_content(tmp_path: Path) -> None:
    assert isinstance(read_given(write(tmp_path / "a", CODES)), CodesFile)
    assert read_given(write(tmp_path / "b", "t h\nth e</w>\n")) == CodesFile(b"t h\nth e</w>\n")
    assert read_given(write(tmp_path / "c", "the 3\nof\t2\n\na\n")) == WordList(("the", "of", "a"))
    assert read_given(write(tmp_path / "d", "4 2\n7 1\n")) == WordList(("4", "7"))
    with gzip.open(tmp_path / "e.gz", "wt", encoding="utf-8") as file:
        file.write(CODES)
    assert read_given(tmp_path / "e.gz") == CodesFile(CODES.encode())


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"", "empty"),
        (b"\n \n", "empty"),
        (b"\x00\x01", "NUL"),
        (b"\xff\xfe", "UTF-8"),
        (b"a b c\n", "line 1"),
        (b"the\na b c\n", "line 2"),
        (b"the 3\nof x y\n", "line 2"),
    ],
)
def test_a_file_that_is_nothing_of_the_kind_is_refused(
    tmp_path: Path, content: bytes, named: str
) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(TokenizerError, match=named) as caught:
        read_given(tmp_path / "file")
    assert "file is something else" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_folder_without_a_tokenizer_are_named(
    tmp_path: Path, files: tuple[list[Path], list[Path]]
) -> None:
    with pytest.raises(TextError, match="nowhere"):
        taken(tmp_path / "nowhere", files)
    with pytest.raises(RunFolderError, match=r"tokenizer\.json"):
        taken(tmp_path, files)


# Models and folders are taken over unchanged.


def model(kind: str, **options: Any) -> bytes:
    content = io.BytesIO()
    ours = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*SOURCE, *TARGET] * 5),
        model_writer=content,
        model_type=kind,
        vocab_size=40,
        hard_vocab_limit=False,
        minloglevel=2,
        **ours | options,
    )
    return content.getvalue()


@pytest.mark.parametrize(
    ("kind", "name"),
    [("bpe", "bpe"), ("unigram", "unigram"), ("char", "character"), ("word", "word")],
)
def test_a_sentencepiece_model_says_itself_how_it_cuts(
    tmp_path: Path, files: tuple[list[Path], list[Path]], kind: str, name: str
) -> None:
    path = tmp_path / "some.model"
    path.write_bytes(model(kind))
    tokenizer = taken(path, files)
    assert tokenizer.kind == name
    tokenizer.save(tmp_path)
    assert (tmp_path / "tokenizer.model").read_bytes() == path.read_bytes()
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    assert tokenizer.encode_source(SOURCE) == processor.encode(SOURCE)


@pytest.mark.parametrize(
    "content", [b"", b"\x12", b"\x12\x03\x18\x63\x00", b"\xff" * 99, b"\x80" * 10_000, b"\x0b\x01"]
)
def test_a_broken_model_is_refused(
    tmp_path: Path, files: tuple[list[Path], list[Path]], content: bytes
) -> None:
    (tmp_path / "some.model").write_bytes(content)
    with pytest.raises(TokenizerError, match=r"some\.model cannot be used"):
        taken(tmp_path / "some.model", files)


def test_a_model_with_a_subword_that_is_no_utf8_is_refused(
    tmp_path: Path, files: tuple[list[Path], list[Path]]
) -> None:
    content = model("bpe").replace(b"lo", b"l\xfe")
    (tmp_path / "some.model").write_bytes(content)
    with pytest.raises(TokenizerError, match=r"some\.model cannot be used: .* in UTF-8"):
        taken(tmp_path / "some.model", files)


@pytest.mark.parametrize("shared", [True, False])
def test_a_tokenizer_is_known_by_the_file_or_folder_that_gave_it(
    tmp_path: Path, files: tuple[list[Path], list[Path]], shared: bool
) -> None:
    """Without the text, which may be large; here it is deleted before."""
    (tmp_path / "some.model").write_bytes(model("unigram"))
    (tmp_path / "other.model").write_bytes(model("bpe"))
    written = {
        "codes": CODES,
        "other codes": CODES.replace("t h\n", ""),
        "words": "the\nroad\nlower\nder\nWeg\ntiefe\n",
        "other words": "the\nroad\n",
    }
    for name, content in written.items():
        write(tmp_path / name, content)
    names = ["codes", "words", *(["some.model"] if shared else [])]
    own = {name: taken(tmp_path / name, files, shared=shared) for name in names}
    for name, tokenizer in own.items():
        (tmp_path / f"{name} folder").mkdir()
        tokenizer.save(tmp_path / f"{name} folder")
    for file in (*files[0], *files[1]):
        file.unlink()
    for name, tokenizer in own.items():
        for given in (*written, "some.model", "other.model", *(f"{one} folder" for one in own)):
            expected = given.removesuffix(" folder") == name
            assert could_have_given(tmp_path / given, tokenizer) is expected, (name, given)


def test_a_target_of_symbols_is_not_compared(
    tmp_path: Path, files: tuple[list[Path], list[Path]]
) -> None:
    codes = write(tmp_path / "codes", CODES)
    tokenizer = taken(codes, files, shared=False).with_symbols(files[1])
    assert could_have_given(codes, tokenizer, sides=1)
    assert not could_have_given(codes, tokenizer)


def test_a_folder_gives_its_tokenizer_for_other_languages(
    tmp_path: Path, files: tuple[list[Path], list[Path]]
) -> None:
    first = taken(write(tmp_path / "codes", CODES), files, shared=False)
    first.save(tmp_path)
    again = taken(tmp_path, ([], []), shared=False, target_language="fr", vocabulary_size=5)
    assert again.fingerprint == first.fingerprint
    assert (again.source_language, again.target_language) == ("en", "fr")
    with pytest.raises(TokenizerError, match=r"data\.shared_vocabulary must be false"):
        taken(tmp_path, files, shared=True)


# On disk.


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("kind", ["codes", "word-list"])
def test_a_saved_tokenizer_is_the_same_when_loaded(
    tmp_path: Path, files: tuple[list[Path], list[Path]], kind: str, shared: bool
) -> None:
    path = write(tmp_path / "given", CODES if kind == "codes" else "the\nlow\nroad\nder\nWeg\n")
    tokenizer = taken(path, files, shared=shared)
    out = tmp_path / "out"
    out.mkdir()
    tokenizer.save(out)
    loaded = Tokenizer.load(out)
    assert (loaded.kind, loaded.shared, loaded.fingerprint) == (kind, shared, tokenizer.fingerprint)
    assert loaded.encode_source(SOURCE) == tokenizer.encode_source(SOURCE)
    assert loaded.encode_target(TARGET) == tokenizer.encode_target(TARGET)
    endings = ["codes", "vocabulary.json"] if kind == "codes" else ["vocabulary.json"]
    sides = [""] if shared else ["source.", "target."]
    names = {f"tokenizer.{side}{ending}" for side in sides for ending in endings}
    assert {path.name for path in out.iterdir()} == {"tokenizer.json", *names}
    # Who knows format 1 only must refuse it, whatever the kind.
    assert json.loads((out / "tokenizer.json").read_text("utf-8"))["format"] == 2
    damaged = out / sorted(names)[0]
    damaged.write_bytes(damaged.read_bytes() + b" ")
    with pytest.raises(RunFolderError, match="SHA-256 differs"):
        Tokenizer.load(out)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b'{"splits_others": false, "tags": [], "pieces": ["a", "a"]}',
        b'{"splits_others": false, "tags": [], "pieces": ["a", 1]}',
        b'{"splits_others": false, "tags": [], "pieces": "ab"}',
        b'{"splits_others": false, "tags": {}, "pieces": ["a"]}',
        b'{"splits_others": 0, "tags": [], "pieces": ["a"]}',
        b'{"splits_others": false, "tags": [], "pieces": ["\\ud800"]}',
        b"[" * 100_000,
    ],
)
def test_a_hostile_vocabulary_is_refused(
    tmp_path: Path, files: tuple[list[Path], list[Path]], content: bytes
) -> None:
    from hashlib import sha256

    taken(write(tmp_path / "words", "the\nroad\n"), files).save(tmp_path)
    (tmp_path / "tokenizer.vocabulary.json").write_bytes(content)
    path = tmp_path / "tokenizer.json"
    record = json.loads(path.read_text("utf-8"))
    record["sha256"]["tokenizer.vocabulary.json"] = sha256(content).hexdigest()
    path.write_text(json.dumps(record), "utf-8")
    with pytest.raises(TokenizerError, match="vocabulary of a tokenizer must be JSON"):
        Tokenizer.load(tmp_path)


def test_a_learned_model_alone_is_what_a_given_one_would_be(
    tmp_path: Path, files: tuple[list[Path], list[Path]]
) -> None:
    content = model("bpe")
    direct = Tokenizer(SentencePieceModel(content, "bpe"), source_language="", target_language="")
    (tmp_path / "some.model").write_bytes(content)
    assert taken(tmp_path / "some.model", files).fingerprint == direct.fingerprint
