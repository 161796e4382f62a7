"""The merging process: reads orders as JSON lines, answers each with the facts of the merged layer. Started by `Merger`."""

import json
import sys
from typing import Any

from nosync.journal.names import layer_path
from nosync.model.errors import Corrupt
from nosync.model.layers import LayerInfo
from nosync.state.expiry import Expired
from nosync.state.layer import open_layer, verify, write_layer
from nosync.state.merge import merge_diffs, merge_upserts, union_schema
from nosync.tiers.background import arguments, lower_priority

LOWEST = 19


def merge(home: str, flow: str, run: str, order: dict[str, Any]) -> LayerInfo:
    """One layer for the whole range of the given neighbours, newest first. The result is a function of its inputs."""
    infos = [LayerInfo.from_json(text) for text in order["layers"]]
    newest, oldest = infos[0], infos[-1]
    layers = [verify(open_layer(home, info)) for info in infos]
    expired = Expired(**order["expired"]) if order.get("expired") else None
    if newest.kind == "upserts":
        merged = merge_upserts(layers, drop_tombstones=order["bottom"], expired=expired)
    else:
        merged = merge_diffs(layers, expired=expired)
    return write_layer(
        home,
        layer_path(newest.trace, newest.range, oldest.lower, newest.upper, run),
        merged,
        flow=flow,
        trace=newest.trace,
        range=newest.range,
        lower=oldest.lower,
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
