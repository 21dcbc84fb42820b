import json

import pytest
import torch

from heedful.errors import RunFolderError, SettingError, TextError
from heedful.experiments.plan import write_rates
from heedful.paper.claims import training
from heedful.paper.claims.check import (
    INTRODUCTION,
    RESERVATION,
    check_claims,
    to_dict,
    to_markdown,
)
from heedful.paper.claims.table import CLAIMS
from heedful.runs.lock import LOCK, only_writer


def no_corpus():
    raise AssertionError("nothing is trained")


def test_claims_are_decided_drawn_and_kept(tmp_path):
    said = []
    found = check_claims(["convolution", "shift"], tmp_path, no_corpus, 1.0, say=said.append)
    assert [*found] == ["convolution", "shift"]
    assert said == [CLAIMS["convolution"].statement, CLAIMS["shift"].statement]
    for name in found:
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "claims.md").read_text("utf-8") == to_markdown(found)
    assert json.loads((tmp_path / "claims.json").read_text("utf-8")) == to_dict(found)
    said.clear()
    assert (
        check_claims(["convolution", "shift"], tmp_path, no_corpus, 1.0, say=said.append) == found
    )
    assert not said  # nothing is measured again


def test_unknown_claims_and_damaged_files_are_refused(tmp_path):
    with pytest.raises(SettingError, match=r"NAME must be one of convolution.*but is 'none'"):
        check_claims(["none"], tmp_path, no_corpus, 1.0)
    (tmp_path / "shift.json").write_text("[]", encoding="utf-8")
    with pytest.raises(RunFolderError, match="must hold a measured claim"):
        check_claims(["shift"], tmp_path, no_corpus, 1.0)


def test_models_are_trained_within_the_budget_and_doubted_where_they_learned_too_little(
    corpus, tmp_path, monkeypatch
):
    narrow = [setting.replace("d_model=128", "d_model=32") for setting in training.COMMON]
    # searches of a model that has learned little seldom end
    monkeypatch.setattr(training, "COMMON", (*narrow, "search.max_length=input+5"))
    (tmp_path / "mask").mkdir()
    # rates at which a quarter of the budget, the least share, is enough for every system
    rates = {"transformer": 5_000.0, "no-mask": 5_000.0}
    write_rates(tmp_path / "mask" / "rates.json", rates, 1)
    found = check_claims(["mask"], tmp_path, lambda: corpus, 20.0, threads=1)
    assert "Train longer before drawing conclusions: Transformer has only" in found["mask"].sentence
    assert found["mask"].holds is None
    page = (tmp_path / "claims.md").read_text("utf-8")
    assert f"**Not decided.** {found['mask'].headline} (often said" in page
    assert len(found["mask"].panels[0].sizes) >= 2
    plan = json.loads((tmp_path / "mask" / "plan.json").read_text("utf-8"))
    assert plan["budget"] == 20
    assert len({system["steps"] for system in plan["systems"]}) == 1
    kept = (tmp_path / "mask.json").read_bytes()
    assert check_claims(["mask"], tmp_path, lambda: corpus, 20.0, threads=1) == found
    assert (tmp_path / "mask.json").read_bytes() == kept
    with pytest.raises(RunFolderError, match=r"differs in --budget, --threads"):
        check_claims(["shift", "mask"], tmp_path, lambda: corpus, 40.0)
    assert not (tmp_path / "shift.json").exists()  # refused before anything is measured
    with pytest.raises(RunFolderError, match=r"--budget, which the named claims share"):
        check_claims(["mask", "attention"], tmp_path, lambda: corpus, 20.0, threads=1)
    with pytest.raises(RunFolderError, match=r"none/mask/plan\.json is missing"):
        check_claims(["mask"], tmp_path / "new", lambda: corpus, 40.0, plan=tmp_path / "none")
    other = tmp_path / "other" / "mask"
    other.mkdir(parents=True)
    changed = json.loads((tmp_path / "mask" / "plan.json").read_text("utf-8"))
    changed["systems"][0]["steps"] += 1
    (other / "plan.json").write_text(json.dumps(changed), "utf-8")
    with pytest.raises(RunFolderError, match=r"differs in --plan"):
        check_claims(["mask"], tmp_path, lambda: corpus, 20.0, plan=other.parent)
    again = check_claims(["mask"], tmp_path / "again", lambda: corpus, 40.0, plan=tmp_path)
    assert again == found  # its steps, budget and thread, whatever is asked for
    # what was decided before stays on the page
    check_claims(["shift"], tmp_path, no_corpus, 1.0)
    page = json.loads((tmp_path / "claims.json").read_text("utf-8"))
    assert [*page] == ["shift", "mask"]
    other = corpus._replace(source=corpus.target, target=corpus.source)
    with pytest.raises(RunFolderError, match=r"mask\.json was measured on other text"):
        check_claims(["mask"], tmp_path, lambda: other, 20.0, threads=1)


@pytest.mark.parametrize(
    "damaged",
    [
        [],
        {"holds": "yes", "headline": "", "sentence": "", "panels": []},
        {
            "holds": True,
            "headline": "All of 4.",
            "sentence": "They do.",
            "panels": [
                {
                    "axis": "heads",
                    "sizes": [2, 4],
                    "label": "BLEU",
                    "logarithmic": "x",
                    "curves": {"one": [1.0]},  # and none for 4
                }
            ],
        },
    ],
)
def test_a_damaged_decision_of_another_claim_is_named_before_anything_is_measured(
    tmp_path, damaged
):
    (tmp_path / "heads.json").write_text(json.dumps(damaged), "utf-8")
    with pytest.raises(RunFolderError, match=r"heads\.json must hold a measured claim"):
        check_claims(["convolution"], tmp_path, no_corpus, 1.0)
    assert not (tmp_path / "convolution.json").exists()


def test_what_is_timed_has_the_threads_that_are_asked_for(tmp_path, monkeypatch):
    before, seen = torch.get_num_threads(), []
    measured = CLAIMS["shift"].measure()

    def measure():
        seen.append(torch.get_num_threads())
        return measured

    monkeypatch.setitem(CLAIMS, "shift", CLAIMS["shift"]._replace(measure=measure))
    for number, threads in enumerate((before + 1, 0)):
        check_claims(["shift"], tmp_path / str(number), no_corpus, 1.0, threads=threads)
    assert seen == [before + 1, before]
    assert torch.get_num_threads() == before


def test_every_page_says_what_may_not_be_concluded(tmp_path):
    check_claims(["shift"], tmp_path, no_corpus, 1.0)
    written = (tmp_path / "claims.md").read_text("utf-8")
    assert INTRODUCTION in written
    assert RESERVATION in written
    page = json.loads((tmp_path / "claims.json").read_text("utf-8"))
    assert page["shift"]["reservation"] == RESERVATION


def test_a_short_test_is_refused_before_anything_is_measured(corpus, tmp_path):
    folder = tmp_path / "short"
    folder.mkdir()
    for part in ("train", "valid", "test"):
        for language in ("en", "fr"):
            lines = corpus.lines(part, language)[:19]
            (folder / f"{part}.{language}").write_text(
                "".join(f"{one}\n" for one in lines), "utf-8"
            )
    with pytest.raises(TextError, match="at least 20 lines to decide a claim, but has 19"):
        check_claims(["shift", "mask"], tmp_path, lambda: corpus._replace(folder=folder), 40.0)
    assert not (tmp_path / "shift.json").exists()


def test_a_budget_that_is_too_small_is_named_as_the_user_gave_it(corpus, tmp_path):
    with pytest.raises(SettingError, match=r"but is \d+ s; give at least \d+m"):
        check_claims(["mask", "scores"], tmp_path, lambda: corpus, 6.0, threads=1)


def test_only_one_process_decides_claims_in_a_folder(tmp_path):
    with (
        only_writer(tmp_path, "paper claims"),
        pytest.raises(RunFolderError, match=r"one writer at a time, but heedful paper claims \("),
    ):
        check_claims(["shift"], tmp_path, no_corpus, 1.0)
    assert not (tmp_path / "shift.json").exists()
    check_claims(["shift"], tmp_path, no_corpus, 1.0)  # and when it has ended another one may
    assert not (tmp_path / LOCK).exists()
