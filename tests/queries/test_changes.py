"""Sources that carry changes: what counts, what is rejected, and that crashes and lost files change neither."""

import datetime
import json
import os
import random
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

import nosync as ns
from nosync.model.shards import shard_ranges
from nosync.runtime.starting import begin
from tests.metamorphic import checksums

EPOCHS = 3
WORDS = {1: ["c", "r", "u", "INSERT", "+I", "+U", "1"], -1: ["d", "delete", "-D", "-1"]}
Event = tuple[str, int, str]  # word, id, name
Rejected = Counter[tuple[str, int]]  # reason, epoch


def write(folder: Path, epoch: int, name: str, format: str, rows: list[Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    hidden, path = folder / f".{name}", folder / f"{epoch}-{name}.{format}"
    if format == "json":
        hidden.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows))
    elif format == "csv":
        hidden.write_text("".join(",".join(str(value) for value in row.values()) + "\n" for row in rows))
    else:
        pq.write_table(pa.Table.from_pylist(rows, pa.schema([(n, pa.int32() if n == "id" else pa.string()) for n in rows[0]])), hidden)
    hidden.rename(path)


def random_events(chance: random.Random, count: int, keyed: bool) -> list[Event]:
    found = []
    for _ in range(count):
        words = WORDS[chance.choice([1, 1, -1])]
        word = chance.choice([w for w in words if keyed or w != "u"])
        found.append((word, chance.randrange(6), chance.choice("xyz")))
    return found


def newest(epochs: list[list[Event]]) -> tuple[dict[int, tuple[int, str]], Rejected]:
    """The newest row by key, and what is rejected, going through the events one by one."""
    there: dict[int, tuple[int, str]] = {}
    rejected: Rejected = Counter()
    for epoch, events in enumerate(epochs, start=1):
        for word, id, name in events:
            if word not in WORDS[-1]:
                there[id] = (id, name)
            elif there.pop(id, None) is None:
                rejected["nothing to remove: no row with this key", epoch] += 1
    return there, rejected


def counted(epochs: list[list[Event]]) -> tuple[Counter[tuple[int, str]], Rejected]:
    """How often each row is there, and what is rejected; in an epoch what is added comes first."""
    there: Counter[tuple[int, str]] = Counter()
    rejected: Rejected = Counter()
    for epoch, events in enumerate(epochs, start=1):
        for word, id, name in sorted(events, key=lambda event: event[0] in WORDS[-1]):
            if word not in WORDS[-1]:
                there[id, name] += 1
            elif there[id, name]:
                there[id, name] -= 1
            else:
                rejected["nothing to remove: no such row", epoch] += 1
    return there, rejected


class Inputs:
    """Random changes in every form, epoch by epoch; two files an epoch."""

    def __init__(self, folder: Path) -> None:
        chance = random.Random(5)
        self.folder = folder
        self.keyed = [random_events(chance, 14, keyed=True) for _ in range(EPOCHS)]
        self.plain = [random_events(chance, 10, keyed=False) for _ in range(EPOCHS)]
        for epoch, (keyed, plain) in enumerate(zip(self.keyed, self.plain, strict=True), start=1):
            for part, name in ((keyed[:6], "b"), (keyed[6:], "a")):  # times, not names, say which file comes first
                rows = [{"op": word, "id": id, "name": n} for word, id, n in part]
                for format in ("json", "parquet"):
                    write(folder / format, epoch, name, format, rows)
            write(folder / "plain", epoch, "a", "csv", [{"op": word, "id": id, "name": n} for word, id, n in plain])
            late = [{"op": word, "id": id, "name": n, "lsn": 100 * epoch + place} for place, (word, id, n) in enumerate(keyed)]
            write(folder / "late", epoch, "a", "json", chance.sample(late, len(late)))

    def flow(self, spark: SparkSession) -> tuple[ns.Flow, Any]:
        flow, schema = ns.Flow("changes", spark), "op string, id int, name string"
        for name in ("json", "parquet"):
            source = ns.files(self.folder / name, format=name, schema=schema, maxFilesPerTrigger=2)
            flow.view(f"v_{name}", flow.source(name, source, key=["id"], op_column="op").select("*"))
        plain = ns.files(self.folder / "plain", format="csv", schema=schema, maxFilesPerTrigger=1)
        flow.view("v_plain", flow.source("plain", plain, op_column="op"))
        late = ns.files(self.folder / "late", format="json", maxFilesPerTrigger=1, schema=schema + ", lsn int")
        in_order = flow.source("late", late, key="id", op_column="op", sequence="lsn")
        flow.view("v_late", in_order.groupBy("name").agg(F.count("*").alias("n"), F.max("id").alias("most")))
        given = ns.memory("id int, name string")
        flow.view("v_given", flow.source("given", given, key="id"))
        return flow, given

    def give(self, given: Any, epoch: int) -> None:
        for word, id, name in self.keyed[epoch - 1]:
            given.pending.append(([(id, name)], -1 if word in WORDS[-1] else 1))


def rows(home: Path, view: str, at: int) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in ns.open(home).view(view, at=at).to_pylist())


def judge(home: Path, inputs: Inputs) -> None:
    for epoch in range(1, EPOCHS + 1):
        there, rejected = newest(inputs.keyed[:epoch])
        for name in ("json", "parquet", "given", "late"):
            if name != "late":
                assert rows(home, f"v_{name}", epoch) == Counter(there.values()), (name, epoch)
            reported = ns.open(home).view(f"{name}.rejected", at=epoch).to_pylist()
            assert Counter((row["reason"], row["epoch"]) for row in reported) == rejected, (name, epoch)
        by_name = {(name, len(ids := [id for id, n in there.values() if n == name]), max(ids)) for _, name in there.values()}
        assert set(rows(home, "v_late", epoch)) == by_name
        counts, rejected = counted(inputs.plain[:epoch])
        assert rows(home, "v_plain", epoch) == +counts
        reported = ns.open(home).view("plain.rejected", at=epoch).to_pylist()
        assert Counter((row["reason"], row["epoch"]) for row in reported) == rejected


def stepped(spark: SparkSession, inputs: Inputs, home: Path, epochs: range) -> list[dict[str, Any]]:
    """These epochs, in a run of their own."""
    flow, given = inputs.flow(spark)
    stepping = begin(flow.program(), home, 2).recover()
    found = []
    try:
        for epoch in epochs:
            inputs.give(given, epoch)
            step = stepping.step()
            assert step is not None and step["epoch"] == epoch
            found.append(step)
    finally:
        stepping.close()
    return found


def test_changes_count_in_the_order_of_the_input_through_stops_and_losses(quick: SparkSession, tmp_path: Path) -> None:
    inputs, home = Inputs(tmp_path / "in"), tmp_path / "home"
    steps = stepped(quick, inputs, home, range(1, 3)) + stepped(quick, inputs, home, range(3, 4))
    judge(home, inputs)
    reported = newest(inputs.keyed)[1]
    for step in steps:
        rejected = {source["description"]: source["rejectedRows"] for source in step["sources"]}
        assert rejected["json"] == rejected["given"] == sum(n for (_, epoch), n in reported.items() if epoch == step["epoch"])
    for layer in list(ns.open(home).image.layers()):
        if layer.trace.startswith(("parquet", "plain", "v_parquet", "v_plain")) and layer.range == shard_ranges(2)[1]:
            (home / layer.path).unlink()
    stepped(quick, inputs, home, range(0))
    judge(home, inputs)


def test_the_order_of_the_input_counts_however_spark_cuts_and_distributes_it(quick: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(2)
    events = random_events(chance, 80, keyed=True)
    for name, part in (("ü b", events[:50]), ("a%20", events[50:])):
        write(tmp_path / "in", 1, name, "json", [{"op": word, "id": id, "name": n} for word, id, n in part])
    found = []
    for number, size in enumerate((1 << 20, 300)):
        session = quick.newSession()
        for setting in ("spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode", "spark.sql.session.timeZone"):
            session.conf.set(setting, quick.conf.get(setting) or "")
        session.conf.set("spark.sql.files.maxPartitionBytes", size)
        flow = ns.Flow("cuts", session)
        source = ns.files(tmp_path / "in", format="json", schema="op string, id int, name string")
        flow.view("v", flow.source("users", source, key="id", op_column="op"))
        life = begin(flow.program(), tmp_path / str(number), 2).recover()
        life.step()
        life.close()
        found.append(checksums(tmp_path / str(number)))
    there, rejected = newest([events])
    assert rows(tmp_path / "1", "v", 1) == Counter(there.values())
    assert rejected and found[0] == found[1]


def test_rows_of_any_type_are_known_again(quick: SparkSession, tmp_path: Path) -> None:
    schema = "id int, r struct<d decimal(20, 3), t timestamp, a array<double>, m map<string, date>, b binary>"
    when = datetime.datetime(2024, 5, 1, 12, 30)
    whole = (Decimal("1.500"), when, [0.5, None], {"x": when.date(), "y": None}, b"1")
    rich = [(1, whole), (2, None), (None, (None, None, None, {}, None))]
    flow, given = ns.Flow("rich", quick), {"keyed": ns.memory(schema, removals=True), "rows": ns.memory("op int, " + schema)}
    for name, options in (("keyed", {"key": "id"}), ("rows", {"op_column": "op"})):
        flow.view(f"v_{name}", flow.source(name, given[name], **options))
    with flow.start(tmp_path, shards=1) as run:
        given["keyed"].add(rich)
        given["rows"].add([(1, *row) for row in rich + rich])
        run.processAllAvailable()
        given["keyed"].add([(2, rich[0][1]), rich[0]])
        given["keyed"].remove([(None, None)])
        given["rows"].add([(-1, *row) for row in [*rich, rich[0], rich[0]]])
        run.processAllAvailable()
        assert sorted(map(repr, run.view("v_keyed").collect())) == [repr(Row(id=id, r=Row(*"dtamb")(*whole))) for id in (1, 2)]
        assert sorted(row.id or 0 for row in run.view("v_rows").collect()) == [0, 2]
        assert run.view("rows.rejected").count() == 1 and run.view("keyed.rejected").count() == 0


def test_envelopes_are_opened_and_what_is_no_change_is_rejected(quick: SparkSession, tmp_path: Path) -> None:
    ann, ben, anna = ({"id": id, "name": name} for id, name in ((1, "ann"), (2, "ben"), (1, "anna")))
    images = [
        {"op": "r", "after": ann}, {"op": "c", "after": ben}, {"op": "u", "before": ann, "after": anna}, {"op": "d", "before": ben},
        {"op": "u", "after": ann}, {"op": "d", "before": {"id": 7}}, {"op": "t"}, {"op": None, "after": ben}, "no json\n",
    ]  # fmt: skip
    write(tmp_path / "debezium", 1, "a", "json", images)
    words = [("c", 1), ("u", 1), ("-U", 1), ("+U", 2), ("+1", 3), ("truncate", 3)]
    write(tmp_path / "plain", 1, "a", "parquet", [{"op": word, "id": id} for word, id in words])
    (tmp_path / "plain/broken.parquet").write_text("no parquet")
    os.utime(tmp_path / "plain/broken.parquet", (1, 1))  # nobody writes it any more
    flow, row = ns.Flow("envelopes", quick), "struct<id int, name string>"
    for name, key in (("rows", None), ("keyed", "id")):
        envelopes = ns.files(tmp_path / "debezium", format="json", schema=f"before {row}, after {row}, op string")
        flow.view(f"v_{name}", flow.source(name, envelopes, key=key, op_column="op"))
    flow.view("v_plain", flow.source("plain", ns.files(tmp_path / "plain", schema="op string, id int"), op_column="op"))
    flow.sql("create view reasons as select reason, count(*) n from `plain.rejected` group by reason")
    flow.sink("out", flow.sql("select id from plain"), ns.parquet(tmp_path / "out"))
    with flow.start(tmp_path / "home", shards=1) as run:
        run.processAllAvailable()
        progress = run.lastProgress
    assert progress is not None
    home = tmp_path / "home"
    assert rows(home, "v_rows", 1) == {(1, "anna"): 1}
    assert rows(home, "v_keyed", 1) == {(1, "ann"): 1}
    common = {"not a JSON object", 'op: "t" is no change', 'op: "null" is no change'}
    reported = {name: ns.open(home).view(f"{name}.rejected").to_pylist() for name in ("rows", "keyed")}
    assert {one["reason"] for one in reported["rows"]} == {*common, "before is missing", "nothing to remove: no such row"}
    assert {one["reason"] for one in reported["keyed"]} == {*common, "nothing to remove: no row with this key"}
    assert all(one["file"].endswith("/debezium/1-a.json") and one["epoch"] == 1 for one in reported["keyed"])
    assert '{"id":7}' in {one["raw"] for one in reported["keyed"]} and "no json" in {one["raw"] for one in reported["rows"]}
    rejected = {source["description"]: source["rejectedRows"] for source in progress["sources"]}
    assert rejected == {"rows": 5, "keyed": 4, "plain": 3}
    assert rows(home, "v_plain", 1) == {(2,): 1, (3,): 1}
    reasons = {str(reason)[:20]: n for reason, n in rows(home, "reasons", 1)}
    assert reasons == {'op: "truncate" is no': 1, "an update without a ": 1, "not a Parquet file: ": 1}
    assert sorted(pq.read_table(tmp_path / "out").column("id").to_pylist()) == [2, 3]


@pytest.mark.parametrize(
    ("schema", "options", "words"),
    [
        ("id int", {"op_column": "op"}, 'has no column "op"'),
        ("id int", {"key": "key"}, 'has no column "key"'),
        ("id int", {"sequence": "id"}, "orders the rows of a key"),
        ("id int, s array<int>", {"key": "id", "sequence": "s"}, 'sequence="s" is array<int>'),
        ("id int", {"key": "id", "sequence": "at"}, 'has no column "at"'),
        ("id int, _reason string", {"key": "id"}, 'has a column "_reason"'),
        ("id string collate UNICODE_CI", {"key": "id"}, "a string with a collation"),
    ],
)
def test_a_mistake_in_declaring_changes_is_reported_at_once(quick: SparkSession, schema: str, options: dict[str, str], words: str) -> None:
    flow = ns.Flow("mistakes", quick)
    with pytest.raises(ns.Invalid, match=words):
        flow.source("s", ns.memory(schema), **options)
    flow.source("s", ns.memory("id int"), key="id")


def test_a_row_that_is_not_there_cannot_be_removed_whoever_says_so(quick: SparkSession, tmp_path: Path) -> None:
    """A source without a key or words, but with removals: also after a stop, and where layers are lost."""
    home = tmp_path / "home"
    for number, (added, removed) in enumerate([(["a", "a", "b"], ["c"]), (["c"], ["a", "b", "b"])], start=1):
        flow, given = ns.Flow("counted", quick), ns.memory("k string", removals=True)
        counts = flow.source("s", given).groupBy("k").count()
        flow.view("v", counts)
        life = begin(flow.program(), home, 2).recover()
        given.remove([(k,) for k in removed])
        given.add([(k,) for k in added])
        step = life.step()
        assert step is not None and [source["rejectedRows"] for source in step["sources"]] == [1]
        life.close()
        for layer in ns.open(home).image.layers():
            if layer.range == shard_ranges(2)[number - 1]:
                (home / layer.path).unlink()
    begin(flow.program(), home, 2).recover().close()
    assert [rows(home, "v", epoch) for epoch in (1, 2)] == [{("a", 2): 1, ("b", 1): 1}, {("a", 1): 1, ("c", 1): 1}]
    assert rows(home, "s.rejected", 2) == {
        ('{"k":"c"}', "nothing to remove: no such row", None, 1): 1, ('{"k":"b"}', "nothing to remove: no such row", None, 2): 1
    }  # fmt: skip


def test_a_source_that_only_adds_refuses_removals(quick: SparkSession) -> None:
    given = ns.memory("k string")
    ns.Flow("adding", quick).source("s", given)
    with pytest.raises(ns.Invalid, match=r"only adds rows\nDeclare it with ns.memory\(..., removals=True\)"):
        given.remove([("a",)])
