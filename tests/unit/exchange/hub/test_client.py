"""Facts that are described, and the environment; test_fetch.py converts what comes."""

import hashlib

import pytest

from heedful.errors import DownloadError, ExchangeError, StorageError
from heedful.exchange.hub.client import HubClient, HubFile
from heedful.runs.hub_names import HubName
from tests.support.hub import READER

NAME = HubName("org/tiny-en-fr")


def test_a_model_is_described_with_commit_license_and_digests(hub, original):
    model = HubClient("a test").describe(NAME)
    assert model.commit == hub.repositories[NAME.repo].branches["main"]
    assert model.license == "apache-2.0"
    weights = original / "model.safetensors"
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    assert model.files["model.safetensors"] == HubFile(weights.stat().st_size, digest)
    assert len(model.files["config.json"].digest) == 40


def test_a_file_is_in_the_cache_of_the_library_and_fetched_once(hub, tmp_path):
    client = HubClient("a test")
    model = client.describe(NAME)
    path = client.fetch(model, "config.json")
    assert path.is_relative_to(tmp_path / "home" / "hub")
    count = len(hub.fetched())
    assert client.fetch(model, "config.json") == path
    assert len(hub.fetched()) == count


def test_a_server_that_is_no_hub_is_refused(hub, monkeypatch):
    hub.repositories[NAME.repo].branches["main"] = "x"
    hub.repositories[NAME.repo].commits["x"] = {}
    with pytest.raises(DownloadError, match="must name the commit of org/tiny-en-fr"):
        HubClient("a test").describe(NAME)


def test_a_home_that_is_a_file_is_one_paragraph(hub, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "file" / "token"))
    with pytest.raises(StorageError, match=r"the token for the hub must be readable, but .*token"):
        HubClient("a test")


def test_an_upload_needs_a_token(hub, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    with pytest.raises(ExchangeError, match="log in with `hf auth login`, or set HF_TOKEN"):
        HubClient("a test").require_token(NAME)


def facts(hub, **changes):
    """What the hub says of the model, with changes; those of `file` are made to each file."""
    known = hub.repositories[NAME.repo]
    commit = known.branches["main"]
    names = [*known.commits[commit]]
    files = [{"rfilename": name, "size": 5, "blobId": "a" * 40} for name in names]
    file = changes.pop("file", {})
    return {"sha": commit, "siblings": [{**entry, **file} for entry in files], **changes}


def lying(hub, answer):
    """Let the hub answer every question for facts so."""

    def lie(handler, method, path):
        if path.startswith("/api/"):
            handler._answer(200, answer)
            return True
        return False

    hub.lie = lie


@pytest.mark.parametrize(
    "changes",
    [
        *({"sha": value} for value in (5, None, "x", ["a"])),
        *({"siblings": value} for value in (None, 5, "x", [5], [{}], [[]])),
        *({"cardData": value} for value in (5, "x", [1], {"license": 5}, {"license": {"a": 1}})),
        *({"file": {"size": value}} for value in ("x", -5, None, [1], 1.5)),
        *({"file": {"blobId": value}} for value in (5, None, "../x", [1])),
        *({"file": {"lfs": value}} for value in ({}, {"sha256": 5}, {"sha256": "/x"})),
        *({"file": {"rfilename": value}} for value in (5, None, "../x", [1])),
    ],
)
def test_facts_of_another_type_are_refused_or_left_out(changes, hub):
    lying(hub, facts(hub, **changes))
    if "sha" in changes:
        with pytest.raises(DownloadError, match="must name the commit of"):
            HubClient("a test").describe(NAME)
        return
    model = HubClient("a test").describe(NAME)
    assert model.license == ""
    assert (model.files == {}) == ("cardData" not in changes)


@pytest.mark.parametrize("answer", [b"<html>", b"[" * 100_000, b"[1]", b"5", b"", b"\xff"])
def test_an_answer_that_is_no_json_object_is_one_paragraph(answer, hub):
    lying(hub, answer)
    with pytest.raises(DownloadError, match="must answer requests for org/tiny-en-fr, but did not"):
        HubClient("a test").describe(NAME)


@pytest.mark.parametrize(
    "endpoint",
    ["ftp://x", "x", "http://", "http://[::1", "huggingface.co", "http://x:99999", "file:///etc"],
)
def test_an_endpoint_that_is_no_address_is_refused(endpoint, hub, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    with pytest.raises(DownloadError, match="HF_ENDPOINT must be the address of a hub"):
        HubClient("a test")


def test_the_password_of_an_endpoint_is_not_shown(hub, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://me:secret@127.0.0.1:9/hub/")
    client = HubClient("a test")
    assert client.shown == "http://127.0.0.1:9/hub"
    with pytest.raises(DownloadError) as caught:
        client.describe(NAME)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("token", ["hf_\x07a", "hf_é", "x" * 5000])
def test_a_token_that_no_request_can_hold_is_refused_and_not_shown(token, hub, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", token)
    with pytest.raises(ExchangeError) as caught:
        HubClient("a test")
    assert token not in str(caught.value)


def test_a_token_stays_with_the_hub(hub, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", READER)
    seen = []

    def lie(handler, method, path):
        seen.append((handler.headers["Host"].partition(":")[0], handler.token))
        if path.startswith("/api/"):
            place = f"http://localhost:{hub.server_port}/elsewhere"
            handler._answer(302, b"", {"Location": place})
            return True
        return False

    hub.lie = lie
    with pytest.raises(DownloadError, match="answers 404"):
        HubClient("a test").describe(NAME)
    assert seen == [("127.0.0.1", READER), ("localhost", "")]


def test_a_cache_that_is_no_folder_is_one_paragraph(hub, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("mine")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "file"))
    client = HubClient("a test")
    with pytest.raises(StorageError, match="must be a new or existing folder"):
        client.fetch(client.describe(NAME), "config.json")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_file_that_was_damaged_on_disk_is_fetched_again(hub):
    client = HubClient("a test")
    model = client.describe(NAME)
    path = client.fetch(model, "config.json")
    right = path.read_bytes()
    path.resolve().write_bytes(b"damaged")
    assert client.fetch(model, "config.json").read_bytes() == right
    # a link that leads elsewhere is replaced, and what it leads to is left alone
    elsewhere = path.parent / "elsewhere"
    elsewhere.write_text("mine")
    path.unlink()
    path.symlink_to(elsewhere)
    assert client.fetch(model, "config.json").read_bytes() == right
    assert elsewhere.read_text() == "mine"
