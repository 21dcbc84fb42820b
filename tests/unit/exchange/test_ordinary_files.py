import os

import pytest

from heedful.errors import ExchangeError
from heedful.exchange.ordinary_files import check_ordinary_files


def test_pipes_and_devices_are_refused_and_named(tmp_path):
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    (tmp_path / "variables").mkdir()
    (tmp_path / "link").symlink_to("config.json")
    (tmp_path / "nowhere").symlink_to("gone")
    check_ordinary_files(tmp_path)
    check_ordinary_files(tmp_path / "config.json")
    check_ordinary_files(tmp_path / "gone")
    (tmp_path / "model.bin").symlink_to("/dev/null")
    with pytest.raises(ExchangeError, match=r"model\.bin is a pipe or a device"):
        check_ordinary_files(tmp_path)
    os.mkfifo(tmp_path / "a.json")
    with pytest.raises(ExchangeError, match=r"a\.json is a pipe or a device"):
        check_ordinary_files(tmp_path)
