import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
import sentencepiece

from heedful.tokenization.lattice import Lattice
from heedful.tokenization.sentencepiece_model import SentencePieceModel
from heedful.tokenization.train import learn_subwords

SCORES = {"a": -1.0, "b": -2.0, "c": -2.5, "ab": -2.0, "bc": -3.5, "abc": -4.0, "ca": -9.0}


def segmentations(word: str, pieces: dict[str, float]) -> Iterator[tuple[str, ...]]:
    if not word:
        yield ()
    for end in range(1, len(word) + 1):
        if word[:end] in pieces:
            yield from ((word[:end], *rest) for rest in segmentations(word[end:], pieces))


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_every_segmentation_comes_as_often_as_its_probability_says(alpha: float) -> None:
    word, draws, generator = "abcab", 20_000, Random(1)
    weights = {
        found: math.exp(alpha * sum(SCORES[piece] for piece in found))
        for found in segmentations(word, SCORES)
    }
    assert len(weights) == 10
    lattice = Lattice(SCORES, alpha)
    counts = Counter(tuple(lattice.sample(word, generator)) for _ in range(draws))
    assert counts.keys() <= weights.keys()
    for found, weight in weights.items():
        share = weight / sum(weights.values())
        assert abs(counts[found] - draws * share) <= 5 * math.sqrt(draws * share) + 1, found


def test_an_unknown_character_stands_alone_and_long_words_do_no_harm() -> None:
    lattice = Lattice(SCORES, 1.0)
    assert lattice.sample("é", Random(1)) == ["é"]
    assert "é" in lattice.sample("abéab", Random(1))
    long = "abc" * 5000
    assert "".join(lattice.sample(long, Random(1))) == long


def test_the_distribution_is_that_of_sentencepiece(tmp_path: Path) -> None:
    # Its own draws cannot be repeated, so the bound is one that chance alone never crosses.
    path = tmp_path / "text.en"
    path.write_text("abcab cabc abba cab bacab abc\n" * 50, encoding="utf-8")
    content = learn_subwords([path], "text", kind="unigram", vocabulary_size=13, seed=1, threads=1)
    processor = sentencepiece.SentencePieceProcessor()
    processor.load_from_serialized_proto(content)
    draws, lines = 20_000, ["abcab cab"] * 20_000
    theirs = Counter(
        map(tuple, processor.encode(lines, enable_sampling=True, alpha=0.4, nbest_size=-1))
    )
    ours = Counter(map(tuple, SentencePieceModel(content, "unigram").sample(lines, 0.4, Random(1))))
    assert len(ours) > 10
    for ids in ours.keys() | theirs.keys():
        spread = math.sqrt(ours[ids] + theirs[ids])
        assert abs(ours[ids] - theirs[ids]) <= 7 * spread + 1, ids
    assert sum(ours.values()) == draws
