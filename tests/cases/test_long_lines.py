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


HELD = ("{{ the dog. A cat }}", "https://x.org/a.b,c;d?e=f", "St. Gallen")
SPOILED = "".join(f"my boy stays in {part} too, the big red dog sleeps. " for part in HELD) * 25


def test_no_cut_falls_inside_what_is_held_or_inside_a_term(
    heedful_cli, toy_run, tmp_path, plain_server
):
    (tmp_path / "terms.tsv").write_text("St. Gallen\tSaint-Gall\n", "utf-8")
    arguments = ("--glossary", tmp_path / "terms.tsv", "--format", "jsonl", "--beam", "1", *QUICK)
    done = heedful_cli("translate", toy_run, *arguments, stdin=f"{SPOILED}\n")
    (entry,) = map(json.loads, done.stdout.splitlines())
    assert entry["reading"]["sentences"] > 1
    body = {"q": SPOILED, "source": "en", "target": "fr", "beam": 1}
    body["glossary"] = {HELD[2]: "Saint-Gall"}
    texts = [entry["text"]]
    for split in (True, False):
        answer = plain_server.client.post("/v1/translate", json={**body, "split": split}).json()
        texts.append(answer["translations"][0]["text"])
    for text in texts:
        counts = [text.count(put) for put in (*HELD[:2], "Saint-Gall", "Gallen")]
        assert counts == [25, 25, 25, 0]


def test_a_long_line_is_cut_on_request_and_marked(heedful_cli, toy_run):
    asked = ("--format", "jsonl", "--long-lines", "cut", *QUICK, "--beam", "1")
    done = heedful_cli("translate", toy_run, *asked, stdin=LONG)
    (entry,) = map(json.loads, done.stdout.splitlines())
    assert entry["reading"]["cut"] is True and "sentences" not in entry["reading"]
    assert "line 1 has" in done.stderr and "was cut to the first" in done.stderr
