"""`heedful extend`, from a trained run to one that is trained on and sent away."""

import json

UMLAUTS = str.maketrans("aeiou", "äëïöü")


def test_a_language_is_added_trained_and_exported(heedful_cli, text, trained, tmp_path):
    french = (text / "train.fr").read_text(encoding="utf-8")
    (tmp_path / "new.xx").write_text(french.translate(UMLAUTS), encoding="utf-8")
    lines = (text / "train.en").read_text(encoding="utf-8").splitlines()
    (tmp_path / "new.en").write_text("".join(f">>xx<< {line}\n" for line in lines), "utf-8")
    options = ("--target", tmp_path / "new.xx", "--tag", "xx", "--pieces", 40)
    keep = ("--keep", text / "train.en", "--keep", text / "train.fr")
    longer = tmp_path / "longer"
    done = heedful_cli("extend", trained, *options, *keep, "--out", longer)
    assert done.returncode == 0, done.stderr
    assert "40 new bpe subwords" in done.stderr
    assert "still have the same ids" in done.stderr
    assert "entries become" in done.stdout
    old, new = (json.loads(heedful_cli("info", run, "--json").stdout) for run in (trained, longer))
    assert new["vocabulary"]["tags"] == [">>xx<<"]
    assert new["parameters"] > old["parameters"]

    again = heedful_cli("extend", longer, *options, "--out", tmp_path / "again")
    assert again.returncode == 2
    assert "--tag must be new" in " ".join(again.stderr.split())
    assert not (tmp_path / "again").exists()

    tuned = tmp_path / "tuned"
    files = ("--source", tmp_path / "new.en", "--target", tmp_path / "new.xx", "--out", tuned)
    few = ("--set", "train.steps=2", "--set", "train.batch_tokens=256")
    done = heedful_cli("train", "tiny", *files, *few, "--finetune-from", longer)
    assert done.returncode == 0, done.stderr
    out = tmp_path / "ct2"
    done = heedful_cli("export", tuned, out, "--format", "ctranslate2", "--accept-differences")
    assert done.returncode == 0, done.stderr


def test_a_run_of_another_task_and_a_missing_text_are_refused(heedful_cli, trained, tmp_path):
    for options, word in (
        (("--tag", "xx"), "new subwords are learned from text"),
        (("--target", tmp_path / "missing"), "missing"),
        (("--pieces", "-1"), "-1"),
    ):
        done = heedful_cli("extend", trained, *options, "--out", tmp_path / "longer")
        assert done.returncode == 2
        assert word in " ".join(done.stderr.split())
        assert "Traceback" not in done.stderr
        assert not (tmp_path / "longer").exists()
