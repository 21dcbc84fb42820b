"""Sockets and messages between systemd and the server."""

import os
import socket

import pytest

from heedful.errors import SettingError
from heedful.serve.systemd import notify, passed_sockets


@pytest.mark.parametrize("process", ["", "1", "x"])
def test_sockets_of_another_process_are_not_taken(monkeypatch, process):
    monkeypatch.setenv("LISTEN_PID", process)
    monkeypatch.setenv("LISTEN_FDS", "1")
    assert passed_sockets() == []
    assert "LISTEN_FDS" not in os.environ


def test_a_process_without_sockets_has_none(monkeypatch):
    monkeypatch.delenv("LISTEN_PID", raising=False)
    assert passed_sockets() == []


def test_what_does_not_listen_is_refused(monkeypatch):
    with socket.socket() as connecting:
        monkeypatch.setattr("heedful.serve.systemd._FIRST", os.dup(connecting.fileno()))
        monkeypatch.setenv("LISTEN_PID", str(os.getpid()))
        monkeypatch.setenv("LISTEN_FDS", "1")
        with pytest.raises(SettingError, match="must listen on TCP"):
            passed_sockets()


def test_a_state_is_sent_where_systemd_wants_it(monkeypatch, tmp_path):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    notify("READY=1")
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        notify("READY=1")
        assert manager.recv(100) == b"READY=1"
