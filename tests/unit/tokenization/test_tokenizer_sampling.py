import gzip
import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from heedful.data.toy_grammar.corpus import split_pairs
from heedful.errors import TextError, TokenizerError
from heedful.tokenization.from_files import tokenizer_from_files
from heedful.tokenization.tokenizer import UNKNOWN, Tokenizer

TEXT = ["the big red dog sees the small blue cat", "a dog  sees two cats", "houses & häuser ", " "]


LEARNED_FROM = [pair[0] for pair in split_pairs(600, 1, seed=1)[0]] + TEXT * 5


def learned(folder: Path, kind: str, size: int, lines: list[str] = LEARNED_FROM) -> Tokenizer:
    path = folder / "text.en"
    text = "".join(f"{line}\n" for line in lines)
    path.write_text(text, encoding="utf-8")
    return Tokenizer.train(
        [path],
        [path],
        kind=kind,
        vocabulary_size=size,
        shared=True,
        source_language="en",
        target_language="en",
        seed=1,
    )


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tokenizer]:
    folder = tmp_path_factory.mktemp("sampling")
    codes = folder / "codes"
    codes.write_text(
        "#version: 0.2\nt h\nth e</w>\nd o\ndo g</w>\nc a\nca t\ncat s</w>\ns e\nse e\nsee s</w>\n",
        encoding="utf-8",
    )
    made = {"bpe": learned(folder, "bpe", 150), "unigram": learned(folder, "unigram", 90)}
    path = [folder / "text.en"]
    languages = {"source_language": "en", "target_language": "en"}
    made["codes"] = tokenizer_from_files(
        codes, path, path, vocabulary_size=500, shared=True, complete=True, **languages
    )
    return made


@pytest.mark.parametrize("kind", ["bpe", "unigram", "codes"])
def test_sampled_subwords_spell_the_same_text(tokenizers: dict[str, Tokenizer], kind: str) -> None:
    tokenizer, generator = tokenizers[kind], Random(1)
    lines = [" ".join(line.split()) for line in TEXT]
    seen = set()
    for _ in range(50):
        ids = tokenizer.encode_target(lines, 0.4, generator)
        assert [tokenizer.decode(row) for row in ids] == lines
        assert not any(UNKNOWN in row for row in ids)
        seen.add(tuple(ids[0]))
    assert len(seen) > 5


@pytest.mark.parametrize("kind", ["bpe", "unigram", "codes"])
def test_the_same_seed_gives_the_same_subwords_and_no_sampling_the_usual_ones(
    tokenizers: dict[str, Tokenizer], kind: str
) -> None:
    tokenizer = tokenizers[kind]
    drawn = [tokenizer.encode_source(TEXT, 0.3, Random(seed)) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert tokenizer.encode_source(TEXT, 0.0, Random(1)) == tokenizer.encode_source(TEXT)
    assert tokenizer.encode_source(TEXT * 9, 0.3) != tokenizer.encode_source(TEXT * 9, 0.3)
    assert tokenizer.encode_source(["", " "], 0.3)[0] == []


@pytest.mark.parametrize(
    ("kind", "rates"), [("bpe", (0.0, 0.1, 0.3, 0.7)), ("codes", (0.0, 0.2, 0.8))]
)
def test_more_dropout_gives_more_subwords(
    tokenizers: dict[str, Tokenizer], kind: str, rates: tuple[float, ...]
) -> None:
    counts = [
        sum(map(len, tokenizers[kind].encode_source(TEXT * 50, rate, Random(1)))) for rate in rates
    ]
    assert all(a < b for a, b in pairwise(counts)), counts


def test_a_smaller_alpha_gives_more_subwords(tokenizers: dict[str, Tokenizer]) -> None:
    counts = [
        sum(map(len, tokenizers["unigram"].encode_source(TEXT * 50, alpha, Random(1))))
        for alpha in (0.9, 0.3, 0.01)
    ]
    assert all(a < b for a, b in pairwise(counts)), counts


def test_real_text_is_cut_as_sentencepiece_cuts_it_when_nothing_is_left_to_chance(
    corpora: Path, tmp_path: Path
) -> None:
    with gzip.open(corpora / "multi30k/raw/val.de.gz", "rt", encoding="utf-8") as file:
        lines = [*file.read().split("\n"), "x  ЖЖ  日\u2581y  ", "Ж"]
    for kind, size, rate in (("bpe", 900, 0.0), ("unigram", 900, 300.0), ("bpe", 4000, 0.0)):
        (model,) = learned(tmp_path, kind, size, lines[:-2])._models
        some = lines[-300:]
        differing = [
            line
            for line, plain, sampled in zip(
                some, model.encode(some), model.sample(some, rate, Random(1)), strict=True
            )
            if plain != sampled
        ]
        assert len(differing) <= (3 if kind == "unigram" else 0), differing  # ties


@pytest.mark.parametrize("kind", ["character", "word"])
def test_there_is_nothing_to_sample_in_characters_and_words(tmp_path: Path, kind: str) -> None:
    tokenizer = learned(tmp_path, kind, 60 if kind == "character" else 30)
    with pytest.raises(TokenizerError, match=f"of kind {kind}; set data.subword_sampling=0"):
        tokenizer.encode_source(TEXT, 0.1)
    assert tokenizer.encode_source(TEXT, 0.0) == tokenizer.encode_source(TEXT)


def test_half_a_character_is_refused_here_too(tokenizers: dict[str, Tokenizer]) -> None:
    for tokenizer in tokenizers.values():
        with pytest.raises(TextError, match="text 2 of 2"):
            tokenizer.encode_source(["fine", "a\ud800"], 0.1)


def test_subwords_that_reach_over_a_space_cannot_be_sampled(tmp_path: Path) -> None:
    import io

    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["good day to you"] * 20),
        model_writer=model,
        model_type="bpe",
        vocab_size=30,
        split_by_whitespace=False,
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=3,
        minloglevel=2,
    )
    (tmp_path / "over.model").write_bytes(model.getvalue())
    tokenizer = tokenizer_from_files(
        tmp_path / "over.model",
        [],
        [],
        vocabulary_size=30,
        shared=True,
        source_language="",
        target_language="",
    )
    with pytest.raises(TokenizerError, match="cross a space"):
        tokenizer.encode_source(["good day"], 0.1)


PROGRAM = """
import json, sys
from pathlib import Path
from random import Random
from heedful.tokenization.tokenizer import Tokenizer
tokenizer = Tokenizer.load(Path(sys.argv[1]))
if sys.argv[3] == "warm":
    tokenizer.encode_source(["other text came before", "and more"] * 50, 0.5, Random(9))
generator = Random(int(sys.argv[2]))
lines = json.loads(sys.argv[4])
ids = tokenizer.encode_source(lines, 0.3, generator)
print(json.dumps(ids + tokenizer.encode_target(lines, 0.3, generator)))
"""


@pytest.mark.parametrize("kind", ["bpe", "unigram", "codes"])
def test_another_process_draws_the_same(
    tokenizers: dict[str, Tokenizer], kind: str, tmp_path: Path
) -> None:
    tokenizers[kind].save(tmp_path)

    def drawn(seed: int, before: str) -> list[list[int]]:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, tmp_path, str(seed), before, json.dumps(TEXT * 5)],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        return json.loads(done.stdout)

    generator = Random(7)
    here = [
        *tokenizers[kind].encode_source(TEXT * 5, 0.3, generator),
        *tokenizers[kind].encode_target(TEXT * 5, 0.3, generator),
    ]
    assert drawn(7, "warm") == here
    if kind == "bpe":
        assert drawn(8, "cold") != here
