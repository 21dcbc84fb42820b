"""A port belongs to one server from the moment it is bound."""

import socket

import pytest

from heedful.errors import SettingError
from heedful.serve.server import listen


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::1"])
def test_a_port_is_taken_before_anything_is_loaded(host):
    with listen(host, 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(SettingError, match=rf"--host and --port .* {host} and {port} are not"):
            listen(host, port)
        # A client that comes while models are loaded waits for its answer.
        with socket.create_connection((host, port)) as early:
            early.sendall(b"early")
            accepted, _ = first.accept()
            with accepted:
                assert accepted.recv(5) == b"early"
    with listen(host, port) as again:
        assert again.getsockname()[1] == port
