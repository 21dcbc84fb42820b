"""Text in other formats than lines, through every command that takes text."""

import gzip
import json
from xml.sax.saxutils import escape

import pytest

from heedful.evaluation.validation import score_bleu
from heedful.translation.translator import Translator
from tests.support.commands import train_arguments


@pytest.fixture(scope="module")
def pairs(text) -> dict[str, list[tuple[str, str]]]:
    names = ("train", "valid")
    sides = [
        [(text / f"{name}.{code}").read_text("utf-8").splitlines() for code in ("en", "fr")]
        for name in names
    ]
    return {name: list(zip(*both, strict=True)) for name, both in zip(names, sides, strict=True)}


@pytest.fixture(scope="module")
def files(pairs, tmp_path_factory):
    """The pairs in every format; the memory also holds units that lack one of the languages."""
    folder = tmp_path_factory.mktemp("formats")
    for name, part in pairs.items():
        rows = "".join(f"{number}\t{t}\t{s}\n" for number, (s, t) in enumerate(part))
        (folder / f"{name}.tsv.gz").write_bytes(gzip.compress(rows.encode()))
        units = [
            f'<tu><tuv xml:lang="en-GB"><seg>{escape(s)}</seg></tuv>'
            f'<tuv xml:lang="FR"><seg>{escape(t)}</seg></tuv></tu>'
            for s, t in part
        ]
        units.insert(1, '<tu><tuv xml:lang="en"><seg>zebra</seg></tuv></tu>')
        units.insert(5, '<tu><tuv xml:lang="fr"><seg>zèbre</seg></tuv></tu>' * 2)
        memory = f'<tmx version="1.4"><header/><body>{"".join(units)}</body></tmx>'
        (folder / f"{name}.tmx").write_text(memory, encoding="utf-8")
    segments = [
        "".join(
            f'<seg id="{number}">{escape(pair[side])}</seg>\n'
            for number, pair in enumerate(pairs["valid"])
        )
        for side in (0, 1)
    ]
    for segment, language in zip(segments, ("en", "fr"), strict=True):
        sgm = f'<srcset setid="v"><doc docid="1">\n{segment}</doc></srcset>\n'
        (folder / f"valid-src.{language}.sgm").write_text(sgm, encoding="utf-8")
    xml = (
        f'<dataset><doc id="1"><src lang="en"><p>{segments[0]}</p></src>'
        f'<ref lang="fr" translator="A"><p>{segments[1]}</p></ref></doc></dataset>'
    )
    (folder / "valid.xml").write_text(xml, encoding="utf-8")
    return folder


def test_a_dry_run_reads_columns_and_memories(heedful_cli, files):
    sources = ("--source", files / "train.tmx:en", "--source", files / "t*.tsv.gz:3")
    targets = ("--target", files / "train.tmx:fr", "--target", files / "train.tsv.gz:2")
    done = heedful_cli("train", "tiny", *sources, *targets, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "3,000 pairs" in done.stdout
    assert "en to fr" in done.stdout


def test_a_memory_trains_what_the_same_lines_train(heedful_cli, trained, files, tmp_path):
    arguments = train_arguments(files, tmp_path / "run", "train.steps=1", validate=False)
    names = {files / f"train.{code}": f"{files}/train.tmx:{code}" for code in ("en", "fr")}
    arguments = [names.get(argument, argument) for argument in arguments]
    done = heedful_cli(*arguments)
    assert done.returncode == 0, done.stderr
    run = tmp_path / "run"
    data = sorted(path.relative_to(run) for path in (run / "data").glob("*.[io][df]*"))
    assert len(data) == 4
    for name in ("tokenizer.model", *data):
        assert (run / name).read_bytes() == (trained / name).read_bytes()
    config = json.loads((run / "config.json").read_text("utf-8"))
    size = (files / "train.tmx").stat().st_size
    assert config["corpus"]["source"] == [{"file": "train.tmx", "bytes": size, "part": "en+fr"}]
    british = [str(argument).replace("tmx:en", "tmx:en-GB") for argument in arguments]
    done = heedful_cli(*british, "--resume", "--set", "data.source_language=en")
    assert done.returncode == 2
    assert "left out or changed: source, target" in done.stderr


def test_pairs_are_scored_from_columns_and_memories(heedful_cli, trained, pairs, files):
    sources = ("--source", files / "valid.tmx:en", "--source", files / "valid.tsv.gz:3")
    targets = ("--target", files / "valid.tmx:fr", "--target", files / "valid.tsv.gz:2")
    done = heedful_cli("score", trained, *sources, *targets, "--precision", "fp32")
    assert done.returncode == 0, done.stderr
    scores = [float(line) for line in done.stdout.splitlines()]
    translator = Translator.load(trained, precision="fp32")
    sides = map(list, zip(*pairs["valid"], strict=True))
    expected = [sum(tokens) for tokens in translator.score(*sides)]
    assert scores == pytest.approx([*expected, *expected], abs=1e-4)


def test_a_test_set_is_translated(heedful_cli, trained, pairs, files, tmp_path):
    quick = ("translate", trained, "--beam", 1, "--max-length", 5, "--precision", "fp32")
    output = tmp_path / "out.fr"
    done = heedful_cli(*quick, "--input", files / "valid-src.en.sgm", "--output", output)
    assert done.returncode == 0, done.stderr
    translator = Translator.load(trained, precision="fp32")
    translations = translator.translate([s for s, _ in pairs["valid"]], beam=1, max_length="5")
    lines = "".join(f"{translation.text}\n" for translation in translations)
    assert output.read_text(encoding="utf-8") == lines
    memory = ("--input", files / "valid.tmx:en", "--output", files / "valid.tmx")
    same = heedful_cli(*quick, *memory)
    assert same.returncode == 2
    assert "must not be the same file as --input" in same.stderr


def test_translations_are_evaluated_against_every_format(heedful_cli, pairs, files, tmp_path):
    references = [target for _, target in pairs["valid"]]
    hypotheses = [line.replace("le ", "la ") for line in references]
    (tmp_path / "h.tsv").write_text("".join(f"x\t{line}\n" for line in hypotheses), "utf-8")
    names = ("valid.tsv.gz:2", "valid.tmx:fr+en", "valid-src.fr.sgm", "valid.xml:ref")
    arguments = [part for name in names for part in ("--reference", files / name)]
    done = heedful_cli("evaluate", "--hypothesis", tmp_path / "h.tsv:2", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    # Four times the same reference counts like one.
    score = json.loads(done.stdout)["bleu"]["score"]
    assert score == pytest.approx(score_bleu(references, "")(hypotheses))
    assert 20 < score < 99


def test_a_language_that_is_not_there_is_named(heedful_cli, files):
    names = ("--source", files / "train.tmx:de", "--target", files / "train.tmx:fr", "--dry-run")
    done = heedful_cli("train", "tiny", *names)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "it holds “en-GB”, “FR”, “en”" in done.stderr.strip().splitlines()[-1]
