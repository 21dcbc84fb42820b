"""`heedful paper`: figures from a trained run, heads that answer questions, checked claims."""

import json
import shutil

import numpy as np
import pytest

from heedful.cli.main import app
from heedful.paper.claims.check import CLAIMS
from heedful.paper.sentences import own_sentence
from heedful.paper.word_attention import word_attention, words_of
from heedful.runs.run import Run
from heedful.translation.translator import Translator
from tests.support.commands import train_arguments

SENTENCE = "the big dog sees a red apple"
FEW = ("train.precision=fp32", "train.batch_tokens=256", "train.steps=4")


@pytest.fixture(scope="module")
def translator(trained):
    return Translator.load(trained, device="cpu", precision="fp32")


@pytest.fixture(scope="module")
def learned(heedful_cli, text, tmp_path_factory):
    out = tmp_path_factory.mktemp("learned") / "run"
    settings = (*FEW, "model.positions=learned")
    done = heedful_cli(*train_arguments(text, out, *settings, validate=False))
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def back(heedful_cli, text, tmp_path_factory):
    """A run that reads French."""
    out = tmp_path_factory.mktemp("back") / "run"
    arguments = train_arguments(text, out, *FEW, validate=False)
    sides = [text / "train.fr" if a == text / "train.en" else a for a in arguments]
    sides[5] = text / "train.en"
    done = heedful_cli(*sides)
    assert done.returncode == 0, done.stderr
    return out


def test_words_look_as_their_subwords_do(translator):
    looks = word_attention(translator, SENTENCE)
    assert looks.words == (*SENTENCE.split(" "), "</s>")
    assert looks.ended
    attention = translator.attend(SENTENCE, target="le gros chien voit une pomme rouge").encoder
    assert looks.weights.shape == (*attention.shape[:2], 8, 8)
    assert np.allclose(looks.weights.sum(axis=-1), 1, atol=1e-5)
    (ids,) = translator.tokenizer.encode_source([SENTENCE])
    runs = [word.pieces for word in words_of(translator.tokenizer, SENTENCE, ids)]
    runs.append(range(len(ids), len(ids) + 1))
    for layer, head in np.ndindex(*attention.shape[:2]):
        for i, asking in enumerate(runs):
            for j, answering in enumerate(runs):
                slow = sum(attention[layer, head, a, b] for a in asking for b in answering) / len(
                    asking
                )
                assert looks.weights[layer, head, i, j] == pytest.approx(slow, abs=1e-6)


@pytest.mark.parametrize("number", [3, 4, 5])
def test_a_figure_of_the_paper_is_made_from_a_small_run(heedful_cli, trained, tmp_path, number):
    run = tmp_path / "run"
    shutil.copytree(trained, run, ignore=shutil.ignore_patterns("data"))
    out = tmp_path / "figure.svg"
    done = heedful_cli("paper", f"figure{number}", run, "--out", out)
    assert done.returncode == 0, done.stderr
    assert "the paper shows layer 5 of 6; this encoder has 2" in done.stderr
    assert "does not know" in done.stderr
    assert f"figure {number} of the paper" in done.stdout
    assert done.stdout.splitlines()[-1] == str(out)
    picture = out.read_text(encoding="utf-8")
    for word in ("making", "registration") if number == 3 else ("Law", "application"):
        assert f">{word}</text>" in picture


@pytest.mark.parametrize("number", [3, 5])  # 4: a run of another language
def test_a_run_that_does_not_know_the_papers_words_shows_its_own_text(
    heedful_cli, trained, tmp_path, number
):
    out = tmp_path / "figure.svg"
    done = heedful_cli("paper", f"figure{number}", trained, "--out", out)
    assert done.returncode == 0, done.stderr
    assert "a sentence of its training text is shown" in done.stderr
    assert "The sentence is the paper's" not in done.stdout
    sentence = own_sentence(Run.open(trained))
    assert len(sentence.split()) in range(8, 17)
    picture = out.read_text(encoding="utf-8")
    assert all(f">{word}</text>" in picture for word in sentence.split())


def test_a_query_alone_is_a_word_of_the_papers_sentence(heedful_cli, trained, tmp_path):
    out = tmp_path / "figure.svg"
    asked = heedful_cli("paper", "figure3", trained, "--query", "making", "--out", out)
    assert "“making” attends most to" in asked.stdout


def test_figures_take_another_sentence_layer_heads_and_words(heedful_cli, trained, tmp_path):
    out = tmp_path / "figure.html"
    shown = ("--sentence", SENTENCE, "--layer", 1, "--heads", "2,4", "--out", out)
    asked = ("--query", "sees", "--keys", "red apple")
    done = heedful_cli("paper", "figure3", trained, *shown, *asked)
    assert (done.returncode, done.stderr) == (0, "")
    title, header, *rows = done.stdout.splitlines()
    assert title == "Figure 3: from “sees”, layer 1 of 2"
    assert "on “red apple”" in header
    assert [row.split("  ")[0] for row in rows[:2]] == ["head 2", "head 4"]
    assert "The sentence is the paper's" not in done.stdout
    page = out.read_text(encoding="utf-8")
    assert "<table>" in page
    assert "<svg" in page
    done = heedful_cli("paper", "figure4", trained, *shown, "--query", "sees")
    assert done.returncode == 0, done.stderr
    done = heedful_cli("paper", "figure5", trained, *shown)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--out", "figure.jpg"), ".png, .svg, .pdf, .html"),
        (("--layer", 3), "--layer must be between 1 and 2"),
        (("--heads", "5"), "--heads must be between 1 and 4"),
        (("--heads", "one"), "must be head numbers from 1"),
        (("--sentence", SENTENCE, "--query", "cow"), "it has no “cow”: the big dog"),
        (("--sentence", " ", "--query", "cow"), "must have a word"),
        (("--query", "its"), "it has no “its”"),
    ],
)
def test_what_is_wrong_with_a_figure_is_told(heedful_cli, trained, tmp_path, arguments, message):
    done = heedful_cli("paper", "figure3", trained, *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert not list(tmp_path.iterdir())


def test_a_run_of_another_language_shows_its_own_text_or_asks_for_a_sentence(
    heedful_cli, back, tmp_path
):
    done = heedful_cli("paper", "figure4", back, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "a sentence of its training text is shown" in done.stderr
    without = tmp_path / "without"
    shutil.copytree(back, without, ignore=shutil.ignore_patterns("data"))
    done = heedful_cli("paper", "figure4", without, cwd=tmp_path)
    assert done.returncode == 2
    assert "this run reads 'fr'" in done.stderr
    assert "--sentence" in done.stderr
    french = ("--sentence", "la reine voit sa pomme", "--query", "sa")
    done = heedful_cli("paper", "figure4", without, *french, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "figure4.png").exists()


def test_the_word_of_another_sentence_is_chosen_by_its_attention(heedful_cli, trained, tmp_path):
    out = tmp_path / "figure.html"
    done = heedful_cli("paper", "figure3", trained, "--sentence", SENTENCE, "--out", out)
    assert done.returncode == 0, done.stderr
    looks = word_attention(Translator.load(trained, precision="fp32"), SENTENCE)
    last = len(looks.words) - looks.ended
    slow = [
        np.mean(
            [
                max((head[i, j] for j in range(last) if abs(i - j) > 1), default=0.0)
                for head in looks.weights[-1]
            ]
        )
        for i in range(last)
    ]
    assert f"from “{looks.words[int(np.argmax(slow))]}”" in done.stdout


def test_the_heads_that_answer_in_a_sentence_are_ranked(heedful_cli, trained, translator, tmp_path):
    asked = ("--query", "sees", "--who", "dog", "--did-what", "sees", "--to-whom", "red apple")
    out = tmp_path / "heads.png"
    done = heedful_cli("paper", "heads", trained, SENTENCE, *asked, "--top", 2, "--out", out)
    assert done.returncode == 0, done.stderr
    rows = done.stdout.splitlines()
    assert [row.split("  ")[0] for row in rows[1:7]] == [
        question for question in ("who", "did what", "to whom") for _ in range(2)
    ]
    assert out.exists()
    done = heedful_cli("paper", "heads", trained, SENTENCE, *asked, "--json")
    found = json.loads(done.stdout)
    looks = word_attention(translator, SENTENCE)
    for question, places in (("who", [2]), ("did what", [3]), ("to whom", [5, 6])):
        heads = found["questions"][question]["heads"]
        assert len(heads) == 8
        best = looks.weights[:, :, 3][:, :, places].sum(axis=-1)
        assert heads[0]["weight"] == pytest.approx(best.max(), abs=1e-4)


def test_heads_are_chosen_and_rated_by_sentences_of_the_grammar(heedful_cli, trained):
    done = heedful_cli("paper", "heads", trained, "--grammar", 30)
    assert done.returncode == 0, done.stderr
    rows = done.stdout.splitlines()
    assert [row[:8].strip() for row in rows[1:5]] == ["who", "did what", "to whom", "for what"]
    assert "100.0% (0)" in rows[2]
    assert "rated on 15 others" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "or --grammar must be given"),
        ((SENTENCE, "--grammar", 30), "or --grammar must be given"),
        ((SENTENCE, "--query", "sees"), "must name the query word"),
        ((SENTENCE, "--who", "dog"), "must name the query word"),
        (("--grammar", 1), "at least 2"),
        (("--grammar", 30, "--out", "a.png"), "cannot be combined with"),
        ((SENTENCE, "--query", "sees", "--who", "cow"), "--who must name words of the sentence"),
    ],
)
def test_what_is_wrong_with_a_question_is_told(heedful_cli, trained, arguments, message):
    done = heedful_cli("paper", "heads", trained, *arguments)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())


def test_positions_are_checked_and_drawn(heedful_cli, tmp_path):
    out = tmp_path / "positions.png"
    done = heedful_cli("paper", "positions", "--out", out)
    assert done.returncode == 0, done.stderr
    marks = {row.split()[0]: row.split()[1:] for row in done.stdout.splitlines()[1:6]}
    assert marks == {
        "index": ["yes", "yes", "yes", "no"],
        "one-hot": ["yes", "yes", "yes", "no"],
        "normalized": ["yes", "yes", "no", "yes"],
        "interleaved": ["yes", "yes", "yes", "yes"],
        "halves": ["yes", "yes", "yes", "yes"],
    }
    assert out.exists()


def test_learned_positions_are_read_from_a_run(heedful_cli, learned, trained, tmp_path):
    out = tmp_path / "positions.html"
    size = ("--d-model", 16, "--length", 12)
    done = heedful_cli("paper", "positions", *size, "--run", learned, "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["encodings"]["learned"]
    marks = [criterion["holds"] for criterion in found["criteria"].values()]
    assert marks == [True, True, False, False]
    rows = int(found["formula"].split()[0])
    assert found["criteria"]["generalizes to longer sentences"]["number"] == rows
    assert "learned" in out.read_text(encoding="utf-8")
    done = heedful_cli("paper", "positions", "--run", trained)
    assert done.returncode == 2
    assert "model.positions=learned" in done.stderr


def test_an_odd_width_is_refused(heedful_cli):
    done = heedful_cli("paper", "positions", "--d-model", 7)
    assert done.returncode == 2
    assert "must be even" in done.stderr


def test_scaling_is_measured_beside_theory(heedful_cli, tmp_path):
    out = tmp_path / "scaling.svg"
    few = ("--largest", 16, "--queries", 2000, "--keys", 4)
    done = heedful_cli("paper", "scaling", *few, "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    points = json.loads(done.stdout)["points"]
    assert [(p["d_k"], p["scale"]) for p in points[:3]] == [
        (1, "none"),
        (1, "1/sqrt(d_k)"),
        (1, "1/d_k"),
    ]
    assert len(points) == 15
    for point in points:
        for name in ("variance", "gradient"):
            one = point[name]
            assert abs(one["value"] - one["theory"]) < 2.5 * one["margin"]
    assert out.exists()
    done = heedful_cli("paper", "scaling", *few)
    assert len(done.stdout.splitlines()) == 17


def test_paper_lists_what_it_makes():
    (group,) = [g for g in app.registered_groups if g.typer_instance.info.name == "paper"]
    names = [command.callback.__name__ for command in group.typer_instance.registered_commands]
    figures = ["claims", "figure3", "figure4", "figure5", "heads", "positions", "scaling"]
    assert names == [*figures, "table1", "table2", "table3", "table4"]


def test_claims_are_decided_by_name(heedful_cli, tmp_path):
    done = heedful_cli("paper", "claims", "shift", "--out", tmp_path / "claims")
    assert done.returncode == 0, done.stderr
    assert "is a linear function of the encoding of pos. (section 3.5)\n" in done.stdout
    assert "\nIt holds. The rotated encoding of pos and the encoding of pos + k " in done.stdout
    assert "\nDifference:\ndistance  difference\n" in done.stdout
    help_text = " ".join(heedful_cli("paper", "claims", "--help").stdout.split())
    assert f"Claims: {', '.join(CLAIMS)}." in help_text
    done = heedful_cli("paper", "claims", "nothing", "--out", tmp_path / "claims")
    assert done.returncode != 0
    assert done.stderr.startswith("heedful: NAME must be one of convolution")


SMALL_TABLE_1 = """
from heedful.paper import layer_times
layer_times.LENGTHS, layer_times.WIDTHS = (64, 128, 256), (16, 32, 64)
from heedful.cli.main import main
main()
"""


@pytest.mark.family("recurrent")
def test_table_1_is_counted_timed_and_kept(heedful_cli, tmp_path):
    command = ("-c", SMALL_TABLE_1, "paper", "table1", "--budget", "0.01s", "--out", tmp_path)
    done = heedful_cli(*command, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    attention, recurrent, *_ = found["layers"]
    assert (attention["exact"], attention["counted"]) == (6 * 512**3, 6 * 512**3)
    assert attention["paths"] == [1, 1]
    assert recurrent["sequential"] >= 512
    assert len(found["rounds"]) == 3
    assert done.stderr.splitlines()[-1].endswith("because at least 3 rounds are needed.")
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"table1.md", "table1.json", "table1.png", "times.json"}
    shown = heedful_cli(*command).stdout
    assert json.loads((tmp_path / "table1.json").read_text())["rounds"] == found["rounds"]
    assert shown.startswith("Costs are multiply-adds of one layer at n = 512, d = 512, ")
    assert "a forward pass of one sequence at k = 3 and r = 32, with " in shown


@pytest.mark.parametrize("table", ["table2", "table3"])
def test_what_a_table_cannot_do_is_said_before_the_work(heedful_cli, tmp_path, table):
    out = tmp_path / "out"
    for given, said in (
        (
            ("--budget", "3"),
            "--budget must be a time above 0 and below 10,000,000 seconds, such as 90s, 30m or "
            "2h, but is '3'",
        ),
        (("--data", tmp_path), "must have train.en and one train.XX"),
        (("--budget", "2s", "--plan", tmp_path / "no.json"), "no.json must be the plan of a table"),
    ):
        done = heedful_cli("paper", table, "--out", out, *given)
        assert done.returncode != 0
        assert done.stderr.startswith("heedful: ")
        assert said in done.stderr
        assert not (out / "text").exists(), given
    (tmp_path / "file").touch()
    done = heedful_cli("paper", table, "--out", tmp_path / "file")
    assert done.returncode != 0
    assert done.stderr.startswith("heedful: ")


@pytest.mark.task("parsing")
def test_table_4_is_printed_and_kept(heedful_cli, tmp_path):
    trees = tmp_path / "gold.mrg"
    trees.write_text("(S (NP (DT the) (NN dog)) (VP (VBZ sleeps)))\n", encoding="utf-8")
    done = heedful_cli("paper", "table4", "--trees", trees, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "Transformer (4 layers)          WSJ only, discriminative  91.3" in done.stdout
    assert "right-branching" in done.stdout
    kept = json.loads((tmp_path / "out" / "table4.json").read_text(encoding="utf-8"))
    assert [one["name"] for one in kept["here"]] == ["flat", "right-branching"]
    assert (tmp_path / "out" / "table4.md").read_text(encoding="utf-8").startswith("# Table 4")


@pytest.mark.task("parsing")
def test_a_table_that_cannot_be_written_is_refused_before_the_work(heedful_cli, tmp_path):
    trees = tmp_path / "gold.mrg"
    trees.write_text("(S (NN a))\n", encoding="utf-8")
    for arguments in (("table4", "--trees", trees), ("table1",), ("claims", "shift"), ("table2",)):
        done = heedful_cli("paper", *arguments, "--out", trees)
        assert done.returncode != 0
        assert done.stderr.startswith(f"heedful: {trees} must be a new or existing folder, but"), (
            done
        )
        assert done.stderr.count("\n") == 1


@pytest.mark.task("parsing")
def test_table_4_of_what_is_no_parser_is_refused(heedful_cli, tmp_path):
    trees = tmp_path / "gold.mrg"
    trees.write_text("(S (NP (DT the) (NN dog)) (VP (VBZ sleeps)))\n", encoding="utf-8")
    done = heedful_cli("paper", "table4", tmp_path, "--trees", trees)
    assert done.returncode != 0
    assert done.stderr.startswith(
        "heedful: a run folder made by `heedful train` or `heedful import`"
    )
