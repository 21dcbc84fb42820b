import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data.cleaning.filter import PairFilter
from heedful.data.encoded import sampled, texts
from heedful.data.encoded.dataset import EncodedPairs
from heedful.data.encoded.encode import encode_corpus
from heedful.data.encoded.sampled import sampled_epoch
from heedful.data.encoded.texts import Texts, write_texts
from heedful.data.toy_grammar.corpus import split_pairs
from heedful.errors import RunFolderError, StorageError, TokenizerError
from heedful.plugins import load_plugin, unload_plugin
from heedful.text.corpus import Corpus
from heedful.tokenization.tokenizer import Tokenizer

PAIRS = [
    (f">>fr<< {pair[0]}" if n % 2 else pair[0], pair[1])
    for n, pair in enumerate(split_pairs(230, 1, seed=1)[0])
]
FILES = [f"{side}.{kind}" for side in ("source", "target") for kind in ("ids", "offsets")] + [
    "meta.json"
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Text and tokenizer of a small run."""
    folder = tmp_path_factory.mktemp("run")
    for side, language in enumerate(("en", "fr")):
        text = "".join(f"{pair[side]}\n" for pair in PAIRS)
        (folder / f"text.{language}").write_text(text, encoding="utf-8")
    Tokenizer.train(
        [folder / "text.en"],
        [folder / "text.fr"],
        kind="bpe",
        vocabulary_size=150,
        shared=True,
        source_language="en",
        target_language="fr",
        seed=1,
    ).save(folder)
    write_texts(PAIRS, folder)
    return folder


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampled, "SHARD_PAIRS", 50)


def epoch(folder: Path, out: Path, number: int = 3, **options: int | float) -> EncodedPairs:
    values = {"sampling": 0.2, "seed": 1, "max_length": 100} | options
    return sampled_epoch(folder, folder, epoch=number, out=out, **values)


def content(pairs: EncodedPairs) -> list[bytes]:
    return [(pairs.folder / name).read_bytes() for name in FILES]


def rows(pairs: EncodedPairs) -> list[tuple[list[int], list[int]]]:
    return [(pairs.pair(n)[0].tolist(), pairs.pair(n)[1].tolist()) for n in range(len(pairs))]


def test_any_number_of_processes_writes_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    made = [content(epoch(folder, tmp_path / str(n), processes=n)) for n in (1, 2)]
    assert made[0] == made[1]


def test_an_epoch_depends_on_seed_number_and_rate_and_on_nothing_else(
    folder: Path, tmp_path: Path
) -> None:
    first = content(epoch(folder, tmp_path / "first"))
    others = [{"number": 4}, {"seed": 2}, {"sampling": 0.21}]
    for n, options in enumerate(others):
        other = content(epoch(folder, tmp_path / f"other{n}", **options))
        assert other[0] != first[0] and other[2] != first[2]
    assert content(epoch(folder, tmp_path / "again")) == first
    # Shards are independent: none repeats the chances of another.
    lengths = [np.fromfile(tmp_path / "first" / "source.offsets", "<i8")]
    assert len(np.unique(np.diff(lengths[0]).reshape(-1, 10), axis=0)) > 15


def test_every_pair_is_there_and_spells_its_text(folder: Path, tmp_path: Path) -> None:
    tokenizer = Tokenizer.load(folder)
    pairs = epoch(folder, tmp_path / "ids")
    assert len(pairs) == len(PAIRS) == pairs.report.kept
    plain = tokenizer.encode_source([source for source, _ in PAIRS])
    differ = 0
    for (source, target), text, usual in zip(rows(pairs), PAIRS, plain, strict=True):
        assert tokenizer.decode(target) == text[1]
        assert tokenizer.decode(source) == text[0].removeprefix(">>fr<< ")
        assert (tokenizer.pieces_source(source)[0] == ">>fr<<") is text[0].startswith(">>")
        differ += source != usual
    assert differ > len(PAIRS) / 2
    assert pairs.unknown_share == {"source": 0.0, "target": 0.0}


def test_a_sentence_that_got_too_long_is_cut_as_usual(folder: Path, tmp_path: Path) -> None:
    tokenizer = Tokenizer.load(folder)
    usual = [tokenizer.encode_source([source])[0] for source, _ in PAIRS]
    limit = max(map(len, usual))
    pairs = epoch(folder, tmp_path / "ids", sampling=0.6, max_length=limit)
    free = epoch(folder, tmp_path / "free", sampling=0.6)
    assert len(pairs) == len(PAIRS)
    back = 0
    for (source, _), (unlimited, _), expected in zip(rows(pairs), rows(free), usual, strict=True):
        assert source == (unlimited if len(unlimited) <= limit else expected)
        back += len(unlimited) > limit
    assert 0 < back < len(PAIRS)


def test_an_epoch_that_is_there_is_not_made_again(folder: Path, tmp_path: Path) -> None:
    epoch(folder, tmp_path / "ids")
    before = (tmp_path / "ids" / "source.ids").stat()
    epoch(folder, tmp_path / "ids", processes=2)
    assert (tmp_path / "ids" / "source.ids").stat().st_ino == before.st_ino
    epoch(folder, tmp_path / "ids", number=4)
    assert (tmp_path / "ids" / "source.ids").stat().st_ino != before.st_ino
    assert [path.name for path in tmp_path.iterdir()] == ["ids"]


def test_other_folders_are_never_replaced(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    corpus = Corpus((folder / "text.en",), (folder / "text.fr",))
    encode_corpus(corpus, Tokenizer.load(folder), PairFilter(100, None), tmp_path / "data")
    for name in ("mine", "data"):
        with pytest.raises(RunFolderError, match=r"it has other (or damaged )?content"):
            epoch(folder, tmp_path / name)
    (tmp_path / "empty").mkdir()
    (tmp_path / ".empty.partial").mkdir()  # as a killed run leaves it
    (tmp_path / ".empty.partial" / "source.ids").touch()
    assert len(epoch(folder, tmp_path / "empty")) == len(PAIRS)


def test_what_goes_wrong_leaves_nothing_behind(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "characters").mkdir()
    Tokenizer.train(
        [folder / "text.en"],
        [folder / "text.fr"],
        kind="character",
        vocabulary_size=150,
        shared=True,
        source_language="en",
        target_language="fr",
        seed=1,
    ).save(tmp_path / "characters")
    with pytest.raises(TokenizerError, match="kind character"):
        sampled_epoch(folder, tmp_path / "characters", 0.1, 1, 0, 100, tmp_path / "ids", 1)
    with pytest.raises(RunFolderError, match=r"text\.json"):
        sampled_epoch(tmp_path, folder, 0.1, 1, 0, 100, tmp_path / "ids", 1)
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot write to"):
        epoch(folder, tmp_path / "file" / "ids")
    assert {path.name for path in tmp_path.iterdir()} == {"characters", "file"}


def test_a_program_without_the_guard_is_told_so(folder: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\nfrom pathlib import Path\nfrom heedful.data.encoded import sampled\n"
        "sampled.SHARD_PAIRS = 50\nhere = Path(sys.argv[1])\n"
        "sampled.sampled_epoch(here, here, 0.1, 1, 0, 100, Path(sys.argv[2]), 2)\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, program, folder, tmp_path / "ids"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert "HeedfulError: Subwords are sampled by separate processes" in done.stderr
    assert done.returncode == 1
    assert [path.name for path in tmp_path.iterdir()] == ["program.py"]


# The text itself.


@settings(max_examples=25)
@given(
    pairs=st.lists(st.tuples(st.text(st.characters(codec="utf-8")), st.text("aé\n"))),
    chunk=st.integers(1, 4),
)
def test_text_comes_back_byte_for_byte(
    pairs: list[tuple[str, str]], chunk: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    here = tmp_path_factory.mktemp("texts")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "_CHUNK_PAIRS", chunk)
        written = write_texts(iter(pairs), here)
    for opened in (written, Texts.open(here)):
        assert len(opened) == len(pairs)
        assert list(zip(*opened.pairs(0, len(pairs)), strict=True)) == pairs
        assert list(zip(*opened.pairs(1, 3), strict=True)) == pairs[1:3]
        assert opened.pairs(len(pairs), len(pairs) + 5) == ([], [])


@pytest.mark.parametrize("name", ["source.text", "target.text.offsets"])
@pytest.mark.parametrize("damage", ["missing", "short", "long"])
def test_damaged_text_is_named(tmp_path: Path, name: str, damage: str) -> None:
    write_texts(PAIRS[:5], tmp_path)
    before = (tmp_path / name).read_bytes()
    (tmp_path / name).unlink()
    if damage != "missing":
        (tmp_path / name).write_bytes(before[:-3] if damage == "short" else before + b"x" * 8)
    with pytest.raises(RunFolderError, match=name.replace(".", r"\.")):
        Texts.open(tmp_path)


def test_a_flipped_bit_in_the_text_is_noticed_when_it_is_read(tmp_path: Path) -> None:
    write_texts(PAIRS[:5], tmp_path)
    content = bytearray((tmp_path / "target.text").read_bytes())
    content[7] ^= 1
    (tmp_path / "target.text").write_bytes(content)
    with pytest.raises(RunFolderError, match=r"target\.text \(bytes 0 .* must be unchanged"):
        Texts.open(tmp_path).pairs(0, 5)


def test_sides_of_different_length_are_noticed(tmp_path: Path) -> None:
    for name, pairs in (("one", PAIRS[:5]), ("two", PAIRS[:4])):
        (tmp_path / name).mkdir()
        write_texts(pairs, tmp_path / name)
    for ending in ("text", "text.offsets"):
        (tmp_path / "one" / f"source.{ending}").rename(tmp_path / "two" / f"source.{ending}")
    digests = [json.loads((tmp_path / name / "text.json").read_text()) for name in ("one", "two")]
    mixed = {name: digests["target" in name][name] for name in digests[0]}
    (tmp_path / "two" / "text.json").write_text(json.dumps(mixed))
    with pytest.raises(RunFolderError, match="5 and 4"):
        Texts.open(tmp_path / "two")


def test_text_is_never_written_over(tmp_path: Path) -> None:
    write_texts(PAIRS[:5], tmp_path)
    with pytest.raises(StorageError, match="File exists"):
        write_texts(PAIRS[:4], tmp_path)
    assert len(Texts.open(tmp_path)) == 5
    with pytest.raises(StorageError, match="No such file"):
        write_texts(PAIRS[:4], tmp_path / "none")


CHANGES = "capitals:0.3 typos:0.3 tags:0.2"


def test_changed_text_depends_on_seed_and_epoch_and_on_no_process(
    folder: Path, tmp_path: Path
) -> None:
    made = {
        name: content(epoch(folder, tmp_path / name, sampling=0.0, augment=CHANGES, **more))
        for name, more in {
            "first": {},
            "two": {"processes": 2},
            "next": {"number": 4},
            "seed": {"seed": 2},
        }.items()
    }
    assert made["first"] == made["two"]
    assert len({made[name][0] for name in ("first", "next", "seed")}) == 3
    plain = rows(epoch(folder, tmp_path / "plain", sampling=0.0))
    changed = rows(epoch(folder, tmp_path / "first", sampling=0.0, augment=CHANGES))
    assert 0.7 < sum(a != b for a, b in zip(plain, changed, strict=True)) / len(plain) < 0.9
    # an epoch of other text is made anew
    assert rows(epoch(folder, tmp_path / "first", sampling=0.0)) == plain


def test_a_changed_pair_that_became_too_long_is_as_it_was(folder: Path, tmp_path: Path) -> None:
    tokenizer = Tokenizer.load(folder)
    usual = [
        (tokenizer.encode_source([source])[0], tokenizer.encode_target([target])[0])
        for source, target in PAIRS
    ]
    limit = max(len(side) for pair in usual for side in pair)
    made = epoch(folder, tmp_path / "ids", sampling=0.0, augment="tags:1", max_length=limit)
    back = 0
    for (source, target), (old_source, old_target) in zip(rows(made), usual, strict=True):
        assert max(len(source), len(target)) <= limit
        assert (source == old_source) == (target == old_target)
        back += source == old_source
    assert 0 < back < len(PAIRS)


def test_a_plugins_change_is_known_in_other_processes(folder: Path, tmp_path: Path) -> None:
    plugin = tmp_path / "shout.py"
    plugin.write_text(
        "from heedful import plugins\n"
        "def shout(source, target, generator):\n"
        "    return f'{source} the the', f'{target} le le'\n"
        "plugins.AUGMENTATIONS.register('shout', shout)\n"
    )
    loaded = load_plugin(plugin)
    try:
        changed = {"sampling": 0.0, "augment": "shout:1"}
        made = [content(epoch(folder, tmp_path / str(n), processes=n, **changed)) for n in (1, 2)]
        assert made[0] == made[1]
        tokenizer = Tokenizer.load(folder)
        for source, _ in rows(epoch(folder, tmp_path / "1", **changed)):
            assert tokenizer.decode(source).endswith(" the the")
    finally:
        unload_plugin(loaded)
