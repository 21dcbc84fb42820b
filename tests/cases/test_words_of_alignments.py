"""Links count other words than the next tool, which crashes beyond the last word."""

import re

import pytest

LINES = [
    "the big red dog",
    " the  big   red dog ",
    "the\u00a0big red dog",
    "the\u3000big red\u202fdog",
    "the\tbig red \t dog",
    "thebigreddog",
    "the big red dog .",
    "",
    "  ",
]
CUTS = {
    "spaces": lambda text: [part for part in text.split(" ") if part.strip()],
    "single spaces": lambda text: text.split(" "),
    "white space": str.split,
    "spaces and tabs": lambda text: re.split("[ \t]+", text.strip(" \t")),
}


@pytest.fixture(scope="module", params=["exact", "text"])
def linked(request, heedful_cli, toy_run, tmp_path_factory):
    """Source, translation, links of `translate` and links of `score` for each line."""
    folder = tmp_path_factory.mktemp("linked")
    reading = ("--reading", request.param)
    lines = "".join(f"{line}\n" for line in LINES)
    done = heedful_cli("translate", toy_run, "--alignments", *reading, stdin=lines)
    pairs = [line.split("\t") for line in done.stdout.split("\n")[:-1]]
    (folder / "s").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    (folder / "t").write_text("".join(f"{text}\n" for text, _ in pairs), encoding="utf-8")
    files = ("--source", folder / "s", "--target", folder / "t")
    scored = heedful_cli("score", toy_run, *files, "--alignments", *reading).stdout.split("\n")[:-1]
    return [
        (source, text, links, line.split("\t")[1])
        for source, (text, links), line in zip(LINES, pairs, scored, strict=True)
    ]


@pytest.mark.parametrize("cut", CUTS)
def test_links_are_in_range_however_the_next_tool_cuts(linked, cut):
    for source, text, links, _ in linked:
        words = len(CUTS[cut](source)), len(CUTS[cut](text))
        for link in links.split():
            i, j = map(int, link.split("-"))
            assert i < words[0] and j < words[1], (source, links)


def test_every_word_of_the_translation_has_a_link(linked):
    for _, text, links, _ in linked:
        words = CUTS["spaces"](text)
        assert {int(link.split("-")[1]) for link in links.split()} == set(range(len(words)))


def test_a_no_break_space_does_not_end_a_word(linked):
    sources = {link.split("-")[0] for link in linked[2][2].split()}
    assert sources == {"0", "1", "2"}


def test_both_commands_count_alike_and_say_how(heedful_cli, linked):
    for source, _, links, scored in linked:
        if "." not in source:  # the mark, which the model does not know, is held
            assert links.split() == scored.split(), source
    for command in ("translate", "score"):
        listed = " ".join(heedful_cli(command, "--help").stdout.split())
        assert "Words are separated by spaces only and counted from 0." in listed
