"""`--tokenizer`, language tags, unknown text and `data show`, on one run of two steps."""

import re
import shutil

import pytest

from heedful.cli.data import app
from heedful.config.schema import RunConfig
from heedful.data.encoded.dataset import EncodedPairs
from heedful.data.encoded.texts import write_texts
from heedful.errors import SettingError, TextError, TokenizerError
from heedful.text.corpus import Corpus
from heedful.tokenization.tokenizer import END, START, UNKNOWN, Tokenizer
from tests.support.commands import refused, train_arguments

CODES = "#version: 0.2\nt h\nth e</w>\nd o\ndo g</w>\nl e</w>\nc h\n"


@pytest.fixture(scope="module")
def tagged(heedful_cli, text, tmp_path_factory):
    """A run with codes, language tags, `data.subword_sampling`, and too small a vocabulary."""
    folder = tmp_path_factory.mktemp("tagged")
    (folder / "codes").write_text(CODES, encoding="utf-8")
    for language in ("en", "fr"):
        lines = (text / f"train.{language}").read_text("utf-8").splitlines()
        tags = (">>fr<< ", ">>xx<< ") if language == "en" else ("", "")
        marked = "".join(f"{tags[n % 2]}{line}\n" for n, line in enumerate(lines))
        (folder / f"train.{language}").write_text(marked, encoding="utf-8")
    changes = {"train.steps": 2, "data.vocabulary_size": 48, "data.subword_sampling": 0.3}
    settings = ["train.precision=fp32", *(f"{name}={value}" for name, value in changes.items())]
    arguments = train_arguments(folder, folder / "run", *settings, validate=False)
    done = heedful_cli(*arguments, "--tokenizer", folder / "codes")
    assert done.returncode == 0, done.stderr
    told = done.stdout + done.stderr
    assert re.search(r"warning: \d+\.\d% of the source subwords \(“\S+”.*\) are unknown;", told)
    return folder / "run"


@pytest.fixture(scope="module")
def translator(tagged):
    from heedful.translation.translator import Translator

    return Translator.load(tagged, device="cpu", precision="fp32", threads=1)


def test_a_run_with_given_codes_knows_its_tags(tagged, translator):
    from heedful.analysis.info import describe_run

    vocabulary = describe_run(tagged)["vocabulary"]
    assert (vocabulary["kind"], vocabulary["tags"]) == ("codes", [">>fr<<", ">>xx<<"])
    assert vocabulary["source"] == Tokenizer.load(tagged).source_size == 48
    with pytest.raises(TextError, match="text 2 of 2 begins with another tag: “>>de<< the dog”"):
        translator.translate(["the", ">>de<< the dog"])


def test_what_was_begun_goes_on_with_its_own_tokenizer(heedful_cli, text, trained, tmp_path):
    run = shutil.copytree(trained, tmp_path / "run")
    (tmp_path / "codes").write_text(CODES, encoding="utf-8")
    command = [*train_arguments(text, run, "train.precision=fp32"), "--resume", "--tokenizer"]
    told = (
        f"--resume must continue with the tokenizer of {run}, but",
        "codes is a different one",
    )
    refused(heedful_cli(*command, tmp_path / "codes"), *told)
    refused(heedful_cli(*command, tmp_path / "codes", "--dry-run"), *told)
    for own in (trained, trained / "tokenizer.model"):
        done = heedful_cli(*command, own)
        assert done.returncode == 0, done.stderr
    pairs = ("--source", text / "valid.en", "--target", text / "valid.fr")
    words = ("data", "prepare", "tiny", *pairs, "--out", tmp_path / "prepared", "--tokenizer")
    shared = ("--set", "data.vocabulary_size=48")
    done = heedful_cli(*words, tmp_path / "codes", *shared)
    assert done.returncode == 0, done.stderr
    refused(
        heedful_cli(*words, trained, *shared),
        "--out must continue",
        f"{trained} is a different one",
    )
    assert heedful_cli(*words, tmp_path / "codes", *shared).returncode == 0


def test_weights_to_begin_with_need_their_run(heedful_cli, text, tmp_path):
    words = (*train_arguments(text, tmp_path / "run"), "--finetune-weights", "last")
    refused(heedful_cli(*words), "--finetune-weights", "--finetune-from, but it is missing")
    assert not (tmp_path / "run").exists()


def test_unknown_input_is_warned_of_once_and_long_lines_as_before(translator, tmp_path):
    from heedful.search.settings import SearchOptions
    from heedful.translation.translate import OutputFormat, translate_lines

    warnings = []
    lines = [">>xx<< Ж Ж", ">>fr<< ", *[""] * 2046, "Ж " * 1025, "the dog"]
    options = SearchOptions(beam=1, max_length="1")
    with (tmp_path / "out").open("w", encoding="utf-8") as output:
        translate_lines(translator, lines, output, OutputFormat(), warnings.append, options)
    translated = (tmp_path / "out").read_text("utf-8").split("\n")
    assert len(translated) == len(lines) + 1
    assert translated[1:2048] == [" ", *[""] * 2046]  # the blank behind a tag comes back
    assert len(warnings) == 3
    assert warnings[0].startswith("67% of the subwords of the input (“Ж”) are unknown")
    assert warnings[1].startswith("Every line must begin with a language tag (")
    assert warnings[2].startswith("line 2049 has 1,025 subwords and was cut")


def test_untagged_lines_are_warned_of_once_and_an_empty_language_is_refused(
    heedful_cli, tagged, tmp_path
):
    told = "Every line must begin with a language tag (>>fr<<, >>xx<<), but some do not"
    few = ("--max-length", 3, "--beam", 1)
    for lines, options, times in (
        (["the dog", "", ">>fr<< the dog", "the dog"], few, 1),
        (["the dog"], (*few, "--target-language", "xx"), 0),
        ([">>fr<< the dog", "", " "], few, 0),
    ):
        done = heedful_cli("translate", tagged, *options, stdin="\n".join(lines))
        assert done.returncode == 0, done.stderr
        assert done.stderr.count(told) == times
    done = heedful_cli("attend", tagged, "the dog", *few)
    assert done.returncode == 0 and done.stderr.count(told) == 1
    for line, times in (("the dog", 1), (">>fr<< the dog", 0)):
        (tmp_path / "source").write_text(f"{line}\n{line}\n", "utf-8")
        (tmp_path / "target").write_text("le chien\nle chien\n", "utf-8")
        sides = ("--source", tmp_path / "source", "--target", tmp_path / "target")
        done = heedful_cli("score", tagged, *sides)
        assert done.returncode == 0 and done.stderr.count(told) == times
    for command in (("translate", tagged), ("attend", tagged, "the dog")):
        done = heedful_cli(*command, "--target-language", "", stdin="the dog\n")
        refused(done, "--target-language", ">>fr<<, >>xx<<", "but is empty")
        assert done.stdout == ""


@pytest.mark.parametrize(
    ("given", "settings", "named"),
    [
        ("a b c\n", {}, "is something else: line 1 is 'a b c'"),
        ("the\n", {"data.subword_sampling": 0.1}, "kind word-list; set data.subword_sampling=0"),
        (
            None,
            {"data.subword_sampling": 0.1, "data.subwords": "word"},
            "kind word; set data.subword_sampling=0",
        ),
        ("the\n", {"data.vocabulary_size": 4}, "at least 5"),
    ],
)
def test_a_tokenizer_that_cannot_be_used_is_explained(text, tmp_path, given, settings, named):
    from heedful.preparation.tokenizer import make_tokenizer

    path = tmp_path / "given"
    path.write_text(given or "", encoding="utf-8")
    corpus = Corpus((text / "train.en",), (text / "train.fr",))
    with pytest.raises((SettingError, TokenizerError), match=re.escape(named)) as caught:
        make_tokenizer(
            RunConfig().with_settings(settings),
            corpus.source,
            corpus.target,
            path if given else None,
        )
    assert caught.value.exit_code == 2 and "\n" not in str(caught.value)


# data show


def rows(lines):
    """Parse the output of `data show`: pairs, rows, and each row's length, subwords and ids."""
    pairs = {}
    for line in lines:
        if found := re.fullmatch(r"pair (\d+)", line):
            pair = pairs[int(found[1])] = {}
        elif found := re.fullmatch(r"  (\S+(?: \S+)*) +(\d+)  (.*?)(?:  \((\d+) unknown\))?", line):
            row = pair[found[1]] = [int(found[2]), found[3].split(" "), int(found[4] or 0)]
        elif found := re.fullmatch(r" {20,}([\d ]+)", line):
            row.append([*map(int, found[1].split())])
    return pairs


def test_pairs_are_shown_as_the_model_sees_them(heedful_cli, tagged):
    done = heedful_cli("data", "show", tagged, "--first", 6, "--lines", 2, "--ids")
    assert (done.returncode, done.stderr) == (0, "")
    tokenizer = Tokenizer.load(tagged)
    encoded = EncodedPairs.open(tagged / "data", tokenizer)
    shown = rows(done.stdout.splitlines())
    assert list(shown) == [6, 7]
    for number, pair in shown.items():
        source, target = (side.tolist() for side in encoded.pair(number))
        assert tokenizer.pieces_source(source)[0] == (">>fr<<", ">>xx<<")[number % 2]
        expected = {
            "source": (tokenizer.pieces_source, [*source, END]),
            "target in": (tokenizer.pieces_target, [START, *target]),
            "target out": (tokenizer.pieces_target, [*target, END]),
        }
        for name, (spell, ids) in expected.items():
            assert pair.pop(name) == [len(ids), spell(ids), ids.count(UNKNOWN), ids]
        assert not [name for name in pair if not name.startswith("sampled ")]


def test_a_given_pair_is_shown_with_what_is_unknown_and_one_sample(tagged):
    from heedful.preparation.show import show_pair

    given = tagged, ">>xx<< the the Ж", "le chien"
    tokenizer = Tokenizer.load(tagged)
    lines = [re.sub(r" {2,}", "  ", line.strip()) for line in show_pair(*given)]
    assert lines[0] == "source  5  >>xx<< the the <unk> </s>  (1 unknown)"
    (ids,) = tokenizer.encode_target(["le chien"])
    target = " ".join(tokenizer.pieces_target(ids))
    assert len(ids) == 5 and target.startswith("le ")
    for line, expected in zip(lines[1:3], (f"<s> {target}", f"{target} </s>"), strict=True):
        assert line.startswith(f"target {'in' if line[7] == 'i' else 'out'}  6  {expected}")
    assert lines[3] == "unknown in the source: Ж"
    sampled = [line.split("  ") for line in lines[4:]]
    assert [row[0] for row in sampled] == [
        *("sampled source", "sampled target in", "sampled target out")
    ]
    assert all(int(row[1]) == len(row[2].split()) for row in sampled)
    draws = {"\n".join(show_pair(*given, seed=seed)) for seed in (*range(9), *range(9))}
    assert 1 < len(draws) <= 9


def test_a_prepared_folder_is_shown_without_settings(tagged, tmp_path):
    from heedful.preparation.show import show_pairs

    (tmp_path / "data").mkdir()
    for path in [*tagged.glob("tokenizer*"), *(tagged / "data").iterdir()]:
        (tmp_path / path.relative_to(tagged)).write_bytes(path.read_bytes())
    prepared, run = (rows(show_pairs(folder, count=3, ids=True)) for folder in (tmp_path, tagged))
    assert list(prepared) == [0, 1, 2]
    assert prepared == {
        number: {name: row for name, row in pair.items() if not name.startswith("sampled ")}
        for number, pair in run.items()
    }
    # Where the text of the pairs is kept, what is unknown is told too.
    for path in (tmp_path / "data").glob("*text*"):
        path.unlink()
    encoded = EncodedPairs.open(tmp_path / "data", Tokenizer.load(tmp_path))
    write_texts([("the Ж", "le Ж")] * len(encoded), tmp_path / "data")
    assert "  unknown in the source: Ж" in list(show_pairs(tmp_path, count=1))


def test_what_cannot_be_shown_is_explained(tagged, heedful_cli):
    from heedful.preparation.show import show_pairs

    with pytest.raises(TextError, match="--first must be the index of a pair, from 0 to"):
        list(show_pairs(tagged, first=999_999))
    done = heedful_cli("data", "show", tagged, "--source", "a")
    assert done.returncode == 2 and "--target" in done.stderr


def test_every_option_of_data_is_explained():
    import typer

    command = typer.main.get_group(app).commands["show"]
    assert not [option.name for option in command.params if not (option.help or "").strip()]
