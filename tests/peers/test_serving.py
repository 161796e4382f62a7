"""Layer servers: who gets what from them, and how they come and go. Real processes on loopback."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import flight

from nosync.journal.names import RECEIPTS, layer_path
from nosync.model.errors import Unavailable
from nosync.model.hash_range import ALL_HASHES
from nosync.model.layers import LayerInfo
from nosync.model.places import to_ask
from nosync.model.processes import is_running
from nosync.peers.client import CLIENTS, fetch, tell
from nosync.peers.home import HomeServer
from nosync.peers.host import LayerHost, Worker, home_host
from nosync.peers.server import MOST_TRANSFERS, LayerServer
from nosync.peers.serving import Order, is_own_folder
from nosync.peers.tidying import lying
from nosync.state.layer import open_layer, verify, write_layer
from tests.crash.waiting import until

RUN = "1.0123abcd"
FACTS = {"flow": "shop", "trace": "v", "range": ALL_HASHES, "lower": 1, "upper": 2, "kind": "diffs", "run": RUN}


def written(root: Path, rows: int = 3) -> LayerInfo:
    numbers = pa.array(range(rows), pa.uint64())
    batch = pa.RecordBatch.from_pydict({"_hash": numbers, "_row": numbers, "c0": numbers, "_count": pa.array([1] * rows, pa.int64())})
    return write_layer(root, layer_path("v", ALL_HASHES, 1, 2, RUN), [batch], **FACTS)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[HomeServer]:
    found = HomeServer(RUN, home, "127.0.0.1", "127.0.0.1")
    yield found
    found.close()


def elsewhere(server: HomeServer, folder: Path) -> LayerHost:
    """Another host."""
    worker = Worker(replace(server.sharing, folder=str(folder)))
    return LayerHost(worker.sharing, worker.root, worker.place)


def reading(server: HomeServer, folder: Path) -> LayerHost:
    """One that nobody asks."""
    return LayerHost(server.sharing, folder, lambda: "127.0.0.1:1")


def test_a_layer_comes_as_it_was_written_from_the_home_or_from_where_it_was_written(server: HomeServer, home: Path, tmp_path: Path) -> None:
    there, here = elsewhere(server, tmp_path / "there"), reading(server, tmp_path / "here")
    at_home, far = written(home, 300_000), there.wrote(written(there.root))
    for layer in (at_home, far):
        assert verify(open_layer(here.having(layer), layer)).rows == layer.rows
    assert far.place.startswith("127.0.0.1:") and far.place != server.sharing.driver
    assert (here.root / far.path).read_bytes() == (there.root / far.path).read_bytes()
    assert home_host(server.sharing, home).having(far) == home and (home / far.path).exists()
    tell(server.sharing, far.place, "kept", [far.path])
    assert lying(str(there.root / far.path), far.path).spare and lying(str(here.root / far.path), far.path).spare
    assert not lying(str(home / far.path), far.path).spare
    tell(server.sharing, far.place, "end")
    until(lambda: not there.root.exists())
    assert (home / at_home.path).exists()


def test_what_came_is_not_asked_for_again(server: HomeServer, home: Path, tmp_path: Path) -> None:
    here, layer = reading(server, tmp_path), written(home)
    here.having(layer)
    (home / layer.path).unlink()
    assert open_layer(here.having(layer), layer).rows == 3


def test_damage_is_not_taken_over(server: HomeServer, home: Path, tmp_path: Path) -> None:
    here, layer = reading(server, tmp_path / "here"), written(home, 1000)
    content = bytearray((home / layer.path).read_bytes())
    content[len(content) // 2] ^= 1
    (home / layer.path).write_bytes(content)
    with pytest.raises(Unavailable, match="nowhere to be had"):
        here.having(layer)
    (home / layer.path).write_bytes(content * 2)
    with pytest.raises(Unavailable, match="nowhere to be had"):
        here.having(layer)
    assert not list((tmp_path / "here").rglob("*.arrow*"))


def test_what_is_damaged_here_is_fetched_anew(server: HomeServer, home: Path, tmp_path: Path) -> None:
    here, layer = reading(server, tmp_path), written(home, 1000)
    here.having(layer)
    content = bytearray((home / layer.path).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / layer.path).chmod(0o600)
    (tmp_path / layer.path).write_bytes(content)
    assert here.open(layer, lambda root, info: verify(open_layer(root, info))).rows == 1000


def test_who_lacks_the_token_gets_nothing(server: HomeServer, home: Path, tmp_path: Path) -> None:
    layer = written(home)
    for token in ("", "0" * 64, server.sharing.token[:-1], server.sharing.token + "0"):
        stranger = replace(server.sharing, token=token)
        with pytest.raises(Unavailable, match="token"):
            fetch(stranger, stranger.driver, layer, tmp_path)
        with pytest.raises(Unavailable, match="token"):
            tell(stranger, stranger.driver, "receipt", {"folder": f"{RUN}-01234567", "facts": {}})
    assert server.sharing.token not in repr(server.sharing)


@pytest.mark.parametrize("name", ["../secret", "secret", "layers/v/../../secret", "layers/v/0-f/../../../secret", "/etc/passwd", 7, None])
def test_nothing_but_layers_is_given(server: HomeServer, home: Path, name: object) -> None:
    (home / "secret").write_text("secret")
    ticket = flight.Ticket(json.dumps({"path": name}).encode())
    options = flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {server.sharing.token}".encode())])
    with pytest.raises(flight.FlightServerError, match="no name of a layer"):
        CLIENTS.to(server.sharing, server.sharing.driver).do_get(ticket, options).read_all()


def test_receipts_are_left_in_the_home_and_nowhere_else(server: HomeServer, home: Path) -> None:
    driver = server.sharing.driver
    tell(server.sharing, driver, "receipt", {"folder": f"{RUN}-01234567", "facts": {"rows": 1}})
    assert [json.loads(file.read_text()) for file in (home / RECEIPTS / f"{RUN}-01234567").iterdir()] == [{"rows": 1}]
    for folder in ("../../x", "x", f"{RUN}-01234567/..", ["x"]):
        with pytest.raises(Unavailable, match="no receipt"):
            tell(server.sharing, driver, "receipt", {"folder": folder, "facts": {}})


def test_the_home_is_never_deleted(server: HomeServer, home: Path) -> None:
    layer = written(home)
    with pytest.raises(Unavailable, match="'end'"):
        tell(server.sharing, server.sharing.driver, "end")
    assert (home / layer.path).exists()
    assert not is_own_folder(home) and is_own_folder(home / f"nosync-{RUN}")


def test_all_tasks_of_a_host_share_a_server_and_one_that_is_gone_comes_back_at_its_place(server: HomeServer, tmp_path: Path) -> None:
    first, second = elsewhere(server, tmp_path), elsewhere(server, tmp_path)
    layer = first.wrote(written(first.root))
    assert second.place() == layer.place
    process = json.loads((first.root / "server").read_text())["process"]
    os.kill(process, 9)
    until(lambda: not is_running(process))
    third = elsewhere(server, tmp_path)
    assert third.place() == layer.place
    with pytest.raises(Unavailable, match="'receipt'"):
        tell(server.sharing, layer.place, "receipt", {"folder": f"{RUN}-01234567", "facts": {}})
    fetch(server.sharing, layer.place, layer, tmp_path / "other")


def test_a_server_ends_with_the_process_that_it_was_started_for(server: HomeServer, tmp_path: Path) -> None:
    code = f"""
from nosync.model.places import Sharing
from nosync.peers.host import Worker
print(Worker(Sharing({RUN!r}, {server.sharing.driver!r}, {server.sharing.token!r}, {str(tmp_path)!r})).place())
"""
    shell = subprocess.run(  # the owner is the parent of who asks, as the daemon is of Spark's workers
        ["sh", "-c", '"$1" -c "$2"; true', "sh", sys.executable, code], capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert shell.stdout.startswith("127.0.0.1:"), shell.stderr
    process = json.loads(next(tmp_path.glob("*/server")).read_text())["process"]
    until(lambda: not is_running(process))


def test_the_order_of_reading() -> None:
    assert to_ask("a:1", "b:1", "d:1") == ("a:1", "d:1")
    assert to_ask("b:1", "b:1", "d:1") == ("d:1",)
    assert to_ask("", "b:1", "d:1") == ("d:1",)
    assert to_ask("d:1", "b:1", "d:1") == ("d:1",)


def test_a_place_where_nobody_is_is_known_soon(server: HomeServer, home: Path, tmp_path: Path) -> None:
    layer = replace(written(home), place="127.0.0.1:1")
    assert open_layer(LayerHost(server.sharing, tmp_path, lambda: "127.0.0.1:2").having(layer), layer).rows == 3
    with pytest.raises(Unavailable, match="nobody answers at"):
        fetch(server.sharing, layer.place, layer, tmp_path)


def test_who_has_a_shared_home_loads_nothing_of_it() -> None:
    code = "import sys, nosync, nosync.spark.task; print('pyarrow.flight' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


def test_what_somebody_asks_for_is_of_use(server: HomeServer, tmp_path: Path) -> None:
    there = elsewhere(server, tmp_path / "there")
    layer = there.wrote(written(there.root))
    os.utime(there.root / layer.path, (0, 0))
    fetch(server.sharing, layer.place, layer, tmp_path / "here")
    assert lying(str(there.root / layer.path), layer.path).used_at > 0


def test_who_asks_and_goes_away_holds_up_nobody(home: Path) -> None:
    layer = written(home)
    order = Order(str(home), "127.0.0.1", "127.0.0.1", os.getpid(), "token", 0, at_home=True)
    server = LayerServer(order, 0)
    ticket = flight.Ticket(json.dumps({"path": layer.path}).encode())
    for _ in range(MOST_TRANSFERS + 1):
        server.do_get(None, ticket)
    assert server._transfers.acquire(blocking=False)
    server.shutdown()
