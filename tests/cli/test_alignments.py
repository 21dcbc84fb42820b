"""Alignments, unknown words and forced decoding as a user meets them."""

import json

import numpy as np
import pytest

from heedful.alignment.links import GoldLinks, count_links, read_gold, write_gold
from heedful.errors import TextError
from heedful.text.corpus import Corpus
from heedful.translation.score import format_pair, gold_lines, score
from heedful.translation.translate import OutputFormat
from heedful.translation.translator import Translator
from tests.support.commands import train_arguments

SENTENCES = ["the dog sleeps", "", "a cat", "the beautiful small blue horse does not see the owl"]


@pytest.fixture(scope="module")
def translator(trained):
    return Translator.load(trained, precision="fp32", device="cpu")


def one_by_one(found):
    """Link each target word to a source word, one number at a time; the slow twin."""
    shares = found.cross[-1].mean(axis=0)
    source = np.cumsum([piece.startswith("▁") for piece in found.source_tokens]) - 1
    target = np.cumsum([piece.startswith("▁") for piece in found.target_tokens]) - 1
    links = set()
    for word in range(target[-1] + 1):
        sums = [0.0] * (source[-1] + 1)
        for row in range(len(target) - 1):
            for column in range(len(source) - 1):
                sums[source[column]] += shares[row, column] * (target[row] == word)
        links.add((int(np.argmax(sums)), word))
    return links


def test_pairs_together_are_aligned_as_each_alone(grammar, translator):
    held_out = grammar[1][:12]
    sources, targets = [pair.source for pair in held_out], [pair.target for pair in held_out]
    together = translator.align(sources, targets)
    crosses = dict(translator.aligner.cross(*translator.aligner.pair_ids(sources, targets)))
    for number, (pair, alignment) in enumerate(zip(held_out, together, strict=True)):
        assert alignment.source_words == tuple(pair.source.split())
        assert alignment.target_words == tuple(pair.target.split())
        alone = translator.attend(pair.source, pair.target)
        np.testing.assert_allclose(crosses[number], alone.cross[..., :-1], atol=1e-5)
        assert set(alignment.links) == one_by_one(alone)


def test_layers_are_rated_as_their_links_are_counted(grammar, translator):
    held_out = grammar[1][:8]
    sources, targets = [pair.source for pair in held_out], [pair.target for pair in held_out]
    gold = [GoldLinks(pair.sure, pair.possible) for pair in held_out]
    rated = translator.aligner.rate(sources, targets, gold)
    assert {str(way) for way in rated} == {"layer=1", "layer=2", "layer=1,shift", "layer=2,shift"}
    for way, counts in rated.items():
        for one, links in zip(translator.align(sources, targets, str(way)), gold, strict=True):
            assert one.links
            counts = counts + count_links(frozenset(one.links), links)
        assert counts.predicted == 2 * rated[way].predicted
        assert counts.error_rate == pytest.approx(rated[way].error_rate)
    rates = [counts.error_rate for counts in rated.values()]
    assert rates == sorted(rates)
    far = [GoldLinks(frozenset({(0, 99)}), frozenset({(0, 99)})), *gold[1:]]
    with pytest.raises(TextError, match="pair 1 has 4 and 4 words and links up to 0 and 99"):
        translator.aligner.rate(sources, targets, far)


def written(translator, layout, **options):
    """Translate and write as the command does, without starting a process."""
    found = translator.translate(SENTENCES, n_best=layout.n_best, alignments=True, **options)
    return [line for number, each in enumerate(found) for line in layout.lines(number, each)]


OUTPUT = {"max_length": "9", "length_penalty": "power:1.5"}


def test_translations_come_with_their_links(translator):
    lines = written(translator, OutputFormat(alignments=True, scores=True), **OUTPUT)
    entries = written(translator, OutputFormat("jsonl"), **OUTPUT)
    for line, entry, source in zip(lines, map(json.loads, entries), SENTENCES, strict=True):
        score, target, links = line.split("\t")
        assert entry["text"] == target
        assert entry["score"] == pytest.approx(float(score), abs=1e-6)
        assert entry["source_words"] == source.split()
        assert " ".join(entry["target_words"]) == target
        assert {tuple(link) for link in entry["alignment"]} == read_gold(links).sure
        if source:
            found = translator.translate([source], attention=True, **OUTPUT)[0].attention
            assert read_gold(links).sure == one_by_one(found)
    assert len(read_gold(lines[3].split("\t")[2]).sure) >= 2


def test_every_one_of_several_translations_has_its_own_links(translator):
    lines = written(translator, OutputFormat(n_best=3, alignments=True), **OUTPUT)
    entries = written(translator, OutputFormat("jsonl", n_best=3), **OUTPUT)
    flat = []
    for number, entry in enumerate(map(json.loads, entries)):
        flat += [(number, SENTENCES[number], each) for each in (entry, *entry["alternatives"])]
    assert len(lines) == len(flat) == 10
    for line, (number, source, entry) in zip(lines, flat, strict=True):
        first, text, _, links = line.split(" ||| ")
        assert (int(first), text) == (number, entry["text"])
        assert {tuple(link) for link in entry["alignment"]} == read_gold(links).sure
        assert {target for _, target in read_gold(links).sure} == set(range(len(text.split())))
        # The search may write a text in other subwords than it would be read in.
        (ids,) = translator.tokenizer.encode_target([text])
        if source and translator.tokenizer.pieces_target(ids) == entry["tokens"]:
            assert read_gold(links).sure == one_by_one(translator.attend(source, text))


def test_links_come_only_where_they_were_asked_for(translator):
    by = "layer=1,threshold=0.1"
    soft = translator.translate(SENTENCES, alignments=True, align_by=by, **OUTPUT)
    assert len(soft[3].alignment.links) > len(soft[3].alignment.target_words)
    plain = translator.translate(SENTENCES, n_best=2, **OUTPUT)
    assert plain[0].alignment is None
    known = {"dog": "chien"}
    assert translator.translate(SENTENCES, n_best=2, replace_unknown=known, **OUTPUT) == plain


def test_given_pairs_are_scored_with_tokens_ranks_and_links(heedful_cli, trained, translator, text):
    files = text / "valid.en", text / "valid.fr"
    sources, targets = (file.read_text(encoding="utf-8").splitlines() for file in files)
    options = ("--normalize", "--alignments", "--precision", "fp32")
    done = heedful_cli("score", trained, "--source", files[0], "--target", files[1], *options)
    plain = score(translator, pairs=zip(sources, targets, strict=True))
    pairs = score(translator, *files, ranks=True, alignments=True)
    entries = (json.loads(format_pair(*pair, "jsonl")) for pair in enumerate(pairs))
    for number, (total, line, entry) in enumerate(
        zip(plain, done.stdout.splitlines(), entries, strict=True)
    ):
        mean, links = line.split("\t")
        each = entry["log_probabilities"]
        assert total.log_probability == pytest.approx(sum(each), abs=1e-5)
        assert (total.ranks, total.alignment) == (None, None)
        assert float(mean) == pytest.approx(sum(each) / len(each), abs=1e-5)
        assert entry["mean"] == pytest.approx(float(mean), abs=1e-5)
        assert "".join(entry["tokens"]).replace("▁", " ") == f" {targets[number]}</s>"
        assert len(entry["ranks"]) == len(each)
        # Whatever has more than half of the probability is the first.
        assert all(rank == 1 for rank, log in zip(entry["ranks"], each, strict=True) if log > -0.69)
        assert {tuple(link) for link in entry["alignment"]} == read_gold(links).sure
        assert entry["source_words"] == sources[number].split()
    assert number == len(sources) - 1


def test_gold_links_rate_every_layer(heedful_cli, grammar, trained, translator, tmp_path, text):
    held_out = grammar[1]
    gold = tmp_path / "valid.links"
    lines = (write_gold(GoldLinks(pair.sure, pair.possible)) for pair in held_out)
    gold.write_text("".join(line + "\n" for line in lines))
    files = text / "valid.en", text / "valid.fr"
    done = heedful_cli(
        *("score", trained, "--source", files[0], "--target", files[1], "--gold", gold),
        *("--precision", "fp32"),
    )
    corpus = Corpus(files[:1], files[1:])
    entries = gold_lines(translator, corpus, gold, "jsonl")
    for line, entry in zip(done.stdout.splitlines(), map(json.loads, entries), strict=True):
        assert line.split()[0] == entry["align_by"]
        assert float(line.split()[2]) == pytest.approx(entry["error_rate"], abs=5e-4)
    gold.write_text("0-0\n" * 39)
    with pytest.raises(TextError, match=r"40 pairs and .* has 39 lines"):
        next(gold_lines(translator, corpus, gold))
    gold.write_text("0-0\n" * 39 + "0:0\n")
    with pytest.raises(TextError, match=r"valid\.links, line 40 must contain links"):
        next(gold_lines(translator, corpus, gold))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--gold", "links", "--alignments"), "--alignments has no effect with --gold"),
        (("--gold", "links", "--normalize"), "--normalize has no effect with --gold"),
        (("--normalize", "--format", "jsonl"), "--normalize needs --format text"),
    ],
)
def test_options_of_score_without_effect_are_refused(heedful_cli, trained, text, options, message):
    files = ("--source", text / "valid.en", "--target", text / "valid.fr")
    done = heedful_cli("score", trained, *files, *options)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_layer_that_is_not_there_touches_no_output(heedful_cli, trained, tmp_path):
    (tmp_path / "good").write_text("kept\n")
    options = ("--output", tmp_path / "good", "--alignments", "--align-by", "layer=7")
    done = heedful_cli("translate", trained, *options, stdin="the dog\n")
    assert done.returncode == 2
    assert "from 1 to 2" in done.stderr
    assert (tmp_path / "good").read_text() == "kept\n"


@pytest.fixture(scope="module")
def words(heedful_cli, text, tmp_path_factory):
    """A run with so few words that it writes unknown ones."""
    out = tmp_path_factory.mktemp("words") / "run"
    settings = ("data.subwords=word", "data.vocabulary_size=60", "data.shared_vocabulary=false")
    arguments = train_arguments(
        text, out, *settings, "model.tie_embeddings=output", "train.precision=fp32", validate=False
    )
    done = heedful_cli(*arguments)
    assert done.returncode == 0, done.stderr
    return out


def test_unknown_words_are_replaced(heedful_cli, words, tmp_path):
    lines = ["the dog sees an owl", "", "my zebra herd sleeps", "the big red apple"]
    translator = Translator.load(words, precision="fp32", device="cpu")
    options = {"alignments": True, "max_length": "6", "length_penalty": "power:1.5"}
    before = translator.translate(lines, **options)
    after = translator.translate(lines, replace_unknown=True, **options)
    assert sum(translation.text.count("⁇") for translation in before) >= 3
    for line, plain, found in zip(lines, before, after, strict=True):
        expected = []
        for number, word in enumerate(plain.alignment.target_words):
            linked = [line.split()[i] for i, j in plain.alignment.links if j == number]
            expected += linked if word == "⁇" else [word]
        assert tuple(found.text.split()) == found.alignment.target_words == tuple(expected)
        assert {j for _, j in found.alignment.links} == set(range(len(expected)))
        assert found.tokens == plain.tokens
    dictionary = tmp_path / "words.tsv"
    known = sorted({word for line in lines for word in line.split()} - {"zebra"})
    dictionary.write_text("".join(f"{word}\t{word.upper()}\n" for word in known))
    shown = ("--precision", "fp32", "--max-length", 6, "--length-penalty", "power:1.5")
    done = heedful_cli(
        *("translate", words, "--dictionary", dictionary, *shown),
        stdin="".join(line + "\n" for line in lines),
    )
    assert done.returncode == 0, done.stderr
    for plain, line in zip(after, done.stdout.splitlines(), strict=True):
        assert line.lower() == plain.text.lower()
        for old, new in zip(plain.text.split(), line.split(), strict=True):
            assert new == (old.upper() if old in known else old)
