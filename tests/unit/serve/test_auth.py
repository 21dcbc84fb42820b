"""Keys, rates and the addresses behind proxies."""

import pytest
from fastapi import Request

from heedful.errors import SettingError
from heedful.serve.auth import Auth, RateLimit, client_of, read_proxies
from heedful.serve.limits import HttpError


def request(host, key=""):
    headers = [(b"authorization", b"Bearer " + key.encode())] if key else []
    return Request({"type": "http", "headers": headers, "client": (host, 1)})


def status(gate, host, key=""):
    try:
        gate.check(request(host, key))
    except HttpError as refused:
        assert refused.status != 429 or refused.retry_after >= 1
        return refused.status
    return 200


@pytest.fixture
def keys(tmp_path):
    path = tmp_path / "keys.txt"
    path.write_text("right\n", encoding="utf-8")
    return path


def test_after_some_wrong_keys_an_address_is_told_nothing_more(keys):
    gate = Auth(keys, wrong_keys=3)
    assert [status(gate, "192.0.2.1", "wrong") for _ in range(4)] == [403, 403, 403, 429]
    assert status(gate, "192.0.2.1", "right") == 429  # else a guess could be told apart
    assert status(gate, "192.0.2.1") == 403  # no key is not a guess
    assert status(gate, "192.0.2.2", "right") == 200


def test_right_keys_and_no_key_are_no_wrong_ones(keys):
    gate = Auth(keys, wrong_keys=1)
    assert [status(gate, "192.0.2.1", "right") for _ in range(5)] == [200] * 5
    assert [status(gate, "192.0.2.1") for _ in range(5)] == [403] * 5
    assert [status(Auth(keys, wrong_keys=0), "192.0.2.1", "wrong") for _ in range(20)] == [403] * 20


# The last bytes of à and Å in UTF-8 are spaces in Latin-1.
@pytest.mark.parametrize("key", ["schlüssel", "voilà", "Å"])
def test_a_key_may_have_any_letter_in_the_header_and_in_the_body(keys, key):
    keys.write_text(f"{key}\n", encoding="utf-8")
    gate = Auth(keys)
    assert status(gate, "192.0.2.1", key) == 200
    gate.check(request("192.0.2.1"), key)


def test_a_client_is_told_when_its_next_request_is_allowed(monkeypatch):
    clock, limit = [100.0], RateLimit(4)
    monkeypatch.setattr("heedful.serve.auth.time.monotonic", lambda: clock[0])
    for _ in range(4):
        limit.take("client")
    for clock[0], seconds in ((100.0, 16), (107.5, 8), (120.0, 0)):
        assert limit.wait("client") == seconds


def test_a_network_of_version_six_is_one_client():
    gate = Auth(per_minute=2)
    hosts = ["2001:db8::1", "2001:db8::2", "2001:db8:0:0:ffff::3", "2001:db8:0:1::1"]
    assert [status(gate, host) for host in hosts] == [200, 200, 429, 200]
    assert client_of("::ffff:192.0.2.1") == "192.0.2.1"
    assert client_of("no address") == "no address"


def test_proxies_are_addresses_and_networks():
    assert read_proxies("") == ()
    assert read_proxies(" 127.0.0.1, 10.0.0.0/8,::1") == ("127.0.0.1/32", "10.0.0.0/8", "::1/128")
    for wrong in ("*", "localhost", "10.0.0.1/8"):
        with pytest.raises(SettingError, match="--trusted-proxies must be addresses or networks"):
            read_proxies(wrong)
