import json

import pytest

from heedful.errors import RunFolderError, SettingError
from heedful.paper.claims.check import CLAIMS, check_claims, leave_open, to_dict, to_markdown
from heedful.paper.claims.statement import Checked


def no_corpus():
    raise AssertionError("nothing is trained")


def test_claims_are_decided_drawn_and_kept(tmp_path):
    said = []
    found = check_claims(["convolution", "shift"], tmp_path, no_corpus, 1.0, say=said.append)
    assert [*found] == ["convolution", "shift"]
    assert said == [CLAIMS["convolution"].said, CLAIMS["shift"].said]
    for name in found:
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "claims.md").read_text("utf-8") == to_markdown(found)
    assert json.loads((tmp_path / "claims.json").read_text("utf-8")) == to_dict(found)
    said.clear()
    assert (
        check_claims(["convolution", "shift"], tmp_path, no_corpus, 1.0, say=said.append) == found
    )
    assert not said  # nothing is measured again


@pytest.mark.parametrize(
    ("name", "bleu", "open_because"),
    [
        ("encoders", [3.0, 0.5, 8.0], "The best model has only 8.0 BLEU"),
        ("encoders", [96.0, 25.0, 80.0], ""),
        ("encoders", [99.9, 98.5, 100.0], "Every model has 98.5 BLEU or more"),
        ("heads", [99.9, 98.5, 100.0], ""),
        ("mask", [96.0, 0.1], ""),
        ("mask", [3.0, 0.1], "The best model has only 3.0 BLEU"),
    ],
)
def test_models_that_cannot_be_told_apart_decide_nothing(name, bleu, open_because):
    checked = leave_open(CLAIMS[name], Checked(False, "Found.", ()), bleu)
    assert checked.holds is (None if open_because else False)
    assert open_because in checked.sentence


def test_unknown_claims_and_damaged_files_are_refused(tmp_path):
    with pytest.raises(SettingError, match=r"NAME must be one of convolution.*but is 'none'"):
        check_claims(["none"], tmp_path, no_corpus, 1.0)
    (tmp_path / "shift.json").write_text("[]", encoding="utf-8")
    with pytest.raises(RunFolderError, match="must hold a measured claim"):
        check_claims(["shift"], tmp_path, no_corpus, 1.0)


def test_models_are_trained_within_the_budget_and_doubted_where_they_learned_too_little(
    corpus, tmp_path
):
    (tmp_path / "mask").mkdir()
    rates = json.dumps({"transformer": 3_000.0, "no-mask": 3_000.0})
    (tmp_path / "mask" / "rates.json").write_text(rates, "utf-8")
    found = check_claims(["mask"], tmp_path, lambda: corpus, 20.0, threads=1)
    assert "conclude nothing before a longer training" in found["mask"].sentence
    assert found["mask"].holds is None
    assert "Not decided. Without mask" in (tmp_path / "claims.md").read_text("utf-8")
    assert len(found["mask"].panels[0].sizes) >= 2
    plan = json.loads((tmp_path / "mask" / "plan.json").read_text("utf-8"))
    assert plan["budget"] == 20
    assert len({system["steps"] for system in plan["systems"]}) == 1
    kept = (tmp_path / "mask.json").read_bytes()
    assert check_claims(["mask"], tmp_path, lambda: corpus, 20.0, threads=1) == found
    assert (tmp_path / "mask.json").read_bytes() == kept
    with pytest.raises(
        RunFolderError, match=r"0\.3 minutes for 1 threads, and this call 0\.7 for 0"
    ):
        check_claims(["mask"], tmp_path, lambda: corpus, 40.0)
    with pytest.raises(RunFolderError, match=r"plan\.json must be the plan of a table"):
        check_claims(["mask"], tmp_path / "new", lambda: corpus, 40.0, plan=tmp_path / "other")
    again = check_claims(["mask"], tmp_path / "again", lambda: corpus, 40.0, plan=tmp_path)
    assert again == found  # its steps, budget and thread, whatever is asked for
    # what was decided before stays on the page
    check_claims(["shift"], tmp_path, no_corpus, 1.0)
    page = json.loads((tmp_path / "claims.json").read_text("utf-8"))
    assert [*page] == ["shift", "mask"]
    other = corpus._replace(source=corpus.target, target=corpus.source)
    with pytest.raises(RunFolderError, match=r"mask\.json was measured on other text"):
        check_claims(["mask"], tmp_path, lambda: other, 20.0, threads=1)
