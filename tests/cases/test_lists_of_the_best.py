"""A list of the best translations repeats a text, is too short, or has its separator inside."""

import json
from collections import Counter

import pytest

TEXT = "the big red dog\n\nshe bought a flower\na\n"


def entries(output):
    return [line.split(" ||| ") for line in output.splitlines()]


@pytest.mark.parametrize(
    "options",
    [("--n-best", 6), ("--n-best", 9, "--beam", 3), ("--n-best", 8, "--diverse-groups", 4)],
)
def test_no_text_comes_twice_and_no_line_has_more_than_its_entries(heedful_cli, toy_run, options):
    done = heedful_cli("translate", toy_run, *options, stdin=TEXT)
    found = entries(done.stdout)
    assert {len(fields) for fields in found} == {3}
    assert len({(fields[0], fields[1]) for fields in found}) == len(found)
    counts = Counter(fields[0] for fields in found)
    assert counts["1"] == 1
    # Loops that are cut may leave a text twice, and a list without it.
    assert all(options[1] // 2 <= counts[number] <= options[1] for number in "023")


@pytest.fixture(scope="module")
def characters(heedful_cli, tmp_path_factory):
    """A run of characters that writes `|` as readily as other signs."""
    folder = tmp_path_factory.mktemp("characters")
    (folder / "s").write_text("a | b ||| c\n" * 40, encoding="utf-8")
    (folder / "t").write_text("||| ||| |||\n" * 40, encoding="utf-8")
    settings = ("data.subwords=character", "train.steps=30", "train.validate_steps=none")
    chosen = [word for setting in settings for word in ("--set", setting)]
    files = ["--source", folder / "s", "--target", folder / "t", "--out", folder / "run"]
    done = heedful_cli("train", "tiny", *files, "--device", "cpu", *chosen)
    assert done.returncode == 0, done.stderr
    return folder / "run"


def test_the_separator_in_a_text_is_escaped(heedful_cli, characters):
    arguments = ("translate", characters, "--n-best", 4, "--max-length", 6)
    found = entries(heedful_cli(*arguments, stdin="a | b\n").stdout)
    assert {len(fields) for fields in found} == {3}
    raw = json.loads(heedful_cli(*arguments, "--format", "jsonl", stdin="a | b\n").stdout)
    texts = [raw["text"], *(other["text"] for other in raw["alternatives"])]
    assert any("|||" in text for text in texts)
    assert [fields[1].replace("&#124;", "|") for fields in found] == [
        text.strip() for text in texts
    ]


def test_other_subwords_of_one_text_are_one_translation(heedful_cli, characters):
    arguments = ("translate", characters, "--n-best", 60, "--beam", 60, "--max-length", 2)
    found = entries(heedful_cli(*arguments, stdin="a\n").stdout)
    texts = [fields[1] for fields in found]
    assert len(texts) > 5
    assert len(set(texts)) == len(texts)


def test_samples_may_repeat_and_the_help_says_so(heedful_cli, toy_run):
    done = heedful_cli("translate", toy_run, "--n-best", 5, "--sample", stdin=TEXT)
    assert Counter(fields[0] for fields in entries(done.stdout)) == {"0": 5, "1": 1, "2": 5, "3": 5}
    listed = " ".join(heedful_cli("translate", "--help").stdout.split())
    assert "the same translation may appear several times" in listed
    assert "A search never lists a text twice" in listed


def test_a_server_returns_the_alternatives_that_it_promises_or_refuses(plain_server):
    body = {"q": "the big red dog", "source": "en", "target": "fr"}
    answer = plain_server.client.post("/translate", json={**body, "alternatives": 7}).json()
    texts = [answer["translatedText"], *answer["alternatives"]]
    assert 4 <= len(texts) == len(set(texts)) <= 8
    refused = plain_server.client.post("/translate", json={**body, "alternatives": 10_000})
    assert refused.status_code == 400
