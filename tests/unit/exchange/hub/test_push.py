"""A run goes to the hub and comes back; the server stores what huggingface_hub sends."""

import pytest

from heedful.bench.random_run import make_random_run
from heedful.config.schema import RunConfig
from heedful.errors import ExchangeError
from heedful.exchange.card.model_card import CardFacts
from heedful.exchange.hub.push import push_run
from heedful.runs.hub_names import HubName, run_folder
from heedful.translation.translator import Translator
from tests.support.hub import READER, WRITER

NAME = "org/tiny-en-fr"
# The library sends files as it should not any more, and says so.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content:DeprecationWarning")
LINES = ["the dog", "a cat sees the bird"]


@pytest.fixture
def writer(hub, monkeypatch):
    """The token of somebody who may write."""
    monkeypatch.setenv("HF_TOKEN", WRITER)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    return hub


def test_a_run_is_uploaded_with_its_card_and_translates_alike_from_there(writer):
    page, parity, _ = push_run(
        NAME, HubName("me/mine"), private=True, facts=CardFacts("cc-by-4.0"), message="First"
    )
    assert parity.same_outputs == parity.sentences
    repository = writer.repositories["me/mine"]
    assert repository.private
    commit = repository.branches["main"]
    assert page == f"{writer.url}/me/mine/commit/{commit}"
    files = repository.commits[commit]
    assert {"config.json", "model.safetensors", "source.spm", "README.md"} <= {*files}
    card = files["README.md"].decode()
    assert 'license: "cc-by-4.0"' in card
    assert "# mine\n" in card
    assert "AutoTokenizer.from_pretrained('me/mine')" in card
    assert "pip install 'heedful[hub]'\nheedful import me/mine --from huggingface" in card
    ours, theirs = (Translator.load(name, device="cpu") for name in (NAME, "me/mine"))
    assert [line.text for line in ours.translate(LINES)] == [
        line.text for line in theirs.translate(LINES)
    ]


def test_a_branch_is_made_and_a_card_is_replaced_until_it_is_edited(writer, converted, capsys):
    for count, license in enumerate(("mit", "cc-by-4.0")):
        push_run(converted, HubName("me/mine", "v1"), facts=CardFacts(license))
        repository = writer.repositories["me/mine"]
        assert len(repository.commits) == 2 + count
        card = repository.commits[repository.branches["v1"]]["README.md"]
        assert f'license: "{license}"'.encode() in card
        assert b"AutoTokenizer.from_pretrained('me/mine', revision='v1')" in card
    assert "config.json" not in repository.commits[repository.branches["main"]]
    assert run_folder("me/mine@v1").is_dir()
    assert "edited" not in capsys.readouterr().err
    edited = card.replace(b"## Use", b"Not for medicine.\n\n## Use")
    repository.add({"README.md": edited, "vocab.json": b"old"}, "v1")
    push_run(converted, HubName("me/mine", "v1"))
    files = repository.commits[repository.branches["v1"]]
    assert files["README.md"] == edited
    assert files["vocab.json"] != b"old"
    assert "me/mine@v1: README.md was edited, or written by another" in capsys.readouterr().err


def test_files_that_another_model_left_are_deleted_and_the_rest_stays(writer, converted):
    left = ("tokenizer.json", "pytorch_model.bin", "model-00001-of-00002.safetensors")
    writer.add("me/used", dict.fromkeys((*left, "notes.txt", "vocab.json"), b"old"))
    push_run(converted, HubName("me/used"))
    repository = writer.repositories["me/used"]
    files = repository.commits[repository.branches["main"]]
    assert not files.keys() & {*left}
    assert files["notes.txt"] == b"old"
    assert files["vocab.json"] != b"old"


def test_a_private_upload_into_a_public_repository_is_refused(writer, converted):
    writer.add("me/public", {"README.md": b"mine"})
    with pytest.raises(ExchangeError, match="--private needs a private repository, but me/public"):
        push_run(converted, HubName("me/public"), private=True)
    assert len(writer.repositories["me/public"].commits) == 1


def test_an_upload_is_refused_offline(writer, converted, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ExchangeError, match="needs the hub, but HF_HUB_OFFLINE"):
        push_run(converted, HubName("me/mine"))


def test_a_token_that_may_not_write_is_told(hub, converted, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", READER)
    with pytest.raises(ExchangeError, match="must allow access to me/mine, but answers 403"):
        push_run(converted, HubName("me/mine"))
    assert "me/mine" not in hub.repositories


def test_a_run_that_no_class_can_express_is_refused_with_every_reason(writer, tmp_path):
    (tmp_path / "run").mkdir()
    sizes = {"model.d_model": 16, "model.heads": 2, "model.d_ff": 16}
    make_random_run(tmp_path / "run", RunConfig().with_settings(sizes), 20)
    with pytest.raises(ExchangeError) as caught:
        push_run(tmp_path / "run", HubName("me/other"))
    for title in ("Marian: ", "T5: "):
        assert title in str(caught.value)
    assert "me/other" not in writer.repositories
