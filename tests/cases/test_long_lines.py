"""Input longer than the model's limit is cut without a word."""

import json

QUICK = ("--device", "cpu", "--precision", "fp32", "--threads", "1")

LONG = "the big red dog sleeps. my boy stays. " * 160


def test_a_long_line_is_split_at_ends_of_sentences_and_others_are_unharmed(heedful_cli, toy_run):
    typed = f"the big red dog\n{LONG}\n{'x' * 6000}\nmy boy stays\n"
    done = heedful_cli("translate", toy_run, "--format", "jsonl", *QUICK, stdin=typed)
    first, long, odd, last = map(json.loads, done.stdout.splitlines())
    alone = heedful_cli("translate", toy_run, *QUICK, stdin="the big red dog\nmy boy stays\n")
    assert [first["text"], last["text"]] == alone.stdout.splitlines()
    assert long["reading"]["sentences"] == 320
    assert long["text"].count(". ") == 320
    assert odd["text"] == "x" * 6000
    assert "was cut" not in done.stderr


def test_a_long_line_is_cut_on_request_and_marked(heedful_cli, toy_run):
    asked = ("--format", "jsonl", "--long-lines", "cut", *QUICK, "--beam", "1")
    done = heedful_cli("translate", toy_run, *asked, stdin=LONG)
    (entry,) = map(json.loads, done.stdout.splitlines())
    assert entry["reading"]["cut"] is True and "sentences" not in entry["reading"]
    assert "line 1 has" in done.stderr and "was cut to the first" in done.stderr
