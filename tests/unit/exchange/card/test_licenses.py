import pytest

from heedful.errors import ExchangeError
from heedful.exchange.card.licenses import license_entries


def test_a_license_of_the_hub_keeps_its_identifier():
    assert license_entries("CC-BY-4.0") == ({"license": "cc-by-4.0"}, "`cc-by-4.0`.")


def test_another_one_has_a_name():
    entries = license_entries("My Own <License>")
    assert entries.fields == {"license": "other", "license_name": "my-own-license"}
    assert entries.sentence == "`My Own <License>`."


def test_none_is_not_stated():
    assert license_entries("") == ({}, "Not stated.")


@pytest.mark.parametrize("text", ["a\nb", " ", "x" * 101, "\u202emit", "--"])
def test_what_is_no_name_is_refused(text):
    with pytest.raises(ExchangeError, match="--license must be the name of a license"):
        license_entries(text)
