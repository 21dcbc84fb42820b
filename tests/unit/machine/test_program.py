import subprocess
from importlib import metadata

from heedful.machine import program


def git(folder, *words):
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    return subprocess.run(
        ["git", "-C", folder, *who, *words], check=True, capture_output=True, text=True
    ).stdout.strip()


def test_a_checkout_knows_its_commit(tmp_path):
    (tmp_path / "src" / "heedful").mkdir(parents=True)
    assert program._checkout_commit(tmp_path) == ""
    git(tmp_path, "init", "-q")
    assert program._checkout_commit(tmp_path) == ""  # no commit yet
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "first")
    assert program._checkout_commit(tmp_path) == git(tmp_path, "rev-parse", "--short=12", "HEAD")


def test_an_installation_from_a_repository_knows_its_commit(tmp_path, monkeypatch):
    folder = tmp_path / "heedful-0.1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Name: heedful\nVersion: 0.1\n")
    monkeypatch.setattr(metadata, "distribution", lambda name: metadata.PathDistribution(folder))
    for content, commit in (
        ('{"url": "https://x", "vcs_info": {"vcs": "git", "commit_id": "ab12"}}', "ab12"),
        ('{"url": "file:///x", "dir_info": {}}', ""),
        ("{", ""),
    ):
        (folder / "direct_url.json").write_text(content)
        assert program._installed_commit() == commit
    (folder / "direct_url.json").write_text('{"vcs_info": {"commit_id": "ab12"}}')
    assert program.describe_program() == f"heedful {program.__version__}, commit ab12"
