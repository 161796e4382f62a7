"""The network that cluster tests stand on. The cluster itself takes minutes: `make cluster-test`."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.network import Network, impossible

ECHO = """
import socket, sys
with socket.create_server((sys.argv[1], 7000)) as server:
    print("listening", flush=True)
    connection, address = server.accept()
    connection.sendall(address[0].encode())
"""
ASK = """
import socket, sys
with socket.create_connection((sys.argv[1], 7000), timeout=5) as connection:
    print(connection.recv(100).decode())
"""


def test_hosts_reach_each_other_by_their_addresses_unless_a_cable_is_pulled(tmp_path: Path) -> None:
    if reason := impossible():
        pytest.skip(f"no network namespaces here: {reason}")
    with Network() as network:
        first, second = network.node(1), network.node(2)
        server = first.start([sys.executable, "-c", ECHO, first.address], tmp_path, tmp_path / "log", {})
        while b"listening" not in (tmp_path / "log").read_bytes():
            assert server.poll() is None, (tmp_path / "log").read_text()
        asked = subprocess.run(second.inside([sys.executable, "-c", ASK, first.address]), capture_output=True, text=True)
        assert asked.stdout.strip() == second.address, asked.stderr
        assert server.wait(10) == 0
        second.plug(False)
        down = subprocess.run(second.inside([sys.executable, "-c", ASK, first.address]), capture_output=True, text=True)
        assert down.returncode != 0 and ("timed out" in down.stderr or "unreachable" in down.stderr or "No route" in down.stderr)
    assert impossible() == ""
