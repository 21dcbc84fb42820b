"""Every way to search, as a user meets it."""

import json
import shutil

import pytest
import torch

from heedful.errors import RunFolderError, TextError
from heedful.search.beam import beam_search
from heedful.search.ensemble import Ensemble
from heedful.search.rules import AllowedTokens
from heedful.search.settings import Sampling, SearchOptions
from heedful.tokenization.tokenizer import Tokenizer
from heedful.translation.translate import OutputFormat, translate_lines
from heedful.translation.translator import Translator
from tests.support.commands import refused

LINES = ["the dog sleeps", "", "a cat", "the big cat"]
STDIN = "".join(line + "\n" for line in LINES)
SHORT = ("--precision", "fp32", "--max-length", "12")


@pytest.fixture(scope="module")
def earlier(trained, tmp_path_factory):
    """The same run eight steps before: other weights for the same subwords."""
    folder = tmp_path_factory.mktemp("earlier") / "run"
    shutil.copytree(trained, folder, ignore=shutil.ignore_patterns("step-00000024", "best.json"))
    return folder


@pytest.fixture(scope="module")
def translator(trained):
    return Translator.load(trained, precision="fp32")


def entries(done):
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def write(path, *lines):
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def test_a_search_may_stop_before_nothing_better_can_come(heedful_cli, trained, translator):
    expected = translator.translate(
        LINES, max_length="12", stop="when-beam-finished", length_penalty="power:1"
    )
    options = ("--length-penalty", "power:1", "--format", "jsonl")
    early = entries(
        heedful_cli(
            "translate", trained, *SHORT, *options, "--stop", "when-beam-finished", stdin=STDIN
        )
    )
    assert [entry["text"] for entry in early] == [one.text for one in expected]
    late = entries(heedful_cli("translate", trained, *SHORT, *options, stdin=STDIN))
    # what stops when nothing can win finds the best of what both have seen
    assert all(
        one["score"] >= other["score"] - 1e-5 for one, other in zip(late, early, strict=True)
    )
    wrong = heedful_cli("translate", trained, "--stop", "soon", stdin=STDIN)
    assert wrong.returncode == 2
    assert "--stop must be" in wrong.stderr


def test_several_runs_translate_as_the_mean_of_their_probabilities(
    heedful_cli, trained, earlier, translator
):
    both = Translator.load([trained, earlier], precision="fp32")
    other = Translator.load(earlier, precision="fp32")
    ids = translator.tokenizer.encode_source(["the dog sleeps"])
    ((expected,),) = beam_search(
        Ensemble([translator.model, other.model]),
        translator.collator.source(ids),
        [12],
        SearchOptions(length_penalty="gnmt:0.6"),
        rules=[AllowedTokens(translator.tokenizer.target_size, (0, 2))],
    )
    done = heedful_cli("translate", trained, earlier, *SHORT, "--format", "jsonl", stdin=STDIN)
    found = entries(done)
    assert found[0]["score"] == pytest.approx(expected.score, abs=1e-4)
    assert found[0]["text"] == translator.tokenizer.decode(expected.tokens)
    assert found[1]["text"] == ""
    alone = [translator.translate(LINES, max_length="12"), other.translate(LINES, max_length="12")]
    assert all(one[0].score != pytest.approx(found[0]["score"], abs=1e-4) for one in alone)

    pairs = (["the dog", "a cat"], ["le chien", "un chat"])
    members = [translator.score(*pairs), other.score(*pairs)]
    for mean, first, second in zip(both.score(*pairs), *members, strict=True):
        expected = torch.tensor([first, second]).exp().mean(0).log()
        assert mean == pytest.approx(expected.tolist(), abs=1e-4)
    shown = both.attend("the dog", "le chien").cross
    assert (shown == translator.attend("the dog", "le chien").cross).all()


def test_runs_with_other_subwords_are_no_ensemble(trained, text, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(trained / "config.json", other)
    Tokenizer.train(
        [text / "train.en"],
        [text / "train.fr"],
        kind="bpe",
        vocabulary_size=300,
        shared=True,
        source_language="en",
        target_language="fr",
        seed=1,
        threads=1,
    ).save(other)
    with pytest.raises(RunFolderError, match="same subwords") as caught:
        Translator.load([trained, other])
    assert all(str(run) in str(caught.value) for run in (trained, other))
    with pytest.raises(RunFolderError, match="at least one"):
        Translator.load([])


def test_samples_depend_on_seed_and_line_alone(heedful_cli, trained, translator):
    options = ("--sample", "--temperature", 0.8, "--top-k", 50, "--top-p", 0.9, "--seed", 7)
    layout = ("--n-best", 3, "--format", "jsonl")
    done = heedful_cli("translate", trained, *SHORT, *options, *layout, stdin=STDIN)
    found = [
        [entry["text"], *(other["text"] for other in entry["alternatives"])]
        for entry in entries(done)
    ]
    assert found[1] == [""]
    assert all(len(set(texts)) == 3 for texts in (found[0], found[2], found[3]))
    sampling = Sampling(0.8, 50, 0.9, seed=7)
    for number, line in enumerate(LINES, start=1):
        (single,) = translator.translate(
            [line], n_best=2, sample=sampling, max_length="12", first_line=number
        )
        assert [single.text, *(a.text for a in single.alternatives)] == found[number - 1][:2]
    elsewhere = translator.translate([LINES[0]], sample=sampling, max_length="12", first_line=3)
    assert elsewhere[0].text != found[0][0]


def test_files_say_what_each_translation_is_like(heedful_cli, trained, translator, tmp_path):
    plain = translator.translate(LINES, max_length="12", beam=6)
    habit = translator.tokenizer.encode_target([plain[3].text])[0][:1]
    files = {
        "--target-prefix": ("le petit", "", "", " une souris "),
        "--force-phrases": ("chien\tchat rouge", "chien", "", ""),
        "--avoid-phrases": ("", "", "", translator.tokenizer.decode(habit)),
    }
    options = [
        part
        for name, lines in files.items()
        for part in (name, write(tmp_path / name.strip("-"), *lines))
    ]
    fixed = (*SHORT, "--no-repeat-ngram", 1, "--beam", 6, "--format", "jsonl")
    found = entries(heedful_cli("translate", trained, *fixed, *options, stdin=STDIN))
    assert found[0]["text"].startswith("le petit")
    assert "chien" in found[0]["text"]
    assert "chat rouge" in found[0]["text"]
    assert found[1]["text"] == ""
    assert (
        found[2]["text"]
        == translator.translate([LINES[2]], max_length="12", beam=6, no_repeat_ngram=1)[0].text
    )
    assert found[3]["text"].startswith("une souris")
    (piece,) = translator.tokenizer.pieces_target(habit)
    assert piece in plain[3].tokens
    assert piece not in found[3]["tokens"]
    for entry in found:
        assert len(set(entry["tokens"])) == len(entry["tokens"])


def test_phrases_without_room_are_reported_with_their_line(translator):
    told, phrases = [], [["chat"], [], ["un grand chien rouge et une souris"], []]
    translator.translate(
        LINES, max_length="3", force_phrases=phrases, first_line=11, warn=told.append
    )
    assert any("line 13" in text and "“un grand chien rouge" in text for text in told)
    assert not any("line 12" in text or "line 14" in text for text in told)


def test_groups_of_the_beam_differ(heedful_cli, trained, translator):
    layout = ("--n-best", 4, "--format", "jsonl", "--beam", 4)
    options = ("--diverse-groups", 4, "--diversity-strength", 20)
    done = heedful_cli("translate", trained, *SHORT, *options, *layout, stdin="the dog sleeps\n")
    (entry,) = entries(done)
    (plain,) = translator.translate(["the dog sleeps"], n_best=4, max_length="12")
    begun = [one["tokens"][0] for one in (entry, *entry["alternatives"]) if one["tokens"]]
    assert len(set(begun)) == len(begun) >= 3
    assert len({one.tokens[0] for one in (plain, *plain.alternatives)}) < len(begun)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--sample", "--beam", "4"), "sampling draws"),
        (("--sample", "--diverse-groups", "2"), "sampling draws"),
        (("--sample", "--top-p", "2"), "top-p must be"),
        (("--sample", "--force-phrases", "FILE"), "force-phrases groups"),
        (("--diverse-groups", "2", "--force-phrases", "FILE"), "force-phrases groups"),
        (("--diversity-strength", "1"), "there is only one group"),
    ],
)
def test_what_cannot_go_together_is_refused_before_anything_is_loaded(
    heedful_cli, tmp_path, options, told
):
    file = write(tmp_path / "file", "chien")
    options = [file if option == "FILE" else option for option in options]
    # there is no such run: whoever looked for it would complain of that
    refused(heedful_cli("translate", tmp_path / "no-run", *options, stdin=STDIN), told)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("translate", "no-run", "--max-length", ""), "a length limit must be"),
        (("translate", "no-run", "--length-penalty", ""), "a length penalty must be"),
        (("translate", "no-run", "--min-length", "9" * 40), "must be a number below 2**64"),
        (("serve", "no-run", "--beam", "10001"), "beam must be at most 10,000"),
        (("serve", "no-run", "--max-beam", "10001"), "beam must be at most 10,000"),
    ],
)
def test_values_that_no_search_can_have_are_refused_before_anything_is_loaded(
    heedful_cli, command, told
):
    refused(heedful_cli(*command, stdin=STDIN), told)


def test_details_of_sampling_need_sampling(heedful_cli, tmp_path):
    done = heedful_cli("translate", tmp_path / "no-run", "--top-k", "5", stdin=STDIN)
    assert done.returncode == 2
    assert "--top-k" in done.stderr
    assert "add --sample or --mbr" in done.stderr


def test_files_of_another_length_are_an_error_after_the_lines_that_they_have(translator, tmp_path):
    beside = {"target_prefix": write(tmp_path / "p", "le", "la")}
    with (tmp_path / "out").open("w") as output, pytest.raises(TextError) as caught:
        translate_lines(
            translator,
            LINES,
            output,
            OutputFormat(),
            print,
            SearchOptions(max_length="9"),
            name="in.en",
            side_files=beside,
        )
    assert "has 2 and in.en has more" in str(caught.value)
    found = (tmp_path / "out").read_text().splitlines()
    assert len(found) == 2
    assert found[0].startswith("le")


def test_lists_of_another_length_and_prefixes_without_room_are_refused(translator):
    with pytest.raises(TextError, match="target_prefix must have one entry for each line"):
        translator.translate(LINES, target_prefix=["le"])
    with pytest.raises(TextError, match="the prefix of line 13 must have at most 2 subwords"):
        translator.translate(
            LINES, target_prefix=["", "", "un chat rouge", ""], max_length="2", first_line=11
        )


def test_what_the_tokenizer_cannot_spell_is_reported(translator):
    told = []
    translator.translate(
        ["a cat"], target_prefix=["漢字"], max_length="12", first_line=5, warn=told.append
    )
    assert any("line 5" in text and "⁇" in text for text in told)
