import json

import pytest

from heedful.errors import RunFolderError, SettingError
from heedful.paper.claims.check import CLAIMS, check_claims, to_dict, to_markdown


def test_claims_are_decided_drawn_and_kept(tmp_path):
    said = []
    found = check_claims(["shift", "convolution"], tmp_path, said.append)
    assert [*found] == ["shift", "convolution"]
    assert said == [CLAIMS["shift"].said, CLAIMS["convolution"].said]
    for name in found:
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "claims.md").read_text("utf-8") == to_markdown(found)
    assert json.loads((tmp_path / "claims.json").read_text("utf-8")) == to_dict(found)
    said.clear()
    assert check_claims(["shift", "convolution"], tmp_path, said.append) == found
    assert not said  # nothing is measured again


def test_unknown_claims_and_damaged_files_are_refused(tmp_path):
    with pytest.raises(SettingError, match=r"NAME must be one of convolution.*but is 'none'"):
        check_claims(["none"], tmp_path)
    (tmp_path / "shift.json").write_text("[]", encoding="utf-8")
    with pytest.raises(RunFolderError, match="must hold a measured claim"):
        check_claims(["shift"], tmp_path)
