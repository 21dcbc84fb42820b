import json
import sys
from dataclasses import replace

import pytest

from heedful.analysis.evaluate import as_text, evaluate
from heedful.bench.random_run import make_random_run
from heedful.config.schema import RunConfig
from heedful.errors import MissingExtra, RunFolderError, SettingError, TextError
from heedful.evaluation import moses
from heedful.evaluation.bleu import evaluate_texts
from heedful.evaluation.paper_bleu import PaperBLEU
from heedful.evaluation.significance import Resampling
from heedful.evaluation.sufficient_statistics import MetricScore, measure
from heedful.search.settings import SearchOptions
from heedful.text.corpus import read_lines
from heedful.tokenization.tokenizer import Tokenizer
from heedful.training.result import TrainingResult
from heedful.translation.translator import Translator
from tests.unit.translation.test_translator import SMALL

FEW = Resampling(200, seed=5)


@pytest.fixture(scope="module")
def files(corpora, tmp_path_factory):
    """Thirty lines of a test set: source, two references, and the outputs of three systems."""
    folder = tmp_path_factory.mktemp("evaluate")
    wmt = corpora / "fixtures-bleu/wmt22-en-de"
    parts = {
        "source.en": "src.en",
        "reference.de": "ref.A.de",
        "other.de": "ref.B.de",
        "ours.txt": "hyp.Online-A.de",
        "good.txt": "hyp.JDExploreAcademy.de",
        "poor.txt": "hyp.PROMT.de",
    }
    for name, part in parts.items():
        lines = list(read_lines(wmt / f"generaltest2022.en-de.{part}.xz"))[:30]
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def lines_of(path):
    return path.read_text(encoding="utf-8").splitlines()


def test_the_language_is_read_off_the_reference(files):
    found = evaluate(files / "ours.txt", [files / "reference.de"])
    ours, reference = lines_of(files / "ours.txt"), lines_of(files / "reference.de")
    assert list(found.scores) == ["bleu", "paper_bleu", "chrf", "ter", "exact_match", "cer"]
    measured = measure(PaperBLEU([reference], "de"), ours)
    assert found.scores["paper_bleu"] == MetricScore(measured.score, measured.signature)
    assert found.paper_bleu_missing == ""
    same = evaluate_texts(ours, [reference], language="de").to_dict()
    plain = found.to_dict()
    assert {name: plain[name] for name in same} == same
    assert set(plain) == set(found.scores)


def test_a_given_language_comes_first(files, tmp_path):
    copy = tmp_path / "ours.de"
    copy.write_bytes((files / "ours.txt").read_bytes())
    plain = tmp_path / "reference"
    plain.write_bytes((files / "reference.de").read_bytes())

    def tokenizer(*args, **keywords):
        return evaluate(*args, **keywords).scores["paper_bleu"].signature.split("|")[4]

    assert tokenizer(files / "ours.txt", [files / "reference.de"], language="fr") == "tok:moses-fr"
    assert tokenizer(copy, [plain]) == "tok:moses-de"


@pytest.mark.parametrize("ending", ["", ".txt", ".DE", ".d"])
def test_what_is_no_language_leaves_the_papers_bleu_out_and_says_why(files, tmp_path, ending):
    path = tmp_path / f"reference{ending}"
    path.write_bytes((files / "reference.de").read_bytes())
    found = evaluate(files / "ours.txt", [path])
    assert found.to_dict()["paper_bleu"] is None
    assert "--language de" in found.to_dict()["paper_bleu_missing"]
    assert found.scores.keys() == {"bleu", "chrf", "ter", "exact_match", "cer"}
    score, why = (line for line in as_text(found).splitlines() if line.startswith("paper BLEU"))
    assert score.endswith(" –")
    assert why.endswith("none: the target language is not known; give it, as in --language de")


def test_a_language_that_moses_cannot_tokenize_leaves_it_out_too(files):
    found = evaluate(files / "ours.txt", [files / "reference.de"], language="zh")
    assert "with spaces between words" in found.paper_bleu_missing
    assert "tok:zh" in found.scores["bleu"].signature


def test_without_its_package_it_is_left_out_with_the_command_that_installs_it(files, monkeypatch):
    moses._tokenizer.cache_clear()
    moses._normalizer.cache_clear()
    monkeypatch.setitem(sys.modules, "sacremoses", None)  # what Python itself does not find
    found = evaluate(files / "ours.txt", [files / "reference.de"])
    assert found.to_dict()["paper_bleu"] is None
    assert "pip install 'heedful[paper]'" in found.paper_bleu_missing


def test_systems_are_compared_by_every_metric(files):
    rivals = [files / "good.txt", files / "poor.txt"]
    references = [files / "reference.de", files / "other.de"]
    found = evaluate(files / "ours.txt", references, against=rivals, resampling=FEW)
    assert [rival.file for rival in found.rivals] == rivals
    for rival in found.rivals:
        alone = evaluate(rival.file, references)
        assert list(rival.comparisons) == list(found.scores)
        for name, comparison in rival.comparisons.items():
            assert comparison.score == alone.scores[name].score
            assert comparison.difference == found.scores[name].score - comparison.score
            low, high = comparison.interval
            assert low <= comparison.difference <= high
            assert low < high or name == "exact_match"  # no line of these thirty matches
            assert 0 < comparison.p_value <= 1
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["resampling"] == {"test": "randomization", "trials": 200, "seed": 5}
    assert [entry["hypothesis"] for entry in plain["against"]] == list(map(str, rivals))
    first = found.rivals[0].comparisons["chrf"]
    assert plain["against"][0]["chrf"] == {
        "score": first.score,
        "difference": first.difference,
        "interval": list(first.interval),
        "p_value": first.p_value,
    }


def test_each_score_gets_its_interval_where_it_is_wanted(files):
    found = evaluate(files / "ours.txt", [files / "reference.de"], confidence=True, resampling=FEW)
    for name, score in found.scores.items():
        low, high = score.interval
        assert low <= score.score <= high
        assert low < high or name == "exact_match"
    plain = found.to_dict()
    assert plain["resampling"] == {"trials": 200, "seed": 5}
    assert plain["bleu"]["interval"] == list(found.scores["bleu"].interval)
    text = as_text(found)
    assert "[{:.2f}, {:.2f}]".format(*found.scores["ter"].interval) in text
    (note,) = found.notes
    assert "lines were scored" in note
    assert text.endswith(f"\n\nIntervals (95%): bootstrap, 200 times, seed 5.\n\n{note}")


def test_the_text_is_a_table_to_read(files):
    found = evaluate(
        files / "ours.txt",
        [files / "reference.de"],
        against=[files / "poor.txt"],
        test="bootstrap",
        resampling=FEW,
    )
    text = as_text(found).splitlines()
    labels = ["BLEU", "paper BLEU (tokenized, split)", "chrF", "TER (lower is better)"]
    labels += ["exact match", "CER (lower is better)"]
    width = max(map(len, labels))
    assert [line[:width].rstrip() for line in text[:6]] == labels
    assert len({len(line) for line in text[:6]}) == 1
    assert text[6] == ""
    names = ["BLEU", "paper BLEU", "chrF", "TER", "exact match", "CER"]
    signatures = [score.signature for score in found.scores.values()]
    assert text[7:13] == [f"{name:<11}  {one}" for name, one in zip(names, signatures, strict=True)]
    assert text[13] == ""
    assert text[14] == f"{files / 'ours.txt'} against {files / 'poor.txt'}"
    assert text[15].split() == ["this", "other", "diff.", "95%", "interval", "p"]
    assert [line[:width].rstrip() for line in text[16:22]] == labels
    assert len({len(line) for line in text[15:22]}) == 1
    assert max(map(len, (*text[:6], *text[15:22]))) <= 80
    assert text[22:] == [
        "",
        "Intervals (95%): bootstrap, 200 times, seed 5.",
        "p: paired bootstrap, two-sided, 200 times, seed 5.",
        "",
        *found.notes,
    ]


def test_references_without_text_are_refused(files, tmp_path):
    (tmp_path / "blank.de").write_text(" \n" * 30, encoding="utf-8")
    with pytest.raises(
        TextError, match=r"must contain text, but all 30 lines of .*blank\.de are empty"
    ):
        evaluate(files / "ours.txt", [files / "reference.de", tmp_path / "blank.de"])
    (tmp_path / "half.de").write_text("Eins.\n" + "\n" * 29, encoding="utf-8")
    found = evaluate(tmp_path / "half.de", [tmp_path / "half.de"])
    assert (found.scores["exact_match"].score, found.scores["cer"].score) == (100, 0)


@pytest.mark.parametrize("role", ["reference", "other system", "source"])
def test_files_must_be_aligned(files, tmp_path, role):
    short = tmp_path / "short.de"
    short.write_text("Eins.\nZwei.\n", encoding="utf-8")
    references = [short if role == "reference" else files / "reference.de"]
    with pytest.raises(
        TextError, match=f"hypothesis and {role} must have the same number of lines"
    ) as caught:
        evaluate(
            files / "ours.txt",
            references,
            against=[short] if role == "other system" else [],
            source=short if role == "source" else None,
        )
    for part in (str(files / "ours.txt"), str(short), "30", "2"):
        assert part in str(caught.value)


def test_comet_is_refused_without_a_source_before_anything_is_computed(files):
    with pytest.raises(TextError, match=r"--source.*The source text is missing"):
        evaluate(files / "ours.txt", [files / "reference.de"], comet="Unbabel/wmt22-comet-da")


def test_comet_is_refused_with_two_references_before_anything_is_computed(files):
    references = [files / "reference.de", files / "other.de"]
    with pytest.raises(TextError, match="one reference, but there are 2"):
        evaluate(files / "ours.txt", references, source=files / "source.en", comet="model")


def test_comet_without_its_package_or_its_model_is_refused(files):
    with pytest.raises((MissingExtra, SettingError), match="comet"):
        evaluate(
            files / "ours.txt",
            [files / "reference.de"],
            source=files / "source.en",
            comet="no/such-model",
        )


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    """A run with random weights, whose words are w1, w2 and so on."""
    folder = tmp_path_factory.mktemp("run")
    make_random_run(folder, RunConfig().with_settings(SMALL), 50)
    return folder


def test_a_result_whose_run_is_gone_is_no_file_of_translations(files, tmp_path):
    gone = TrainingResult("steps", tmp_path / "gone", 5, (), tmp_path / "gone" / "log.jsonl")
    with pytest.raises(RunFolderError, match="gone does not exist"):
        evaluate(gone, source=files / "source.en", reference=files / "reference.de")


def test_a_run_that_is_named_by_its_path_is_opened_once(small_run, monkeypatch):
    opened, load = [], Tokenizer.load
    monkeypatch.setattr(Tokenizer, "load", lambda path: opened.append(path) or load(path))
    found = evaluate(small_run, pairs=[("w1", "w2")], options=SearchOptions(beam=1, max_length=3))
    assert opened == [small_run] == [found.file]


def test_a_run_translates_before_it_is_scored(small_run, tmp_path):
    pairs = [("w1 w2", "w3"), ("w4", "w5 w6 w7")]
    for name, lines in zip(("test.en", "test.de"), zip(*pairs, strict=True), strict=True):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    files = {"source": tmp_path / "test.en", "reference": tmp_path / "test.de"}
    translator = Translator.load(small_run, device="cpu", precision="fp32")
    few = SearchOptions(beam=1, max_length=3)
    found = evaluate(translator, pairs=pairs, options=few, language="de")
    assert found.file == small_run
    by_file = evaluate(translator, **files, options=few)
    assert (by_file.scores, by_file.loss) == (found.scores, found.loss)

    # equal to the scores of the file with the same translations
    output = tmp_path / "output.de"
    texts = [translator.translate(source, few).text for source, _ in pairs]
    output.write_text("".join(f"{text}\n" for text in texts), "utf-8")
    assert evaluate(output, files["reference"]).scores == found.scores
    tokens = [value for pair in pairs for value in translator.score(*pair)]
    assert found.loss == pytest.approx(-sum(tokens) / len(tokens), abs=1e-5)
    assert str(found).startswith("loss of the references")
    assert repr(found).startswith(f"Evaluation({str(small_run)!r}, loss {found.loss:.3f}, BLEU ")
    assert found.to_dict()["loss"] == found.loss


def test_the_language_of_a_source_is_not_that_of_the_translations(small_run, tmp_path):
    for name, line in (("test.en", "w1 w2"), ("test.ref", "w3"), ("test.chinese", "我喜欢狗")):
        (tmp_path / name).write_text(f"{line}\n", "utf-8")
    translator = Translator.load(small_run, device="cpu", precision="fp32")
    few = SearchOptions(beam=1, max_length=3)

    def scores(reference):
        files = {"source": tmp_path / "test.en", "reference": tmp_path / reference}
        return evaluate(translator, **files, options=few).scores

    assert "paper_bleu" not in scores("test.ref")
    assert "tok:zh" in scores("test.chinese")["bleu"].signature


def test_sentences_are_scored_in_the_target_language_of_the_run(small_run):
    translator = Translator.load(small_run, device="cpu", precision="fp32")
    config = translator.run.config.with_settings({"data.target_language": "de"})
    german = Translator(replace(translator.run, config=config), *translator.models)
    few = SearchOptions(beam=1, max_length=3)
    assert "paper_bleu" in evaluate(german, pairs=[("w1 w2", "w3")], options=few).scores
