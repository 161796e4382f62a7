"""The hash of rows against Spark's own."""

from __future__ import annotations

import datetime as dt
import decimal
import functools
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from nosync.kernels.xxhash64 import BLOCK_ROWS, SEED, hash_columns, hashable
from nosync.model.errors import Internal

ROWS = 4000
PINNED = [-3786025766646407443, -7486599280499414272, 3188756510806108107, 365730103971579591]  # by Spark 4.3
LETTERS = list("abcdefghij KLM0123456789äß漢字🙂")


def some_null(values: list[Any], generator: np.random.Generator) -> list[Any]:
    return [None if absent else value for value, absent in zip(values, generator.random(len(values)) < 0.1, strict=True)]


def integers(generator: np.random.Generator, bits: int) -> list[int]:
    edges = [0, -1, 1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1))]
    return edges + generator.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), ROWS - len(edges)).tolist()


def unscaled(generator: np.random.Generator, precision: int) -> list[int]:
    """Integers of every length up to the precision, with the edges of every number of bytes."""
    edges = [sign * (2**bits + step) for bits in range(0, 127) for step in (-1, 0, 1) for sign in (1, -1)]
    edges = [value for value in [*edges, 10**precision - 1, 1 - 10**precision] if abs(value) < 10**precision]
    digits = generator.integers(1, precision + 1, ROWS - len(edges))
    return edges + [int(generator.integers(-(2**62), 2**62)) * 10**19 % 10 ** int(count) for count in digits]


def doubles(generator: np.random.Generator) -> np.ndarray:
    values = generator.integers(0, 2**64, ROWS, np.uint64).view(np.float64).copy()
    values[:8] = [0.0, -0.0, math.inf, -math.inf, math.nan, -math.nan, 1.0, 5e-324]
    return values


def floats(generator: np.random.Generator) -> np.ndarray:
    values = generator.integers(0, 2**32, ROWS, np.uint32).view(np.float32).copy()
    values[:6] = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0]
    return values


def texts(generator: np.random.Generator) -> list[str]:
    lengths = [*range(101), *generator.integers(0, 30, ROWS - 103).tolist(), 1000, 4099]
    return ["".join(generator.choice(LETTERS[: 24 if i % 2 else None], length)) for i, length in enumerate(lengths)]


@functools.cache
def every_type() -> pa.Table:
    """Thousands of values of each type that has a hash, a tenth of them null."""
    generator = np.random.default_rng(7)
    epoch, day = dt.datetime(1970, 1, 1), dt.date(1970, 1, 1)
    instants = [epoch + dt.timedelta(microseconds=int(us)) for us in generator.integers(-(2**55), 2**55, ROWS)]
    columns: dict[str, tuple[list[Any], pa.DataType]] = {
        "boolean": (generator.choice([True, False], ROWS).tolist(), pa.bool_()),
        "tiny": (integers(generator, 8), pa.int8()),
        "short": (integers(generator, 16), pa.int16()),
        "int": (integers(generator, 32), pa.int32()),
        "long": (integers(generator, 64), pa.int64()),
        "float": (floats(generator).tolist(), pa.float32()),
        "double": (doubles(generator).tolist(), pa.float64()),
        "date": ([day + dt.timedelta(days=int(n)) for n in generator.integers(-100000, 100000, ROWS)], pa.date32()),
        "instant": ([instant.replace(tzinfo=dt.UTC) for instant in instants], pa.timestamp("us", "UTC")),
        "local": (instants, pa.timestamp("us")),
        "span": ([instant - epoch for instant in instants], pa.duration("us")),
        "text": (texts(generator), pa.string()),
        "blob": ([text.encode("utf-16")[: i % 50] for i, text in enumerate(texts(generator))], pa.binary()),
        "pair": ([{"a": i % 5 or None, "b": str(i)} for i in range(ROWS)], pa.struct([("a", pa.int64()), ("b", pa.string())])),
    }
    with decimal.localcontext(prec=50):
        for precision, places in ((9, 2), (18, 0), (19, 4), (38, 10)):
            values = [decimal.Decimal(value).scaleb(-places) for value in unscaled(generator, precision)]
            columns[f"decimal{precision}"] = (values, pa.decimal128(precision, places))
    return pa.table({name: pa.array(some_null(values, generator), kind) for name, (values, kind) in columns.items()})


KEYS = [("int", "text"), ("text", "long", "double"), ("decimal38", "blob", "boolean", "instant"), ("pair", "date")]


@pytest.mark.spark
def test_every_type_hashes_as_in_spark(spark: SparkSession) -> None:
    table = every_type()
    keys = [(name,) for name in table.column_names] + KEYS + [tuple(table.column_names)]
    frame = spark.createDataFrame(table.append_column("row", pa.array(range(ROWS))))
    hashes = frame.select("row", *(F.xxhash64(*key).alias(f"h{i}") for i, key in enumerate(keys))).orderBy("row").toArrow()
    for i, key in enumerate(keys):
        expected = hashes[f"h{i}"].to_numpy().view(np.uint64)
        ours = hash_columns([table[name] for name in key], ROWS)
        wrong = np.flatnonzero(ours != expected)
        assert len(wrong) == 0, (key, len(wrong), [table[name][int(wrong[0])] for name in key])


def test_the_hash_of_known_rows_never_changes() -> None:
    columns = [pa.array(["Spark", "", None, "x" * 100]), pa.array([1, 2, 3, None], pa.int64())]
    assert hash_columns(columns, 4).view(np.int64).tolist() == PINNED


def test_null_leaves_the_hash_and_no_columns_are_the_seed() -> None:
    assert hash_columns([], 2).tolist() == [SEED, SEED]
    assert hash_columns([pa.nulls(2), pa.nulls(2, pa.string()), pa.nulls(2, pa.float64())], 2).tolist() == [SEED, SEED]
    assert hash_columns([pa.array([], pa.string())], 0).size == 0


@pytest.mark.parametrize("name", every_type().column_names)
def test_slices_chunks_and_blocks_do_not_show(name: str) -> None:
    column = every_type()[name].combine_chunks()
    whole = hash_columns([column], ROWS)
    assert (hash_columns([column.slice(13, 500)], 500) == whole[13:513]).all()
    repeated = pa.chunked_array([column] * 5)
    assert len(repeated) > BLOCK_ROWS
    assert (hash_columns([repeated], 5 * ROWS) == np.tile(whole, 5)).all()


def test_text_hashes_the_same_in_every_encoding() -> None:
    text = every_type()["text"].combine_chunks()
    expected = hash_columns([text], ROWS)
    for other in (text.cast(pa.large_string()), text.cast(pa.binary()), text.dictionary_encode()):
        assert hashable(other.type)
        assert (hash_columns([other], ROWS) == expected).all()


def test_one_very_long_text_among_short_ones() -> None:
    text = pa.array(["a", "b" * 100_003, "c"])
    assert hash_columns([text], 3)[1] == hash_columns([text.slice(1, 1)], 1)[0]


@pytest.mark.parametrize("kind", [pa.list_(pa.int32()), pa.map_(pa.string(), pa.int32()), pa.uint32(), pa.timestamp("ns"), pa.float16()])
def test_types_spark_hashes_otherwise_are_not_hashable(kind: pa.DataType) -> None:
    assert not hashable(kind)
    if not pa.types.is_timestamp(kind):
        with pytest.raises(Internal):
            hash_columns([pa.nulls(1, kind)], 1)


def test_every_type_of_a_key_is_hashable() -> None:
    assert all(hashable(kind) for kind in every_type().schema.types)


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_zeros_hash_alike_and_so_do_all_nan(kind: pa.DataType) -> None:
    hashes = hash_columns([pa.array([0.0, -0.0, math.nan, -math.nan, 1.0], kind)], 5).tolist()
    assert hashes[0] == hashes[1] and hashes[2] == hashes[3]
    assert len(set(hashes)) == 3
