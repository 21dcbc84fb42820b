"""Cached files are read only if nobody else could have written them."""

import os
import stat
from pathlib import Path

import pytest

from heedful.machine.processor import cache_folder, check_owned, read_cached, write_cached


@pytest.fixture
def base(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_new_folders_are_the_users_alone_whatever_the_umask(base):
    before = os.umask(0)
    try:
        folder = cache_folder()
        write_cached(folder / "file", b"x")
    finally:
        os.umask(before)
    assert folder == base / "heedful"
    assert (mode(base), mode(folder), mode(folder / "file")) == (0o700, 0o700, 0o600)


def test_an_older_folder_is_closed_to_readers(base):
    (base / "heedful").mkdir(parents=True)
    (base / "heedful").chmod(0o755)
    assert mode(cache_folder()) == 0o700


@pytest.mark.parametrize("bits", [0o777, 0o770, 0o1777])
def test_a_folder_that_others_can_write_is_refused(base, bits):
    (base / "heedful").mkdir(parents=True)
    (base / "heedful").chmod(bits)
    with pytest.raises(PermissionError, match=f"heedful must not be writable by others.*{bits:o}"):
        cache_folder()


def test_so_is_one_below_a_folder_that_others_can_write(base):
    base.mkdir()
    base.chmod(0o1777)  # like /tmp
    assert cache_folder() == base / "heedful"
    base.chmod(0o777)
    with pytest.raises(PermissionError, match="cache must not be writable by others"):
        cache_folder()


def test_the_way_of_a_link_is_checked(base, tmp_path):
    shared, mine = tmp_path / "shared", tmp_path / "mine"
    shared.mkdir()
    mine.mkdir()
    (shared / "hop").symlink_to("../mine")
    base.symlink_to("shared/hop")
    assert cache_folder() == base / "heedful"
    shared.chmod(0o777)  # whoever writes there leads the link elsewhere
    with pytest.raises(PermissionError, match="shared must not be writable by others"):
        cache_folder()


def test_links_in_a_circle_are_refused(base):
    base.symlink_to(base)
    with pytest.raises(OSError, match="cache"):
        cache_folder()


def test_another_users_file_is_refused(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"x")
    file.chmod(0o600)
    check_owned(file, file.stat())
    theirs = list(file.stat())
    theirs[stat.ST_UID] = 4711
    with pytest.raises(PermissionError, match="must belong to you or root"):
        check_owned(file, os.stat_result(theirs), user=4712)
    theirs[stat.ST_UID] = 0
    check_owned(file, os.stat_result(theirs), user=4712)


def test_only_plain_files_are_read(base):
    folder = cache_folder()
    write_cached(folder / "file", b"x")
    assert read_cached(folder / "file") == b"x"
    (folder / "link").symlink_to("file")
    os.mkfifo(folder / "pipe", 0o600)
    (folder / "folder").mkdir()
    for name in ("link", "pipe", "folder"):
        with pytest.raises(OSError, match=name):
            read_cached(folder / name)


@pytest.mark.parametrize("relative", ["cache", "./cache", ""])
def test_a_relative_folder_counts_as_none(tmp_path, monkeypatch, relative):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", relative)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home" / ".cache" / "heedful"
    monkeypatch.setenv("HOME", "home")
    with pytest.raises(FileNotFoundError, match="no home folder; set XDG_CACHE_HOME"):
        cache_folder()
    assert sorted(Path().iterdir()) == [Path("home")]
