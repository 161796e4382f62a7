"""The merging process: reads orders as JSON lines, answers each with the facts of the merged layer. Started by `Merger`."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from nosync.journal.names import layer_path
from nosync.model.errors import Corrupt
from nosync.model.hash_range import HashRange
from nosync.model.identifiers import Epoch
from nosync.model.layers import LayerInfo, leaves_of
from nosync.state.expiry import Expired
from nosync.state.layer import Layer, open_layer, verify, write_layer
from nosync.state.merge import merge_diffs, merge_upserts, union_schema
from nosync.state.partial_layer import opened
from nosync.state.versions import merge_versions, open_as_of, versioned_schema
from nosync.tiers.background import arguments, lower_priority

LOWEST = 19


def merge(home: str, flow: str, run: str, order: dict[str, Any]) -> LayerInfo:
    """One layer for all epochs of the given neighbours in a range, newest first. The result is a function of its inputs."""
    infos, held = [LayerInfo.from_json(text) for text in order["layers"]], HashRange.parse(order["range"])
    layers = _opened(infos, order, lambda info: verify(open_as_of(home, info)))
    expired = Expired(**order["expired"]) if order.get("expired") else None
    if infos[0].kind == "upserts":
        merged = merge_upserts(layers, drop_tombstones=order["bottom"], expired=expired)
    else:
        merged = merge_diffs(layers, expired=expired)
    schema = union_schema([layer.schema for layer in layers], infos[0].kind)
    lower, with_bloom = min(info.lower for info in infos), any(layer.with_bloom for layer in layers)
    written = _written(home, flow, run, infos[0], held, lower, infos[0].upper, merged, schema, with_bloom)
    return replace(written, bottom=order["bottom"])


def fold(home: str, flow: str, run: str, order: dict[str, Any]) -> LayerInfo:
    """One versioned layer for given neighbours, newest first: of the epochs before its last, `among` can be read, and all from `since`."""
    infos, held = [LayerInfo.from_json(text) for text in order["layers"]], HashRange.parse(order["range"])
    layers = _opened(infos, order, lambda info: verify(open_layer(home, info)))
    lower, upper = order["lower"], order["upper"]
    versions = np.unique(np.array([*order["among"], *range(order["since"], upper - 1), upper - 1], dtype=np.int64))
    merged = merge_versions(layers, versions)
    written = _written(home, flow, run, infos[0], held, lower, upper, merged, versioned_schema(layers), False)
    blind = tuple((first, last) for first, last in order["blind"])
    return replace(written, versions=len(versions), blind=blind, first=infos[-1].begin, leaves=leaves_of(infos), bottom=order["bottom"])


def _opened(infos: Sequence[LayerInfo], order: dict[str, Any], open: Callable[[LayerInfo], Layer]) -> list[Layer]:
    return opened(zip(infos, map(HashRange.parse, order["ranges"]), strict=True), open)


def _written(
    home: str,
    flow: str,
    run: str,
    like: LayerInfo,
    held: HashRange,
    lower: Epoch,
    upper: Epoch,
    rows: Iterator[pa.RecordBatch],
    schema: pa.Schema,
    bloom: bool,
) -> LayerInfo:
    path = layer_path(like.trace, held, lower, upper, run)
    return write_layer(
        home, path, rows, flow=flow, trace=like.trace, range=held, lower=lower, upper=upper, kind=like.kind, run=run,
        schema=schema, with_bloom=bloom,
    )  # fmt: skip


def carry_out(home: str, flow: str, run: str, order: dict[str, Any]) -> dict[str, Any]:
    """The answer to an order."""
    try:
        return (fold if "since" in order else merge)(home, flow, run, order).to_json()
    except Corrupt as error:
        gone = "since" in order and not all((Path(home) / layer["path"]).exists() for layer in order["layers"])
        return {"given_up": error.message} if gone else {"damage": error.message}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def main() -> None:
    home, flow, run = arguments()
    lower_priority(LOWEST)
    for line in sys.stdin:
        answer = carry_out(home, flow, run, json.loads(line))
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
