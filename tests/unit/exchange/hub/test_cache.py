"""The cache of converted models, filled by hand."""

import json
import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from heedful.errors import RunFolderError
from heedful.exchange.hub import cache
from heedful.runs.hub_names import RECORD, HubName

COMMITS = ("a" * 40, "b" * 40)


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "heedful"


def fill(commit, conversion=cache.CONVERSION):
    run = cache.ModelCache("org/one").place(commit)
    run.mkdir(parents=True)
    (run / "weights").write_bytes(b"1234")
    (run / RECORD).write_text(json.dumps({"conversion": conversion}))
    return run


def test_the_cache_is_where_the_environment_says(home, tmp_path, monkeypatch):
    assert cache.hub_cache() == home
    monkeypatch.delenv("HF_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    assert cache.hub_cache() == tmp_path / "caches" / "heedful" / "hub"


def test_a_revision_is_found_by_its_pin_and_a_commit_by_itself(home):
    models = cache.ModelCache("org/one")
    run = fill(COMMITS[0])
    assert models.find("main") is None
    assert models.find(COMMITS[0]) == run
    models.pin("main", COMMITS[0])
    assert models.find("main") == run
    assert models.find(COMMITS[1]) is None
    (home / "org--one" / "pins.json").write_text('{"main": "../../outside", "v1": 3}')
    assert models.pins() == {}


def test_a_half_written_model_and_an_earlier_conversion_are_not_found(home):
    models = cache.ModelCache("org/one")
    fill(COMMITS[0], conversion=0)
    run = fill(COMMITS[1])
    for damaged in ("", "{", "[]"):
        (run / RECORD).write_text(damaged)
        assert models.find(COMMITS[1]) is None
        assert [model.name.revision for model in cache.cached_models()] == [*COMMITS]
    (run / RECORD).unlink()
    assert [models.find(commit) for commit in COMMITS] == [None, None]
    assert [model.name.revision for model in cache.cached_models()] == [COMMITS[0]]


@pytest.mark.parametrize("damaged", ["", "{", "[]", "[" * 100_000, '{"main": NaN', "\ud800"])
@pytest.mark.parametrize("name", ["pins.json", RECORD])
def test_a_damaged_record_is_named_once_and_repaired(home, capsys, name, damaged):
    models = cache.ModelCache("org/one")
    run = fill(COMMITS[0])
    models.pin("main", COMMITS[0])
    path = next(home.rglob(name))
    path.write_bytes(damaged.encode(errors="surrogatepass"))
    assert models.find("main") is None
    assert [model.run for model in cache.cached_models()] == [run]
    said = capsys.readouterr().err
    assert said.startswith(f"{path} must ") and said.count("\n") == 1
    assert said.endswith("; heedful ignores this file, and writes it again at the next use.\n")
    models.pin("v1", COMMITS[0])
    assert models.pins()["v1"] == COMMITS[0]
    path.write_bytes(damaged.encode(errors="surrogatepass"))
    for model in cache.find_cached(HubName("org/one"), False):
        cache.ModelCache("org/one").remove(model.name.revision)
    assert not (home / "org--one").exists()


def test_models_are_listed_and_removed_with_their_pins(home):
    models = cache.ModelCache("org/one")
    for commit in COMMITS:
        fill(commit)
    models.pin("main", COMMITS[0])
    models.pin("v1", COMMITS[1])
    listed = cache.cached_models()
    assert [model.pinned for model in listed] == [("main",), ("v1",)]
    assert all(model.bytes > 4 for model in listed)
    assert cache.find_cached(HubName("org/one", "v1"), True)[0].name.revision == COMMITS[1]
    assert len(cache.find_cached(HubName("org/one"), False)) == 2
    models.remove(COMMITS[0])
    assert models.pins() == {"v1": COMMITS[1]}
    with pytest.raises(RunFolderError, match="the cache must contain org/one, but"):
        cache.find_cached(HubName("org/one"), True)
    with pytest.raises(RunFolderError, match="`heedful hub list` shows"):
        cache.find_cached(HubName("org/two"), False)


def test_nothing_is_left_of_the_last_model_that_is_removed(home):
    fill(COMMITS[0])
    cache.ModelCache("org/one").pin("main", COMMITS[0])
    cache.ModelCache("org/one").remove(COMMITS[0])
    assert [*home.iterdir()] == []
    cache.ModelCache("org/one").remove(COMMITS[0])  # as a second process that came later
    assert cache.ModelCache("org/one").models() == [] == [*home.iterdir()]


def test_of_a_commit_that_lies_elsewhere_the_link_is_removed(home, tmp_path):
    place = fill(COMMITS[0]).parent
    shutil.move(place, tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    cache.ModelCache("org/one").remove(COMMITS[0])
    assert [*home.iterdir()] == []
    assert (tmp_path / "elsewhere" / "one" / "weights").is_file()


def test_what_a_killed_conversion_left_goes_with_the_next_use(home):
    fill(COMMITS[0])
    left = home / "org--one" / f".{COMMITS[1]}.partial"
    left.mkdir()
    cache.ModelCache("org/one").remove(COMMITS[0])
    assert [*home.iterdir()] == []


def test_the_folder_may_go_while_others_wait_for_it(home):
    models, inside = cache.ModelCache("org/one"), []

    def convert(number):
        with models.locked():
            inside.append(number)
            (models.folder / "content").touch()
            time.sleep(0.01)
            assert (models.folder / "content").is_file()
            (models.folder / "content").unlink()
            inside.append(number)

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(convert, range(24))) == [None] * 24
    assert inside[::2] == inside[1::2]
    assert [*home.iterdir()] == []


def test_one_converts_while_others_wait(home, capsys):
    inside, most = [], []

    def convert():
        with cache.ModelCache("org/one").locked():
            inside.append(os.getpid())
            most.append(len(inside))
            time.sleep(0.05)
            inside.pop()

    threads = [threading.Thread(target=convert) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1, 1, 1, 1]
    assert "another process is converting it; waiting" in capsys.readouterr().err
