"""Models by name, from a server that answers as the hub does."""

import json
import shutil
import sys
from pathlib import Path

import pytest
import safetensors.torch
import torch

from heedful.errors import DownloadError, ExchangeError, MissingExtra
from heedful.exchange.convert import import_model
from heedful.exchange.hub import cache
from heedful.exchange.hub.fetch import download_original, fetch_run, update_run
from heedful.runs.hub_names import RECORD, HubName, pinned_name, run_folder
from heedful.runs.run import Run
from heedful.translation.translator import Translator
from tests.support.hub import READER

NAME = "org/tiny-en-fr"


def complaint(error, name=NAME):
    with pytest.raises(error) as caught:
        run_folder(name)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def record_of(run):
    return json.loads((run / RECORD).read_text())


def test_a_model_is_fetched_converted_compared_and_recorded_once(hub, original, tmp_path, capsys):
    run = run_folder(NAME)
    message = capsys.readouterr().err
    assert "license: apache-2.0" in message
    assert "3 of 3 translations equal" in message
    record = record_of(run)
    commit = hub.repositories[NAME].branches["main"]
    assert (record["name"], record["revision"], record["commit"]) == (NAME, "main", commit)
    assert (record["license"], record["conversion"]) == ("apache-2.0", cache.CONVERSION)
    assert record["parity"]["same_outputs"] == 3
    assert record["files"]["model.safetensors"]["bytes"] == (
        (original / "model.safetensors").stat().st_size
    )
    asked = len(hub.requests)
    assert run_folder(NAME) == run
    assert run_folder(f"{NAME}@{commit}") == run
    assert len(hub.requests) == asked
    assert capsys.readouterr().err == ""
    assert pinned_name(NAME) == f"{NAME}@{commit}"

    import_model("marian", original, tmp_path / "by-hand")
    ours = Translator.load(NAME, device="cpu").translate(["the dog", "a cat"])
    assert ours == Translator.load(tmp_path / "by-hand", device="cpu").translate(
        ["the dog", "a cat"]
    )


def test_only_needed_files_are_fetched_and_nothing_is_executed(hub, tmp_path):
    code = f"open({str(tmp_path / 'executed')!r}, 'w')"
    files = {name: code.encode() for name in ("modeling.py", "tf_model.h5", "pytorch_model.bin")}
    config = json.loads(hub.repositories[NAME].commits[hub.add(NAME, files)]["config.json"])
    config |= {"auto_map": {"AutoModel": "modeling.Model"}}
    hub.add(NAME, {"config.json": json.dumps(config).encode()})
    run = run_folder(NAME)
    assert Run.open(run).config.model.d_model == 16
    assert not (tmp_path / "executed").exists()
    fetched = [name for name in hub.fetched() if name.endswith((".py", ".h5", ".bin"))]
    assert fetched == []


@pytest.mark.parametrize("layout", ["pickle", "shards"])
def test_weights_come_in_any_layout(layout, hub, original):
    tensors = safetensors.torch.load_file(original / "model.safetensors")
    place = Path("other")
    shutil.copytree(original, place)
    (place / "model.safetensors").unlink()
    if layout == "pickle":
        torch.save(tensors, place / "pytorch_model.bin")
    else:
        names, places = [*tensors], {}
        for number, part in enumerate((names[::2], names[1::2])):
            file = f"model-{number + 1:05}-of-00002.safetensors"
            safetensors.torch.save_file({name: tensors[name] for name in part}, place / file)
            places |= dict.fromkeys(part, file)
        index = place / "model.safetensors.index.json"
        index.write_text(json.dumps({"metadata": {}, "weight_map": places}))
    hub.add_folder("org/other", place)
    assert record_of(run_folder("org/other"))["parity"]["same_outputs"] == 3


def test_a_revision_stays_pinned_until_it_is_updated(hub, original, capsys):
    first = run_folder(NAME)
    old = hub.repositories[NAME].branches["main"]
    config = json.loads((original / "generation_config.json").read_text())
    changed = json.dumps({**config, "num_beams": 2}).encode()
    new = hub.add(NAME, {"generation_config.json": changed})
    assert run_folder(NAME) == run_folder(f"{NAME}@main") == first
    assert update_run(HubName(NAME)) == (old, new)
    assert run_folder(NAME) == cache.ModelCache(NAME).place(new) != first
    assert Run.open(NAME).config.search.beam == 2
    assert update_run(HubName(NAME)) == (new, new)
    assert run_folder(f"{NAME}@{old}") == first
    hub.add(NAME, {"generation_config.json": changed}, branch="v1")
    assert "has no 'v1'" not in capsys.readouterr().err
    with pytest.raises(ExchangeError, match="the hub has no 'v2'"):
        run_folder(f"{NAME}@v2")


def test_a_download_that_is_cut_goes_on_where_it_ended(hub):
    hub.cuts["model.safetensors"] = 2
    run = run_folder(NAME)
    assert record_of(run)["parity"]["same_outputs"] == 3
    assert hub.cuts["model.safetensors"] == 0


@pytest.mark.parametrize("file", ["model.safetensors", "vocab.json"])
def test_an_altered_file_is_fetched_again_and_then_refused(file, hub):
    hub.altered[file] = 2
    message = complaint(DownloadError)
    assert f"{file} of {NAME}" in message and "must have the digest" in message
    assert cache.ModelCache(NAME).models() == []
    hub.altered[file] = 1
    assert record_of(run_folder(NAME))["parity"]["same_outputs"] == 3
    assert hub.altered[file] == 0


def test_offline_what_is_here_is_used_and_the_rest_is_refused(hub, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert "must have been fetched before it is used offline" in complaint(DownloadError)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    run = run_folder(NAME)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    asked = len(hub.requests)
    assert run_folder(NAME) == run
    # What another program has downloaded is converted without the hub, too.
    shutil.rmtree(run.parent)
    commit = hub.repositories[NAME].branches["main"]
    assert run_folder(f"{NAME}@{commit}") == run
    assert record_of(run)["license"] == "not stated"
    assert len(hub.requests) == asked


def test_a_hub_that_does_not_answer_is_one_paragraph(hub, monkeypatch):
    hub.status = 503
    assert "answers 503; try again later" in complaint(DownloadError)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert "http://127.0.0.1:9 must answer requests for org/tiny-en-fr, but did not" in complaint(
        DownloadError
    )


def test_what_is_missing_private_or_gated_is_told_with_what_to_do(hub, original, monkeypatch):
    assert "is neither, or is private; check the spelling" in complaint(
        ExchangeError, "org/nothing"
    )
    hub.add_folder("org/private", original, private=True)
    hub.add_folder("org/gated", original, gated=True)
    assert "or is private" in complaint(ExchangeError, "org/private")
    assert "accept it on" in complaint(ExchangeError, "org/gated")
    monkeypatch.setenv("HF_TOKEN", READER)
    # The host of large files must not see the token, and refuses one here.
    assert run_folder("org/private").is_dir()
    assert run_folder("org/gated").is_dir()


def test_models_that_cannot_be_read_are_refused_before_their_weights_are_fetched(hub):
    hub.add("org/bert", {"config.json": b'{"model_type": "bert"}', "model.safetensors": b"large"})
    hub.add("org/none", {"README.md": b"text"})
    hub.add("org/flax", {"config.json": b'{"model_type": "marian"}', "flax_model.msgpack": b""})
    assert "is a model of Hugging Face's class BERT" in complaint(ExchangeError, "org/bert")
    assert "must contain config.json" in complaint(DownloadError, "org/none")
    assert "must contain weights for PyTorch" in complaint(ExchangeError, "org/flax")
    assert all("cdn" not in name for name in hub.fetched())


def test_a_damaged_model_leaves_nothing_that_is_taken_for_whole(hub, original):
    hub.add(NAME, {"vocab.json": b"{"})
    assert "must be a JSON file" in complaint(ExchangeError)
    assert cache.ModelCache(NAME).models() == []
    assert cache.ModelCache(NAME).pins() == {}
    hub.add(NAME, {"vocab.json": (original / "vocab.json").read_bytes()})
    assert run_folder(NAME).is_dir()


def test_an_earlier_conversion_is_made_again(hub, monkeypatch):
    run = run_folder(NAME)
    monkeypatch.setattr(cache, "CONVERSION", cache.CONVERSION + 1)
    monkeypatch.setattr("heedful.exchange.hub.fetch.CONVERSION", cache.CONVERSION)
    assert fetch_run(HubName(NAME)) == run
    assert record_of(run)["conversion"] == cache.CONVERSION


def test_an_original_is_downloaded_once_to_be_imported_with_options(
    hub, original, tmp_path, capsys, monkeypatch
):
    hub.add_folder(NAME, original, branch="v1/first")
    assert download_original(HubName(NAME, "v1/first")).is_dir()
    folder = download_original(HubName(NAME))
    assert "license: apache-2.0" in capsys.readouterr().err
    asked = len(hub.requests)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert (
        download_original(HubName(NAME)) == folder != download_original(HubName(NAME, "v1/first"))
    )
    assert len(hub.requests) == asked
    report, _ = import_model("huggingface", folder, tmp_path / "run")
    assert report.parity.same_outputs == 3
    assert cache.cached_models() == []


def test_a_missing_library_is_named_with_its_extra(hub, monkeypatch):
    for module in [name for name in sys.modules if name.partition(".")[0] == "huggingface_hub"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert complaint(MissingExtra).endswith("install it with: pip install 'heedful[hub]'")
