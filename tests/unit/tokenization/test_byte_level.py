import random
import sys
import unicodedata

import pytest

from heedful.errors import TokenizerError
from heedful.tokenization.byte_level import (
    ByteLevelBpe,
    from_symbols,
    to_symbols,
    words_of_text,
)

LINES = ["the café's dogs aren't 12 years old", "  naïve déjà-vu,  isn't it? I'll we've they're"]


def theirs(merges, spaced=False):
    """The same merges in the library of Hugging Face's tokenizers, and their vocabulary."""
    from tokenizers import Tokenizer, pre_tokenizers
    from tokenizers.models import BPE

    known = dict.fromkeys(to_symbols("".join(map(chr, range(128)))))
    known |= dict.fromkeys(pre_tokenizers.ByteLevel.alphabet())
    known |= dict.fromkeys("".join(pair) for pair in merges)
    numbers = {piece: number for number, piece in enumerate(known)}
    tokenizer = Tokenizer(BPE(vocab=numbers, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=spaced)
    return tokenizer, numbers


def merges_of(lines, count):
    """Merges that the library learns from lines."""
    import json

    from tokenizers import Tokenizer, pre_tokenizers, trainers
    from tokenizers.models import BPE

    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        lines, trainers.BpeTrainer(vocab_size=256 + count, initial_alphabet=alphabet)
    )
    return [tuple(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]]


def content(merges):
    return ("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges)).encode()


def test_every_character_is_of_the_class_that_the_library_gives_it():
    from tokenizers import pre_tokenizers

    splitter = pre_tokenizers.ByteLevel(add_prefix_space=False)
    # every character that Unicode has named, and of the others, which are alike, each 61st
    named = {"Cn": 61, "Co": 61, "Cs": sys.maxunicode}
    numbers = [
        n for n in range(sys.maxunicode + 1) if n % named.get(unicodedata.category(chr(n)), 1) == 0
    ]
    for first in range(0, len(numbers), 4096):
        part = numbers[first : first + 4096]
        # after a letter, after a number and before a sign; each class joins others of them
        text = "".join(f"a{chr(n)}1{chr(n)}." for n in part)
        expected = [text[start:end] for _, (start, end) in splitter.pre_tokenize_str(text)]
        assert words_of_text(text) == expected


@pytest.mark.parametrize("spaced", [False, True])
def test_text_is_cut_as_the_library_cuts_it(spaced):
    merges = merges_of(LINES * 3, 60)
    tokenizer, numbers = theirs(merges, spaced)
    ours = ByteLevelBpe(content(merges), numbers.keys(), spaced)
    draw = random.Random(3)
    alphabet = [*"".join(LINES), *" \t\n\r\u00a0\u3000'’0٣½Ⅷé中🙂\u0301\u200b\u1c89\x1c\x00"]
    texts = [*LINES, "", " ", "  ", "a", "\t a", "'s't're'VE 'll"]
    texts += ["".join(draw.choices(alphabet, k=draw.randrange(1, 60))) for _ in range(300)]
    for text in texts:
        assert ours.cut(text) == tokenizer.encode(text).tokens, repr(text)
        if not spaced:
            assert from_symbols("".join(ours.cut(text))) == text


def test_merges_in_an_odd_order_are_done_as_in_the_library():
    merges = [*zip("baa", ["c", "b", "bc"], strict=True), ("ab", "c"), ("abc", "a")]
    draw = random.Random(4)
    for _ in range(60):
        draw.shuffle(merges)
        doubled = [*merges, merges[0]]
        tokenizer, numbers = theirs(doubled)
        ours = ByteLevelBpe(content(doubled), numbers.keys())
        for _ in range(20):
            text = "".join(draw.choices("abc", k=12))
            assert ours.cut(text) == tokenizer.encode(text).tokens


def test_a_byte_that_the_vocabulary_lacks_is_left_out_as_in_the_library():
    from tokenizers import Tokenizer, pre_tokenizers
    from tokenizers.models import BPE

    numbers, merges = {"a": 0, "b": 1, "ab": 2}, [("a", "b")]
    tokenizer = Tokenizer(BPE(vocab=numbers, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    for text in ("axb", "xyz", "ab é ba"):
        assert (
            ByteLevelBpe(content(merges), numbers.keys()).cut(text) == tokenizer.encode(text).tokens
        )


def test_half_of_a_character_is_shown_as_such():
    assert from_symbols(to_symbols("é")[:1]) == "�"
    assert from_symbols("Ġ⁇") == " ⁇"


@pytest.mark.parametrize(
    ("merges", "message"),
    [
        (b"\xff a\n", "UTF-8"),
        (b"a b c\n", "line 1 is 'a b c'"),
        (b"a b\nb  c\n", "line 2"),
        (b"#version: 0.2\na q\n", "line 2 is 'a q'"),
    ],
)
def test_damaged_merges_are_refused(merges, message):
    with pytest.raises(TokenizerError, match=message):
        ByteLevelBpe(merges, {"a", "b", "ab", "c"})


def test_a_long_line_without_a_space_takes_no_quadratic_time():
    merges = [("a", "a"), ("aa", "aa")]
    ours = ByteLevelBpe(content(merges), theirs(merges)[1].keys())
    assert ours.cut("a" * 100_003) == ["aaaa"] * 25_000 + ["aa", "a"]
