"""The merging process: reads orders as JSON lines, answers each with the facts of the merged layer. Started by `Merger`."""

import json
import sys
from typing import Any

from nosync.journal.names import layer_path
from nosync.model.errors import Corrupt
from nosync.model.hash_range import HashRange
from nosync.model.layers import LayerInfo
from nosync.state.expiry import Expired
from nosync.state.layer import open_layer, verify, write_layer
from nosync.state.merge import merge_diffs, merge_upserts, union_schema
from nosync.state.slicing import opened
from nosync.tiers.background import arguments, lower_priority

LOWEST = 19


def merge(home: str, flow: str, run: str, order: dict[str, Any]) -> LayerInfo:
    """One layer for all epochs of the given neighbours in a range, newest first. The result is a function of its inputs."""
    infos, held = [LayerInfo.from_json(text) for text in order["layers"]], HashRange.parse(order["range"])
    newest, lower = infos[0], min(info.lower for info in infos)
    slices = zip(infos, map(HashRange.parse, order["slices"]), strict=True)
    layers = opened(slices, lambda info: verify(open_layer(home, info)))
    expired = Expired(**order["expired"]) if order.get("expired") else None
    if newest.kind == "upserts":
        merged = merge_upserts(layers, drop_tombstones=order["bottom"], expired=expired)
    else:
        merged = merge_diffs(layers, expired=expired)
    return write_layer(
        home,
        layer_path(newest.trace, held, lower, newest.upper, run),
        merged,
        flow=flow,
        trace=newest.trace,
        range=held,
        lower=lower,
        upper=newest.upper,
        kind=newest.kind,
        run=run,
        schema=union_schema([layer.schema for layer in layers], newest.kind),
        with_bloom=any(layer.with_bloom for layer in layers),
    )


def main() -> None:
    home, flow, run = arguments()
    lower_priority(LOWEST)
    for line in sys.stdin:
        try:
            answer = merge(home, flow, run, json.loads(line)).to_json()
        except Corrupt as error:
            answer = {"damage": error.message}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
