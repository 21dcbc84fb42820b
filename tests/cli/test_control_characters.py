"""Translations whose subwords spell control characters: written so that every reader takes them."""

import json
import random
import re

import pytest

from heedful.text.corpus import Corpus, one_file, read_lines
from heedful.tokenization.tokenizer import Tokenizer
from heedful.translation.aligner import segment_ids
from heedful.translation.result import decoded_translation
from heedful.translation.translator import Translator

SAMPLED = ("--sample", "--temperature", 9, "--max-length", 80)
REPLACED = re.compile(r"the model wrote control characters or line breaks \(([\d,]+) in ")
LINES = 25


@pytest.fixture(scope="module")
def untrained(heedful_cli, tmp_path_factory):
    """A run of which every subword is as probable as any other, bytes among them."""
    folder = tmp_path_factory.mktemp("bytes")
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(4000)]
    for language in ("en", "fr"):
        text = "".join(f"{' '.join(draw.choices(words, k=8))}\n" for _ in range(800))
        (folder / f"train.{language}").write_text(text, encoding="utf-8")
    settings = ("data.vocabulary_size=4000", "train.steps=1", "train.validate_steps=none")
    done = heedful_cli(
        *("train", "tiny", "--source", folder / "train.en", "--target", folder / "train.fr"),
        *("--out", folder / "run", "--device", "cpu"),
        *(part for setting in settings for part in ("--set", setting)),
    )
    assert done.returncode == 0, done.stderr
    lines = (folder / "train.en").read_text(encoding="utf-8").split("\n")[:LINES]
    (folder / "input.en").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def write(heedful_cli, folder, *options):
    """Sample translations; return the text as it was written, and how many were replaced."""
    done = heedful_cli(
        *("translate", folder / "run", "--input", folder / "input.en", *SAMPLED, *options)
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, int(REPLACED.search(done.stderr)[1].replace(",", ""))


def test_sampled_text_is_read_as_it_was_written(heedful_cli, untrained, tmp_path):
    path = tmp_path / "sampled.fr"
    _, replaced = write(heedful_cli, untrained, "--output", path)
    assert replaced > 10
    lines = list(read_lines(one_file(path)))
    assert "".join(f"{line}\n" for line in lines) == path.read_bytes().decode()
    assert len(lines) == len(path.read_text(encoding="utf-8").splitlines()) == LINES
    assert len(list(Corpus([untrained / "input.en"], [path]).pairs())) == LINES
    done = heedful_cli("evaluate", "--hypothesis", path, "--reference", path, "--language", "fr")
    assert done.returncode == 0, done.stderr
    # Back-translation: what was sampled is the source of the next training.
    done = heedful_cli(
        *("train", "tiny", "--source", path, "--target", untrained / "input.en", "--dry-run"),
        *("--set", "data.vocabulary_size=150", "--set", "data.max_length=700", "--device", "cpu"),
    )
    assert done.returncode == 0, done.stderr


def test_lists_and_fields_keep_their_places(heedful_cli, untrained):
    written, replaced = write(heedful_cli, untrained, "--n-best", 4)
    assert replaced > 10
    assert written.splitlines() == written.split("\n")[:-1]
    assert [line.split(" ||| ")[0] for line in written.splitlines()] == [
        str(number) for number in range(LINES) for _ in range(4)
    ]
    written, _ = write(heedful_cli, untrained, "--scores", "--alignments")
    for line in written.split("\n")[:-1]:
        _, text, links = line.split("\t")
        last = max((int(link.split("-")[1]) for link in links.split()), default=-1)
        assert last < len([word for word in text.split(" ") if word])


def test_objects_hold_the_same_text(heedful_cli, untrained):
    written, replaced = write(heedful_cli, untrained, "--format", "jsonl", "--alignments")
    entries = [json.loads(line) for line in written.splitlines()]
    assert [entry["line"] for entry in entries] == list(range(LINES))
    plain, again = write(heedful_cli, untrained)
    assert [entry["text"] for entry in entries] == plain.split("\n")[:-1]
    assert again == replaced
    for entry in entries:
        text = re.sub(" ?⁇ ?", "⁇", entry["text"])  # an unknown symbol stays in its word
        assert entry["target_words"] == [word for word in re.split("[ \t]", text) if word]


def test_any_characters_of_a_translation_are_one_line(untrained):
    tokenizer = Translator.load(untrained / "run", threads=1).tokenizer
    assert isinstance(tokenizer, Tokenizer)
    pieces = tokenizer.pieces_target(range(tokenizer.target_size))
    numbers = {piece: number for number, piece in enumerate(pieces)}
    odd = "\0\x07\n\x0b\x0c\r\x1b\x1c\x1d\x1e\x7f\x85\x9f\u2028\u2029\ufeff"
    for text, words in (("a\r\nb", ["a", "b"]), (f"a{odd}", ["a"]), (odd, []), ("\ufeffa", ["a"])):
        ids = [numbers[f"<0x{byte:02X}>"] for byte in text.encode()]
        assert tokenizer.decode(ids) == text
        translation = decoded_translation(tokenizer, ids, 0.0, 0.0, ())
        assert translation.text == "".join(" " if c in odd else c for c in text)
        assert translation.replaced_controls == sum(c in odd for c in text)
        assert segment_ids(tokenizer, ids).words == words == translation.text.split()
