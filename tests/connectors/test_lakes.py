"""Tables of lakes in buckets of S3 servers."""

import json
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake.exceptions import DeltaError

import nosync as ns
from nosync.journal.taken import Marks, Taken
from nosync.sources.lake import LakeSource
from nosync.sources.lake_task import File, LakeTask
from nosync.store.objects import Objects
from tests.connectors.rows import changes
from tests.servers.s3 import Server
from tests.sinks.lakes import TOTALS, Delta, Iceberg, Place, opened, rows


@pytest.fixture
def server(request: pytest.FixtureRequest) -> tuple[str, str, str]:
    if request.param == "moto":
        return request.getfixturevalue("s3_endpoint"), "key", "secret"
    server: Server = request.getfixturevalue("real_s3")
    return server.endpoint, server.key, server.secret


@pytest.mark.parametrize(("server", "lake"), [("moto", "delta"), ("versitygw", "delta"), ("versitygw", "iceberg")], indirect=["server"])
def test_a_table_in_a_bucket_has_each_epoch_once_and_refuses_a_replaced_run(
    server: tuple[str, str, str], s3: Callable[..., Objects], tmp_path: Path, lake: str
) -> None:
    endpoint, key, secret = server
    address = s3(endpoint, key=key, secret=secret).address
    place: Place = Delta(address, {}) if lake == "delta" else Iceberg(tmp_path, {"warehouse": address, "s3.endpoint": endpoint})
    old = opened(place, run="1.a", partitionBy="k")
    old.deliver(1, changes(1, TOTALS, ("a b", 1, 1), ("b", 1, 1)))
    new = opened(place, run="2.b", partitionBy="k")
    with pytest.raises(ns.Fenced):
        old.deliver(2, changes(2, TOTALS, ("late", 1, 1)))
    for _ in range(2):
        new.deliver(2, changes(2, TOTALS, ("a b", 1, -1), ("a b", 2, 1)))
    assert rows(place) == [("a b", 2), ("b", 1)]
    if lake == "iceberg":
        made: LakeSource = ns.iceberg(place.catalog, "shop.spend")  # type: ignore[attr-defined]
    else:
        made = ns.delta(f"{address}/spend")
    made.declare("s", None)  # type: ignore[arg-type]
    made.start(Path(), Taken(lambda: [], None, Marks()))
    slice = made.available()
    assert slice is not None
    task = LakeTask(made._opener(), (tuple(File(*entry) for entry in slice["files"]),), made.arrow, made.what, made._fields())
    found = [row for part in task([pa.RecordBatch.from_pydict({"id": [0]})]) for row in part.to_pylist()]
    assert sorted((row["k"], row["n"]) for row in found) == [("a b", 2), ("b", 1)]
    new.deliver(3, changes(3, TOTALS, ("c", 3, 1)))
    slice = made.available()
    assert slice is not None and [file[2] for file in slice["files"]] == [1]


@pytest.mark.connectors
@pytest.mark.parametrize("seed", [1, 2])
def test_a_process_that_is_killed_at_any_moment_leaves_tables_as_if_it_was_not(tmp_path: Path, seed: int) -> None:
    """With kill -9, some seconds into its work, several times."""
    print(f"seed {seed}")
    chance, truth = random.Random(seed), Counter[str]()
    (tmp_path / "in").mkdir()
    for number in range(60):
        given = [(chance.choice("abcdefgh"), chance.randint(1, 9)) for _ in range(3)]
        truth.update({item: 0 for item, _ in given})
        for item, price in given:
            truth[item] += price
        lines = "".join(json.dumps({"item": item, "price": price}) + "\n" for item, price in given)
        (tmp_path / "in" / f"{number:03d}.json").write_text(lines)
    kills, command = 0, [sys.executable, "-m", "tests.connectors.lake_driver", str(tmp_path)]
    while True:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout is not None
            begun = process.stdout.readline()
            with suppress(subprocess.TimeoutExpired):
                process.wait(chance.uniform(0.1, 4.0) if kills < 5 else 300)
            if process.poll() is not None:
                break
            process.kill()
        kills += 1
    assert begun == "started\n" and process.returncode == 0 and kills
    wanted = sorted(truth.items())
    delta, iceberg = Delta(tmp_path / "delta"), Iceberg(tmp_path)
    assert [row[:2] for row in rows(delta)] == [row[:2] for row in rows(delta, "rows")] == [row[:2] for row in rows(iceberg)] == wanted


@pytest.mark.connectors
@pytest.mark.parametrize("key", ["k", None])
@pytest.mark.parametrize("lake", ["delta", "iceberg"])
def test_runs_that_replace_each_other_while_somebody_compacts_leave_one_truth(tmp_path: Path, lake: str, key: str | None) -> None:
    place: Place = Delta(tmp_path) if lake == "delta" else Iceberg(tmp_path)
    chance, truth, epochs = random.Random(3), dict[str, int](), []
    for epoch in range(1, 16):
        diffs = list[tuple[str, int, int]]()
        for name in chance.sample("abcdefgh", 3):
            diffs += [(name, truth[name], -1)] if name in truth else []
            truth[name] = chance.randint(0, 99)
            diffs.append((name, truth[name], 1))
        epochs.append(changes(epoch, TOTALS, *diffs))
    opened(place, key)
    done = threading.Event()

    def compact() -> None:
        while not done.wait(0.05):
            with suppress(DeltaError):
                place.compact()

    def run(generation: int) -> bool:
        """Whether it came to its end: a run that is fenced does not."""
        try:
            sink = opened(place, key, f"{generation}.x", fold_after=4)
            for epoch in epochs:
                while True:
                    with suppress(ns.Unavailable):
                        sink.deliver(epoch.epoch, epoch)
                        break
        except ns.Fenced:
            return False
        return True

    with ThreadPoolExecutor(5) as pool:
        pool.submit(compact)
        try:
            assert any(pool.map(run, range(2, 6)))
        finally:
            done.set()
    assert rows(place) == sorted(truth.items())
