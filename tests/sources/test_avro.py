"""Records of Avro: every type as Spark has it, writers and readers of different schemas, and bytes that are no record."""

import base64
import json
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from io import BytesIO
from random import Random
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

import nosync as ns
from nosync.bridge.arrow import arrow_schema
from nosync.clients.registry import Registry
from nosync.sources import avro_task
from nosync.sources.avro_task import AvroTask
from nosync.sources.avro_types import avro_schema, record_type
from tests.servers.registry import Registry as Server
from tests.servers.registry import registry

EPOCH = datetime(1970, 1, 1)


def record(*fields: Any, name: str = "Order") -> dict[str, Any]:
    """Fields as (name, type) or with more keys."""
    return {"type": "record", "name": name, "fields": [{"name": f[0], "type": f[1], **(f[2] if len(f) > 2 else {})} for f in fields]}


def logical(base: str, type: str, **more: Any) -> dict[str, Any]:
    return {"type": base, "logicalType": type, **more}


def task(schema: Any, registry: str | None = None) -> AvroTask:
    text, found = avro_schema(json.dumps(schema), "here")
    return AvroTask(text, arrow_schema(record_type(found, "here"), "here"), Registry(registry) if registry else None)


def written(schema: Any, *records: Any, number: int | None = None) -> list[bytes]:
    import fastavro

    found = []
    for one in records:
        stream = BytesIO()
        fastavro.schemaless_writer(stream, fastavro.parse_schema(schema, named_schemas={}), one)
        found.append((b"" if number is None else b"\0" + number.to_bytes(4, "big")) + stream.getvalue())
    return found


def rows(task: AvroTask, values: Sequence[bytes | None]) -> list[dict[str, Any]]:
    arrays, names = task(values)
    return pa.table(arrays, names=names).to_pylist()


def read(task: AvroTask, values: Sequence[bytes | None]) -> list[dict[str, Any]]:
    """Rows all of which fit."""
    found = rows(task, values)
    assert [row.pop("_nosync_why") for row in found] == [None] * len(found)
    assert all(row.pop("_nosync_raw") is None for row in found)
    return found


def whys(task: AvroTask, values: Sequence[bytes | None]) -> list[Any]:
    found = rows(task, values)
    for row in found:
        names = [name for name in row if not name.startswith("_nosync")]
        assert row["_nosync_why"] is None or all(row[name] is None for name in names)
    return [row["_nosync_why"] for row in found]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with registry() as found:
        yield found


EVERYTHING = record(
    ("b", "boolean"), ("i", "int"), ("l", "long"), ("f", "float"), ("d", "double"), ("y", "bytes"), ("s", "string"),
    ("e", {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]}), ("x", {"type": "fixed", "name": "Two", "size": 2}),
    ("x2", "Two"),
    ("day", logical("int", "date")), ("millis", logical("long", "timestamp-millis")), ("micros", logical("long", "timestamp-micros")),
    ("local", logical("long", "local-timestamp-micros")), ("u", logical("string", "uuid")),
    ("price", logical("bytes", "decimal", precision=38, scale=10)),
    ("fixed", {"type": "fixed", "name": "D", "size": 8, "logicalType": "decimal", "precision": 9, "scale": 2}),
    ("maybe", ["null", logical("bytes", "decimal", precision=5, scale=2)], {"default": None}), ("last", ["string", "null"]),
    ("list", {"type": "array", "items": ["null", logical("long", "timestamp-millis")]}), ("map", {"type": "map", "values": "Two"}),
    ("inner", ["null", record(("day", logical("int", "date")), ("unknown", logical("long", "of-nobody")), name="Inner")]),
)  # fmt: skip


def test_every_type_is_the_one_that_spark_has_for_it() -> None:
    found = record_type(EVERYTHING, "here")
    assert found.simpleString() == (
        "struct<b:boolean,i:int,l:bigint,f:float,d:double,y:binary,s:string,e:string,x:binary,x2:binary,day:date,millis:timestamp,"
        "micros:timestamp,local:timestamp_ntz,u:string,price:decimal(38,10),fixed:decimal(9,2),maybe:decimal(5,2),last:string,"
        "list:array<timestamp>,map:map<string,binary>,inner:struct<day:date,unknown:bigint>>"
    )


def some_records(seed: int, count: int) -> list[dict[str, Any]]:
    chance = Random(seed)

    def time() -> datetime:
        return EPOCH + timedelta(milliseconds=chance.randrange(-(10**12), 10**13))

    def decimal(digits: int, scale: int) -> Decimal:
        return Decimal(chance.randrange(-(10**digits) + 1, 10**digits)).scaleb(-scale)

    return [
        {
            "b": chance.random() < 0.5, "i": chance.randrange(-(2**31), 2**31), "l": chance.randrange(-(2**63), 2**63), "f": 0.5,
            "d": chance.random(), "y": chance.randbytes(3),
            "s": "ä" * chance.randrange(3), "e": chance.choice(["RED", "BLUE"]), "x": b"ab", "x2": b"\0\xff",
            "day": date(1970, 1, 1) + timedelta(days=chance.randrange(-700_000, 2_900_000)), "millis": time(), "micros": time(),
            "local": time(), "u": str(UUID(int=chance.getrandbits(128))), "price": decimal(28, 10), "fixed": decimal(9, 2),
            "maybe": chance.choice([None, decimal(5, 2)]), "last": chance.choice([None, "x"]),
            "list": [time(), None, time()][: chance.randrange(4)], "map": {"k": b"ab"},
            "inner": chance.choice([None, {"day": date(2026, 1, 31), "unknown": 7}]),
        }
        for _ in range(count)
    ]  # fmt: skip


def test_records_come_out_as_they_went_in() -> None:
    given = some_records(3, 200)
    found = read(task(EVERYTHING), written(EVERYTHING, *given))
    for row in found:
        row["millis"], row["micros"] = (row[name].replace(tzinfo=None) for name in ("millis", "micros"))
        row["list"], row["map"] = [one and one.replace(tzinfo=None) for one in row["list"]], dict(row["map"])
    assert found == given


@pytest.mark.parametrize(("fields", "words"), [
    ([("a", ["int", "string"])], "a union of several types"),
    ([("in", record(("t", logical("long", "time-micros")), name="In"))], '"in.t" of the Avro schema is a time-micros'),
    ([("a", "null")], "of type null"),
    ([("a", logical("bytes", "decimal", precision=39, scale=2))], "39 digits"),
    ([("next", ["null", "Order"])], "has itself in it"),
    ([("a", {"type": "array", "items": {"type": "fixed", "name": "N", "size": 0}})], "takes no bytes"),
    ([("a", "nothing")], "no schema of Avro: nothing"),
])  # fmt: skip
def test_what_has_no_place_in_a_table_is_refused_at_declaration(fields: list[Any], words: str) -> None:
    from nosync.sources.kafka_values import AvroValues

    with pytest.raises(ns.Invalid, match=words):
        AvroValues(json.dumps(record(*fields)), None).declare("here", None)  # type: ignore[arg-type]


def test_bytes_that_are_no_record_are_set_aside_with_a_reason() -> None:
    price = record(("id", "long"), ("price", logical("bytes", "decimal", precision=4, scale=2)), ("name", ["null", "string"]))
    good = written(price, {"id": 1, "price": Decimal("1.50"), "name": "x"})[0]
    large = written(price, {"id": 1, "price": Decimal("12.50"), "name": None})[0].replace(b"\x04\x04\xe2", b"\x08\x7f\xff\xff\xff")
    found = whys(task(price), [good, good[:-1], good + b"!", large, b"", None, good, b"\0\0\x02\xfe" + good])
    assert [why is None for why in found] == [True, False, False, False, False, False, True, False]
    assert found[2] == "no record of the schema: 1 bytes follow it" and found[3].startswith("price: ") and found[5] == "no value"
    assert rows(task(price), [good + b"!"])[0]["_nosync_raw"] == (good + b"!").hex()


@pytest.mark.parametrize("seed", range(20))
def test_whatever_bytes_come_a_batch_is_read_to_its_end(seed: int) -> None:
    """Each message is a row or has a reason, and those beside it are untouched."""
    chance, good = Random(seed), written(EVERYTHING, *some_records(seed, 2))
    bad = []
    for _ in range(100):
        broken = bytearray(good[0])
        for _ in range(chance.randrange(1, 4)):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        bad.append(bytes(broken[: chance.randrange(len(broken)) or None] if chance.random() < 0.3 else broken))
    found = rows(task(EVERYTHING), [good[0], *bad, good[1]])
    assert len(found) == 102 and found[0]["_nosync_why"] is found[-1]["_nosync_why"] is None
    assert [found[0], found[-1]] == rows(task(EVERYTHING), good)


NEW = record(
    ("id", "long"), ("price", ["null", "double"], {"default": None}), ("mark", "bytes", {"default": "\u00ff"}),
    ("at", logical("long", "timestamp-millis"), {"default": 5, "aliases": ["when"]}),
)  # fmt: skip


def test_a_registry_says_how_each_message_was_written(server: Server) -> None:
    """Fields that came, went, were widened or renamed; types that stand in a schema of their own; each schema is asked for once."""
    server.register(1, record(("id", "int"), ("gone", "string"), ("price", "float")))
    server.register(2, record(("when", logical("long", "timestamp-millis")), ("id", "long")))
    server.paths["/subjects/a%2Fb/versions/3"] = {"schema": json.dumps(record(("n", "long"), name="Other"))}
    server.register(7, record(("id", "long"), ("o", "Other")), references=[{"name": "Other", "subject": "a/b", "version": 3}])
    first = written(record(("id", "int"), ("gone", "string"), ("price", "float")), {"id": 1, "gone": "x", "price": 0.5}, number=1)
    second = written(record(("when", "long"), ("id", "long")), {"when": 1000, "id": 2}, number=2)
    third = written(record(("id", "long"), ("o", record(("n", "long"), name="Other"))), {"id": 3, "o": {"n": 1}}, number=7)
    server.asked.clear()
    found = read(task(NEW, server.address), [*first, *second, *third, *first])
    assert [(row["id"], row["price"]) for row in found] == [(1, 0.5), (2, None), (3, None), (1, 0.5)]
    assert {row["mark"] for row in found} == {b"\xff"}
    assert [row["at"].timestamp() for row in found] == [0.005, 1, 0.005, 0.005]
    assert sorted(server.asked) == ["/schemas/ids/1", "/schemas/ids/2", "/schemas/ids/7", "/subjects/a%2Fb/versions/3"]


def test_what_a_writer_means_by_a_number_is_not_mistaken(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_task, "BETWEEN_SECONDS", 0.0)
    price = logical("bytes", "decimal", precision=9, scale=2)
    reader = record(("at", ["null", logical("long", "timestamp-millis")]), ("price", price, {"default": ""}))
    server.register(11, record(("at", logical("long", "timestamp-micros"))))
    server.register(12, record(("at", "long"), ("price", logical("bytes", "decimal", precision=12, scale=3))))
    server.register(13, record(("at", "long")))
    server.register(14, record(("at", "string")))
    server.register(15, record(("a", {"type": "array", "items": "null"})))
    server.register(16, {}, schemaType="PROTOBUF")
    head = [b"\0\0\0\0" + bytes([number, 2]) for number in range(11, 18)]
    found = whys(task(reader, server.address), [*head, b"\x01\0\0\0\x0b\x02", b"{}"])
    assert found[0] == "schema 11 does not fit: at is timestamp-micros there, and timestamp-millis here"
    assert found[1] == "schema 12 does not fit: price is decimal with scale 3 there, and decimal with scale 2 here"
    assert found[2] is None and found[3].startswith("no record of the schema: ")
    assert found[4] == "schema 15 has an array of what takes no bytes"
    assert found[5:7] == ["schema 16 is one of PROTOBUF, not of Avro", "the registry has no schema 17"]
    assert found[7:] == 2 * ["it does not begin with the number of a schema"]


def test_a_registry_that_does_not_answer_is_waited_for_and_one_that_refuses_is_not(server: Server) -> None:
    given = task(NEW, server.address)
    server.register(21, NEW)
    server.answers_with = 503
    with pytest.raises(ns.Unavailable, match="HTTP 503"):
        given([b"\0\0\0\0\x15"])
    server.answers_with = 0
    server.authorization = "Basic " + base64.b64encode(b"me:se/cret").decode()
    with pytest.raises(ns.Invalid, match="refuses") as failure:
        Registry(server.address.replace("//", "//me:wrong-word@")).check("here")
    assert "wrong-word" not in f"{failure.value}{Registry(server.address)!r}"
    known = server.address.replace("//", "//me:se%2Fcret@")
    Registry(known).check("here")
    assert read(task(NEW, known), written(NEW, {"id": 9, "price": None, "mark": b"m", "at": 1}, number=21))[0]["id"] == 9
    server.authorization = ""
    with pytest.raises(ns.Unavailable, match="does not answer"):
        Registry("http://127.0.0.1:9").check("here")
    with pytest.raises(ns.Invalid, match="no address of a registry"):
        Registry("localhost:8081").check("here")
