import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from heedful.data.cleaning.filter import CleaningReport, PairFilter
from heedful.data.encoded import encode, merge_shards
from heedful.data.encoded import flat_file as block_digests
from heedful.data.encoded.dataset import EncodedPairs
from heedful.data.encoded.encode import encode_corpus
from heedful.errors import RunFolderError, TextError
from heedful.text.corpus import Corpus
from heedful.tokenization.tokenizer import Tokenizer

SOURCE = ["the dog", "", "a cat sees the dog", "   ", "the cat", "x", "the ? cat"]
TARGET = ["der Hund", "leer", "die Katze sieht den Hund", "leer", "Katze", "x " * 40, "Katze"]
KEPT = [0, 2, 4, 6]
FILTER = PairFilter(max_length=30, max_length_ratio=None)
FILES = ("source.ids", "source.offsets", "target.ids", "target.offsets")


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return Corpus(
        (write(tmp_path / "text.en", SOURCE),),
        (write(tmp_path / "text.de", TARGET),),
    )


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    folder = tmp_path_factory.mktemp("learn")
    source = write(folder / "learn.en", [line.replace("?", "") for line in SOURCE])
    target = write(folder / "learn.de", TARGET)
    return Tokenizer.train(
        [source],
        [target],
        kind="character",
        vocabulary_size=100,
        shared=False,
        source_language="en",
        target_language="de",
        seed=1,
    )


@pytest.fixture(scope="module")
def made(tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of encoded pairs, to be copied."""
    folder = tmp_path_factory.mktemp("made")
    text = [write(folder / "text.en", SOURCE)], [write(folder / "text.de", TARGET)]
    return encode_corpus(Corpus(*text), tokenizer, FILTER, folder / "ids").folder


@pytest.fixture
def ids(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "ids"))


def check(pairs: EncodedPairs, tokenizer: Tokenizer) -> None:
    sources = tokenizer.encode_source([SOURCE[n] for n in KEPT])
    targets = tokenizer.encode_target([TARGET[n] for n in KEPT])
    assert len(pairs) == len(KEPT)
    for index, expected in enumerate(zip(sources, targets, strict=True)):
        assert tuple(side.tolist() for side in pairs.pair(index)) == expected
        assert pairs.pair(index)[0].tolist() == expected[0]
        assert pairs.pair(index)[1].tolist() == expected[1]
    assert pairs.source_lengths.tolist() == [len(ids) for ids in sources]
    assert pairs.target_lengths.tolist() == [len(ids) for ids in targets]
    assert pairs.source_lengths.dtype == pairs.target_lengths.dtype == np.int32


def test_kept_pairs_come_back_in_order(
    corpus: Corpus, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    pairs = encode_corpus(corpus, tokenizer, FILTER, tmp_path / "deep" / "ids")
    check(pairs, tokenizer)
    check(EncodedPairs.open(tmp_path / "deep" / "ids", tokenizer), tokenizer)
    assert pairs.report.summary() == "4 pairs kept, 3 dropped (2 empty, 1 too long)"
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["ids"]


def test_chunks_leave_no_trace(
    corpus: Corpus, tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode_corpus(corpus, tokenizer, FILTER, tmp_path / "whole")
    monkeypatch.setattr(encode, "_SHARD_PAIRS", 2)
    check(encode_corpus(corpus, tokenizer, FILTER, tmp_path / "pairs"), tokenizer)
    monkeypatch.setattr(encode, "_SHARD_CHARACTERS", 1)
    encode_corpus(corpus, tokenizer, FILTER, tmp_path / "characters")
    for name in (*FILES, "meta.json", "report.json"):
        whole = (tmp_path / "whole" / name).read_bytes()
        assert (tmp_path / "pairs" / name).read_bytes() == whole
        assert (tmp_path / "characters" / name).read_bytes() == whole


def test_the_share_of_unknown_pieces_is_told(
    corpus: Corpus, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    pairs = encode_corpus(corpus, tokenizer, FILTER, tmp_path / "ids")
    assert pairs.unknown_share == {"source": 1 / pairs.source_lengths.sum(), "target": 0.0}


@pytest.mark.parametrize(("size", "expected"), [(65_536, "<u2"), (65_537, "<u4")])
def test_ids_take_two_bytes_where_the_vocabulary_fits(
    tmp_path: Path, size: int, expected: str
) -> None:
    names = [tmp_path / name for name in ("ids", "offsets")]
    with names[0].open("wb") as ids, names[1].open("wb") as offsets:
        dtype = merge_shards.id_type(size)
        side = merge_shards._Side(ids, offsets, dtype)
        side.append_ids(np.array([5, size - 1], dtype), np.array([2], np.int32))
        side.append_ids(np.array([7], dtype), np.array([1], np.int32))
        told = side.describe()
        blocks = told.pop("blocks")
        assert told == {"dtype": expected, "ids": 3, "unknown_share": 0.0}
        assert [len(blocks[name]) for name in ("ids", "offsets")] == [1, 1]
    assert np.fromfile(names[0], expected).tolist() == [5, size - 1, 7]
    assert np.fromfile(names[1], "<i8").tolist() == [0, 2, 3]


def test_pairs_cannot_be_changed_or_read_past_the_end(
    corpus: Corpus, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    pairs = encode_corpus(corpus, tokenizer, FILTER, tmp_path / "ids")
    first = pairs.pair(0)[0]
    before = first.copy()
    first[0] += 1
    assert (pairs.pair(0)[0] == before).all()
    for index in (-1, len(pairs)):
        with pytest.raises(IndexError):
            pairs.pair(index)


def test_encoding_again_replaces_what_was_there(
    corpus: Corpus, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    encode_corpus(corpus, tokenizer, PairFilter(8, None), tmp_path / "ids")
    (tmp_path / ".ids.partial").mkdir()  # as a killed run leaves it
    (tmp_path / ".ids.partial" / "source.ids").write_bytes(b"half")
    check(encode_corpus(corpus, tokenizer, FILTER, tmp_path / "ids"), tokenizer)
    assert [path.name for path in tmp_path.glob("*ids*")] == ["ids"]


def test_other_files_are_never_replaced(
    corpus: Corpus, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.txt").write_text("mine", encoding="utf-8")
    for folder in (tmp_path / "folder", tmp_path / "folder" / "thesis.txt"):
        with pytest.raises(RunFolderError, match="it has other content"):
            encode_corpus(corpus, tokenizer, FILTER, folder)
    assert (tmp_path / "folder" / "thesis.txt").read_text(encoding="utf-8") == "mine"


def test_no_pair_left_is_reported_with_the_counts(
    corpus: Corpus, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    with pytest.raises(TextError, match=r"0 pairs kept, 7 dropped \(5 too long, 2 empty\)"):
        encode_corpus(corpus, tokenizer, PairFilter(1, None), tmp_path / "ids")
    assert not list(tmp_path.glob("*ids*"))


def test_bad_text_leaves_nothing_behind(
    corpus: Corpus, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    with corpus.source[0].path.open("ab") as file:
        file.write(b"\xff\n")
    with pytest.raises(TextError, match="line 8 holds the invalid byte 0xff"):
        encode_corpus(corpus, tokenizer, FILTER, tmp_path / "ids")
    assert not list(tmp_path.glob("*ids*"))


def test_ids_of_another_tokenizer_are_refused(
    corpus: Corpus, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    other = Tokenizer.train(
        [corpus.source[0].path],
        [corpus.target[0].path],
        kind="character",
        vocabulary_size=100,
        shared=False,
        source_language="en",
        target_language="fr",
        seed=1,
    )
    encode_corpus(corpus, tokenizer, FILTER, tmp_path / "ids")
    with pytest.raises(RunFolderError, match="they come from another tokenizer;"):
        EncodedPairs.open(tmp_path / "ids", other)


@pytest.mark.parametrize("name", [*FILES, "meta.json"])
@pytest.mark.parametrize("damage", ["missing", "short", "long", "empty"])
def test_a_damaged_file_is_named(ids: Path, tokenizer: Tokenizer, name: str, damage: str) -> None:
    path = ids / name
    content = path.read_bytes()
    path.unlink()
    if damage != "missing":
        path.write_bytes({"short": content[:-3], "long": content + b"xx", "empty": b""}[damage])
    with pytest.raises(RunFolderError, match=name):
        EncodedPairs.open(ids, tokenizer)


@pytest.mark.parametrize("index", [0, -1])
def test_offsets_that_lead_elsewhere_are_noticed(
    ids: Path, tokenizer: Tokenizer, index: int
) -> None:
    path = ids / "target.offsets"
    offsets = np.fromfile(path, "<i8")
    offsets[index] += 1
    offsets.tofile(path)
    with pytest.raises(RunFolderError, match=r"target\.offsets must cover"):
        EncodedPairs.open(ids, tokenizer)


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def test_a_flipped_bit_is_noticed_when_its_block_is_first_read(
    corpus: Corpus, tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block_digests, "BLOCK_BYTES", 16)
    encode_corpus(corpus, tokenizer, FILTER, tmp_path / "ids")
    path = tmp_path / "ids" / "source.ids"
    flip(path, path.stat().st_size - 1)
    pairs = EncodedPairs.open(tmp_path / "ids", tokenizer)
    assert pairs.pair(0)[0].tolist() == tokenizer.encode_source([SOURCE[0]])[0]
    for read in (lambda: pairs.pair(len(pairs) - 1), pairs.check):
        with pytest.raises(RunFolderError, match=r"source\.ids \(bytes .* must be unchanged"):
            read()


def test_a_flipped_bit_among_the_offsets_is_noticed_at_once(
    ids: Path, tokenizer: Tokenizer
) -> None:
    flip(ids / "target.offsets", 16)
    with pytest.raises(RunFolderError, match=r"target\.offsets \(bytes 0 .* must be unchanged"):
        EncodedPairs.open(ids, tokenizer)


def test_offsets_that_lead_backwards_are_refused_with_any_digest(
    ids: Path, tokenizer: Tokenizer
) -> None:
    path, record = ids / "source.offsets", ids / "meta.json"
    offsets, meta = np.fromfile(path, "<i8"), json.loads(record.read_text("utf-8"))
    offsets[1] = -3
    offsets.tofile(path)
    digests = block_digests.BlockDigests()
    digests.update(offsets.tobytes())
    meta["source"]["blocks"]["offsets"] = digests.hexdigests()
    record.write_text(json.dumps(meta), "utf-8")
    with pytest.raises(RunFolderError, match=r"source\.offsets must contain increasing .* de"):
        EncodedPairs.open(ids, tokenizer)


def test_an_id_beyond_the_vocabulary_is_refused(tokenizer: Tokenizer, tmp_path: Path) -> None:
    ids, lengths = np.array([5, tokenizer.target_size], "<u2"), np.array([2], np.int32)
    part = merge_shards.EncodedPart(np.array([5, 6], "<u2"), lengths, ids, lengths)
    made_from = {"tokenizer": tokenizer.fingerprint}
    types = (np.dtype("<u2"), np.dtype("<u2"))
    merge_shards.write_pairs(tmp_path, [part], types, CleaningReport(kept=1), made_from)
    pairs = EncodedPairs.open(tmp_path, tokenizer)
    assert pairs.sides[0].row(0).tolist() == [5, 6]
    with pytest.raises(RunFolderError, match=rf"ids below {tokenizer.target_size}, the size"):
        pairs.pair(0)


@pytest.mark.parametrize(
    "change",
    [
        {"pairs": "many"},
        {"pairs": -1},
        {"pairs": 10**30},
        {"pairs": None},
        {"source": []},
        {"source": {"dtype": "O", "ids": 3, "unknown_share": 0}},
        {"source": {"dtype": ["<u2"], "ids": 3, "unknown_share": 0}},
        {"report": {"kept": {}}},
        {"format": 2},
        {"report": None},
    ],
)
def test_a_hostile_meta_file_is_refused(
    ids: Path, tokenizer: Tokenizer, change: dict[str, object]
) -> None:
    path = ids / "meta.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | change), "utf-8")
    with pytest.raises(RunFolderError, match="must"):
        EncodedPairs.open(ids, tokenizer)


def test_a_meta_file_without_checksums_of_blocks_is_refused(
    ids: Path, tokenizer: Tokenizer
) -> None:
    path = ids / "meta.json"
    meta = json.loads(path.read_text("utf-8"))
    del meta["source"]["blocks"]
    path.write_text(json.dumps(meta), "utf-8")
    with pytest.raises(RunFolderError, match="the entry 'blocks' is missing; delete the folder"):
        EncodedPairs.open(ids, tokenizer)


def test_a_full_disk_is_reported_and_leaves_nothing(
    corpus: Corpus, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    tokenizer.save(tmp_path)
    write(corpus.source[0].path, ["the dog sees"] * 5000)
    write(corpus.target[0].path, ["der Hund"] * 5000)
    program = """
import resource, sys
from pathlib import Path
from heedful.data.cleaning.filter import PairFilter
from heedful.text.corpus import Corpus
from heedful.data.encoded.encode import encode_corpus
from heedful.tokenization.tokenizer import Tokenizer
from heedful.errors import StorageError
folder = Path(sys.argv[1])
tokenizer = Tokenizer.load(folder)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
try:
    corpus = Corpus((folder / "text.en",), (folder / "text.de",))
    encode_corpus(corpus, tokenizer, PairFilter(99, None), folder / "ids")
except StorageError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert f"cannot write to {tmp_path / 'ids'}: File too large" in done.stdout
    assert done.stderr == ""
    assert not list(tmp_path.glob("*ids*"))
