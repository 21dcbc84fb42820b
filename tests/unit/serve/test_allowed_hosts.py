"""The hosts that a request may be to: those of this machine, and those that are named."""

import pytest

from heedful.errors import SettingError
from heedful.serve.allowed_hosts import AllowedHosts
from heedful.serve.limits import HttpError

LOCAL = ["localhost", "LocalHost:8080", "localhost.", "127.0.0.1:5000", "127.9.9.9", "[::1]:80"]
LOCAL += ["[::1]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]:1", ""]
FOREIGN = ["rebound.example", "rebound.example:5000", "localhost.example", "127.0.0.1.example"]
FOREIGN += ["10.0.0.7", "0.0.0.0:5000", "[::]", "[2001:db8::1]", "localhost:80:80", "[::1", "::1"]
FOREIGN += ["127.0.0.1@rebound.example", "\xe4", "x" * 5000]


def is_allowed(hosts, header):
    try:
        hosts.check(header)
    except HttpError as refused:
        assert refused.status == 421
        assert "--allow-host" in refused.text
        assert len(refused.text) < 500
        return False
    return True


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.3", "::1"])
def test_a_server_of_this_machine_answers_to_its_own_names(address):
    hosts = AllowedHosts((), address)
    assert [header for header in LOCAL if not is_allowed(hosts, header)] == []
    assert [header for header in FOREIGN if is_allowed(hosts, header)] == []


def test_named_hosts_are_allowed_too():
    hosts = AllowedHosts(["Translate.Example.", "10.0.0.7", "[2001:DB8:0::1]"], "127.0.0.1")
    named = ["translate.example:443", "TRANSLATE.EXAMPLE", "translate.example.", "10.0.0.7:80"]
    named += ["[2001:db8::1]:5000"]
    assert [header for header in (*LOCAL, *named) if not is_allowed(hosts, header)] == []
    rest = [header for header in FOREIGN if header not in ("10.0.0.7", "[2001:db8::1]")]
    rest += ["www.translate.example", "translate.example.org"]
    assert [header for header in rest if is_allowed(hosts, header)] == []


@pytest.mark.parametrize(
    ("names", "address"), [(["*"], "127.0.0.1"), ([], "0.0.0.0"), ([], "192.0.2.1"), ([], "::")]
)
def test_any_host_is_allowed_where_that_is_wanted_or_the_server_is_public(names, address):
    hosts = AllowedHosts(names, address)
    assert all(is_allowed(hosts, header) for header in (*LOCAL, *FOREIGN))


def test_a_public_server_answers_to_its_names_alone():
    hosts = AllowedHosts(["translate.example"], "0.0.0.0")
    assert is_allowed(hosts, "translate.example")
    assert is_allowed(hosts, "localhost:5000")
    assert not is_allowed(hosts, "rebound.example")


@pytest.mark.parametrize("name", ["https://a.example", "a.example:80", "", "*.example", "a b", "-"])
def test_a_name_is_a_host_alone(name):
    with pytest.raises(SettingError, match=r"--allow-host must be a host name such as .* but is"):
        AllowedHosts([name], "127.0.0.1")
