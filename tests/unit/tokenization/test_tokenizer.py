import gzip
import json
import os
import re
import subprocess
import sys
import time
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import HeedfulError, RunFolderError, StorageError, TextError, TokenizerError
from heedful.tokenization import train as subwords
from heedful.tokenization.sentencepiece_model import SentencePieceModel
from heedful.tokenization.tokenizer import END, PAD, START, UNKNOWN, Tokenizer

ENGLISH = [
    "the big red dog sees the small blue cat",
    "a dog  sees two cats",
    "  <s>tags</s> & <unk> \t tab\u2028\u3000é日本 \r x\u2585",
    "",
]
GERMAN = ["der große rote Hund sieht die kleine blaue Katze", "ein Hund sieht zwei Katzen", "ß", ""]
CHARACTERS = "".join(sorted(set("".join(ENGLISH + GERMAN)) - {"\u2585"}))


def text_files(folder: Path, repeat: int = 5) -> tuple[list[Path], list[Path]]:
    source, target = folder / "text.en.gz", folder / "text.de"
    with gzip.open(source, "wt", encoding="utf-8", newline="") as file:
        file.write("".join(f"{line}\n" for line in ENGLISH * repeat))
    with target.open("w", encoding="utf-8", newline="") as file:
        file.write("".join(f"{line}\n" for line in GERMAN * repeat))
    return [source], [target]


def trained(folder: Path, **options: Any) -> Tokenizer:
    source, target = text_files(folder)
    defaults: dict[str, Any] = {
        "kind": "bpe",
        "vocabulary_size": 70,
        "shared": True,
        "source_language": "en",
        "target_language": "de",
        "seed": 1,
    }
    return Tokenizer.train(source, target, **defaults | options)


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tokenizer]:
    return {
        "bpe": trained(tmp_path_factory.mktemp("bpe")),
        "unigram": trained(tmp_path_factory.mktemp("uni"), kind="unigram", vocabulary_size=50),
        "character": trained(
            tmp_path_factory.mktemp("char"), kind="character", vocabulary_size=8000
        ),
    }


@pytest.fixture(scope="module")
def multi30k(corpora: Path) -> tuple[Tokenizer, list[str]]:
    raw = corpora / "multi30k" / "raw"
    tokenizer = Tokenizer.train(
        [raw / "train.en.gz"],
        [raw / "train.de.gz"],
        kind="bpe",
        vocabulary_size=4000,
        shared=True,
        source_language="en",
        target_language="de",
        seed=1,
    )
    with gzip.open(raw / "val.de.gz", "rt", encoding="utf-8") as file:
        return tokenizer, file.read().split("\n")


@pytest.mark.parametrize("kind", ["bpe", "unigram", "character"])
@given(text=st.text(CHARACTERS))
def test_text_of_known_characters_comes_back_as_it_was(
    tokenizers: dict[str, Tokenizer], kind: str, text: str
) -> None:
    tokenizer = tokenizers[kind]
    (ids,) = tokenizer.encode_target([text])
    assert tokenizer.decode(ids) == text
    assert not {PAD, UNKNOWN, START, END} & set(ids)


@given(text=st.text(st.characters(codec="utf-8", exclude_characters="\u2581\0")))
def test_with_byte_fallback_any_text_comes_back(
    multi30k: tuple[Tokenizer, list[str]], text: str
) -> None:
    tokenizer, _ = multi30k
    (ids,) = tokenizer.encode_target([text])
    assert tokenizer.decode(ids) == text
    assert UNKNOWN not in ids


def test_real_text_comes_back(multi30k: tuple[Tokenizer, list[str]]) -> None:
    tokenizer, lines = multi30k
    assert [tokenizer.decode(ids) for ids in tokenizer.encode_target(lines)] == lines
    assert tokenizer.source_size == tokenizer.target_size == 4000


def test_an_empty_line_has_no_ids_and_no_lines_give_none(tokenizers: dict[str, Tokenizer]) -> None:
    assert tokenizers["bpe"].encode_source(["", "dog"])[0] == []
    assert tokenizers["bpe"].encode_source([]) == []
    assert tokenizers["bpe"].decode([]) == ""


def test_text_cannot_spell_special_symbols(tokenizers: dict[str, Tokenizer]) -> None:
    for tokenizer in tokenizers.values():
        (ids,) = tokenizer.encode_source(["<s></s><unk>"])
        assert min(ids) > END
        assert tokenizer.decode(ids) == "<s></s><unk>"


def test_decoding_stops_at_the_end_and_skips_padding_and_start(
    tokenizers: dict[str, Tokenizer],
) -> None:
    tokenizer = tokenizers["bpe"]
    (dog,), (cat,) = (tokenizer.encode_target([word]) for word in ("Hund", "Katze"))
    assert tokenizer.decode([START, PAD, *dog, PAD, END, *cat]) == "Hund"


def test_an_id_past_the_vocabulary_is_unknown(tokenizers: dict[str, Tokenizer]) -> None:
    tokenizer = tokenizers["bpe"]
    assert tokenizer.decode([10**9]) == tokenizer.decode([UNKNOWN]) == " ⁇ "
    assert tokenizer.pieces_target([10**9, -1]) == ["<unk>", "<unk>"]


def test_an_unseen_character_is_unknown_in_a_small_vocabulary(
    tokenizers: dict[str, Tokenizer],
) -> None:
    for tokenizer in tokenizers.values():
        assert UNKNOWN in tokenizer.encode_source(["Ж"])[0]


def test_pieces_spell_the_text(tokenizers: dict[str, Tokenizer]) -> None:
    tokenizer = tokenizers["character"]
    (ids,) = tokenizer.encode_source(["a dog"])
    assert tokenizer.pieces_source(ids) == ["▁", "a", "▁", "d", "o", "g"]
    assert tokenizer.pieces_target([PAD, START, END]) == ["<pad>", "<s>", "</s>"]


def test_half_a_surrogate_pair_is_refused(tokenizers: dict[str, Tokenizer]) -> None:
    with pytest.raises(TextError, match="text 2 of 2"):
        tokenizers["bpe"].encode_source(["fine", "a\ud800"])


def test_a_line_of_a_megabyte_can_be_learned_from_and_encoded(tmp_path: Path) -> None:
    source, target = text_files(tmp_path)
    long = "dog" * 350_000
    source[0].with_suffix("").write_text(long + "\n", encoding="utf-8")
    tokenizer = Tokenizer.train(
        [*source, source[0].with_suffix("")],
        target,
        kind="bpe",
        vocabulary_size=70,
        shared=True,
        source_language="en",
        target_language="de",
        seed=1,
    )
    (ids,) = tokenizer.encode_target([long])
    assert tokenizer.decode(ids) == long


@pytest.mark.parametrize("kind", ["bpe", "unigram", "character", "word"])
def test_training_twice_gives_the_same_bytes(tmp_path: Path, kind: str) -> None:
    size = {"bpe": 70, "unigram": 50, "character": 100, "word": 12}[kind]
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        trained(folder, kind=kind, vocabulary_size=size).save(folder)
    contents = [(folder / "tokenizer.model").read_bytes() for folder in folders]
    assert contents[0] == contents[1]


def test_separate_models_know_one_side_each(tmp_path: Path) -> None:
    tokenizer = trained(tmp_path, shared=False, kind="character", vocabulary_size=60)
    assert not tokenizer.shared
    assert UNKNOWN in tokenizer.encode_source(["ß"])[0]
    assert UNKNOWN not in tokenizer.encode_target(["ß"])[0]
    assert tokenizer.source_size == len(set("".join(ENGLISH)) - {"\u2585"}) + 4
    assert tokenizer.target_size == len(set("".join(GERMAN))) + 4


def test_a_word_model_keeps_the_frequent_words(tmp_path: Path) -> None:
    tokenizer = trained(tmp_path, kind="word", vocabulary_size=10, shared=False)
    assert tokenizer.decode(tokenizer.encode_target(["Hund sieht"])[0]) == "Hund sieht"


def size_named(error: HeedfulError) -> int:
    text = str(error)
    assert "\n" not in text
    return int(re.search(r"set data\.vocabulary_size=(\d+)", text)[1])


@pytest.mark.parametrize("kind", ["bpe", "unigram", "word"])
@pytest.mark.parametrize("size", [1000, 4000, 100_000])
def test_a_vocabulary_too_large_is_answered_with_the_largest_that_works(
    tmp_path: Path, kind: str, size: int
) -> None:
    with pytest.raises(TokenizerError, match="must be at most") as caught:
        trained(tmp_path, kind=kind, vocabulary_size=size)
    largest = size_named(caught.value)
    assert trained(tmp_path, kind=kind, vocabulary_size=largest).source_size == largest
    with pytest.raises(TokenizerError):
        trained(tmp_path, kind=kind, vocabulary_size=largest + 1)


@pytest.mark.parametrize("kind", ["bpe", "unigram", "character"])
def test_a_vocabulary_too_small_is_answered_with_the_smallest_that_works(
    tmp_path: Path, kind: str
) -> None:
    with pytest.raises(TokenizerError, match="must be at least") as caught:
        trained(tmp_path, kind=kind, vocabulary_size=10)
    smallest = size_named(caught.value)
    assert trained(tmp_path, kind=kind, vocabulary_size=smallest).source_size == smallest


def test_the_smallest_that_works_has_room_for_the_bytes(tmp_path: Path) -> None:
    path = tmp_path / "han.zh"
    path.write_text("".join(chr(0x4E00 + n) for n in range(4100)) + "\n", encoding="utf-8")

    def learned(size: int) -> Tokenizer:
        return Tokenizer.train(
            [path],
            [path],
            kind="bpe",
            vocabulary_size=size,
            shared=True,
            source_language="zh",
            target_language="zh",
            seed=0,
        )

    with pytest.raises(TokenizerError, match="at least 4361") as caught:
        learned(3000)
    assert learned(size_named(caught.value)).source_size == 4361


def test_the_side_whose_vocabulary_does_not_fit_is_named(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match="the de text has no more"):
        source, target = text_files(tmp_path)
        target[0].write_text("ab ab\n", encoding="utf-8")
        Tokenizer.train(
            source,
            target,
            kind="bpe",
            vocabulary_size=60,
            shared=False,
            source_language="en",
            target_language="de",
            seed=1,
        )


def test_broken_and_empty_text_is_reported_as_such(tmp_path: Path) -> None:
    bad, empty = tmp_path / "bad.en", tmp_path / "empty.en"
    bad.write_bytes(b"fine\n\xff\n")
    empty.write_bytes(b"\n\n")
    for path, words in ((bad, "bad.en must be UTF-8 text, but line 2"), (empty, "is empty")):
        with pytest.raises(TextError, match=words):
            Tokenizer.train(
                [path],
                [path],
                kind="bpe",
                vocabulary_size=100,
                shared=True,
                source_language="en",
                target_language="de",
                seed=1,
            )


def test_a_large_text_is_sampled_evenly_by_the_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subwords, "_MOST_LINES", 10)
    path = tmp_path / "numbers"
    path.write_text("".join(f"{n}\n" for n in range(1003)), encoding="utf-8")
    samples = [[int(x) for x in subwords._Sentences([path], seed)] for seed in (1, 1, 500)]
    assert samples[0] == samples[1] != samples[2]
    for sample in samples:
        assert len(sample) == 10
        assert all(90 < b - a < 110 for a, b in pairwise(sample))


def test_training_is_silent(tmp_path: Path) -> None:
    source, target = text_files(tmp_path)
    program = (
        "import sys; from pathlib import Path\n"
        "from heedful.tokenization.tokenizer import Tokenizer\n"
        "Tokenizer.train([Path(sys.argv[1])], [Path(sys.argv[2])], kind='unigram',"
        " vocabulary_size=50, shared=True, source_language='', target_language='', seed=1)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(source[0]), str(target[0])],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout == done.stderr == ""


def test_text_is_encoded_where_the_system_refuses_threads(tmp_path: Path) -> None:
    tokenizer = trained(tmp_path)
    tokenizer.save(tmp_path)
    program = """
import json, resource, sys
from pathlib import Path
from heedful.tokenization.tokenizer import Tokenizer
from heedful.errors import HeedfulError
folder = Path(sys.argv[1])
tokenizer = Tokenizer.load(folder)
pages = int(Path("/proc/self/statm").read_text().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * 4096 + (6 << 20),) * 2)
print(json.dumps(tokenizer.encode_source(["a dog sees two cats", ""])))
try:
    Tokenizer.train([folder / "text.de"], [folder / "text.de"], kind="bpe", vocabulary_size=60,
        shared=True, source_language="", target_language="", seed=1)
except HeedfulError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    encoded, refused = done.stdout.splitlines()
    assert json.loads(encoded) == tokenizer.encode_source(["a dog sees two cats", ""])
    assert "the system refuses to start them" in refused


@pytest.mark.parametrize("shared", [True, False])
def test_a_saved_tokenizer_is_the_same_when_loaded(tmp_path: Path, shared: bool) -> None:
    tokenizer = trained(tmp_path, shared=shared, kind="character")
    tokenizer.save(tmp_path)
    loaded = Tokenizer.load(tmp_path)
    assert loaded.fingerprint == tokenizer.fingerprint
    assert loaded.shared is shared
    assert (loaded.kind, loaded.source_language, loaded.target_language) == (
        "character",
        "en",
        "de",
    )
    texts = ["a dog sees", "Hund"]
    assert loaded.encode_source(texts) == tokenizer.encode_source(texts)
    assert loaded.encode_target(texts) == tokenizer.encode_target(texts)
    names = {path.name for path in tmp_path.glob("*tokenizer*")}
    models = {"tokenizer.model"} if shared else {"tokenizer.source.model", "tokenizer.target.model"}
    assert names == {"tokenizer.json", *models}


def test_fingerprints_tell_models_apart(tmp_path: Path, tokenizers: dict[str, Tokenizer]) -> None:
    separate = trained(tmp_path, shared=False, kind="character")
    prints = [tokenizer.fingerprint for tokenizer in (*tokenizers.values(), separate)]
    assert len(set(prints)) == 4


def test_loading_learns_nothing_again(
    multi30k: tuple[Tokenizer, list[str]], tmp_path: Path
) -> None:
    multi30k[0].save(tmp_path)
    spent = []
    for _ in range(5):
        start = time.process_time()
        Tokenizer.load(tmp_path)
        spent.append(time.process_time() - start)
    assert min(spent) < 2  # it takes a hundredth; learning it again would take more


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer.model"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    trained(tmp_path).save(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(RunFolderError, match=f"{name} does not exist"):
        Tokenizer.load(tmp_path)


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b[:50] + b"\xff" + b[51:]])
def test_a_damaged_model_is_noticed(tmp_path: Path, damage: Any) -> None:
    trained(tmp_path).save(tmp_path)
    model = tmp_path / "tokenizer.model"
    model.write_bytes(damage(model.read_bytes()))
    with pytest.raises(RunFolderError, match=r"tokenizer\.model must be the file"):
        Tokenizer.load(tmp_path)


# A second part of the message `trainer_spec`, which is added to the first: `unk_surface`.
UNKNOWN_SURFACE = b"\x12\x04\xe2\x02\x01\xff"


@pytest.mark.parametrize("kind", ["bpe", "character"])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(
    "damage",
    [lambda model: model.replace("ß".encode(), b"\xc3("), lambda model: model + UNKNOWN_SURFACE],
    ids=["a subword", "what is written for unknown ones"],
)
def test_a_model_that_is_no_utf8_is_refused_with_its_folder(
    tmp_path: Path, kind: str, shared: bool, damage: Any
) -> None:
    trained(tmp_path, kind=kind, shared=shared, vocabulary_size=90).save(tmp_path)
    model = tmp_path / ("tokenizer.model" if shared else "tokenizer.target.model")
    content = damage(model.read_bytes())
    assert content != model.read_bytes()
    model.write_bytes(content)
    record = json.loads((tmp_path / "tokenizer.json").read_text())
    record["sha256"][model.name] = sha256(content).hexdigest()
    (tmp_path / "tokenizer.json").write_text(json.dumps(record))
    message = f"the tokenizer in {tmp_path} cannot be used: .* sentencepiece model in UTF-8"
    with pytest.raises(TokenizerError, match=message):
        Tokenizer.load(tmp_path)


@pytest.mark.parametrize(
    "content", [b"", b"\xff", b"{", b"[" * 100_000, b"[]", b"null", b'"x"', b"{}", b"1" * 5000]
)
def test_a_record_that_is_none_is_refused(tmp_path: Path, content: bytes) -> None:
    trained(tmp_path).save(tmp_path)
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises((RunFolderError, TokenizerError), match=r"tokenizer\.json must"):
        Tokenizer.load(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "shell"},
        {"kind": ["bpe"]},
        {"shared": 1},
        {"format": 99},
        {"special_ids": {"pad": 3}},
        {"source_language": {}},
        {"sha256": []},
    ],
)
def test_a_hostile_record_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    trained(tmp_path).save(tmp_path)
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | change), "utf-8")
    with pytest.raises(TokenizerError, match=r"tokenizer\.json must have the fields"):
        Tokenizer.load(tmp_path)


def test_a_model_that_is_none_is_refused() -> None:
    for model in (b"", b"garbage", b"\x80\x04K\x01."):
        with pytest.raises(TokenizerError):
            SentencePieceModel(model, "bpe")


def test_a_model_with_other_special_ids_is_refused(tmp_path: Path) -> None:
    import io

    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(ENGLISH), model_writer=model, model_type="char", minloglevel=2
    )
    with pytest.raises(TokenizerError, match="special ids"):
        SentencePieceModel(model.getvalue(), "bpe")


def test_saving_into_no_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="No such file"):
        trained(tmp_path).save(tmp_path / "none")
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot write to"):
        trained(tmp_path).save(tmp_path / "file")
