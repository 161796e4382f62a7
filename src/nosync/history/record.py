"""What the journal keeps of a view, so that it can be read without Spark and without the program."""

import base64
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from nosync.kernels.accumulate import Accumulation
from nosync.kernels.functions import FUNCTIONS, Result
from nosync.model.columns import HASH
from nosync.model.identifiers import TraceName
from nosync.model.layers import Kind


@dataclass(frozen=True, slots=True)
class ViewRecord:
    """A view's schema and the trace whose state holds its rows. With `spec`, the rows are `columns` of its keys and results; without it
    the rows themselves are kept, and `columns` says where each column of the view stands in them (none: as they come); they lie by the
    hash of the columns `keys` of the view, as far as that is known. `rows` says which rows these are, and `marks` what each column is
    among them, by which a changed program knows them again. With `placed`, the last column of the schema is the hash that a row lies by:
    that is never recorded.
    """

    schema: pa.Schema
    trace: TraceName
    kind: Kind
    spec: Accumulation | None = None
    columns: tuple[int, ...] = ()
    keys: tuple[int, ...] = ()
    rows: str = ""
    marks: tuple[str, ...] = ()
    placed: bool = False

    def with_places(self) -> "ViewRecord":
        """The same view with one more column, which says where each row lies."""
        return replace(self, schema=pa.schema([*self.schema, (HASH, pa.int64())]), placed=True)

    @property
    def hashed(self) -> tuple[int, ...] | None:
        """Which columns of the view its rows lie by, in order; None where that is not known."""
        if self.spec is None:
            return self.keys or None
        places = {key: column for column, key in enumerate(self.columns)}
        wanted = range(len(self.spec.keys))
        return tuple(places[key] for key in wanted) if wanted and places.keys() >= set(wanted) else None

    def to_json(self) -> dict[str, Any]:
        text: dict[str, Any] = {"schema": _pack(self.schema), "trace": self.trace, "kind": self.kind, "keys": list(self.keys)}
        text |= {"columns": list(self.columns), "rows": self.rows, "marks": list(self.marks)}
        if self.spec is not None:
            text["spec"] = {
                "keys": _pack(_unnamed(self.spec.keys)),
                "inputs": _pack(_unnamed(self.spec.inputs)),
                "types": _pack(_unnamed(tuple(result.type for result in self.spec.results))),
                "results": [[r.function, list(r.inputs), r.overflow, r.text] for r in self.spec.results],
                "whole": self.spec.whole,
            }
        return text

    @staticmethod
    def from_json(text: dict[str, Any]) -> "ViewRecord":
        """`ValueError`, `KeyError` or `TypeError` where the text says no view."""
        schema = _unpack(text["schema"])
        if not all(type(text[name]) is str for name in ("trace", "kind")) or text["kind"] not in ("upserts", "diffs"):
            raise ValueError("no trace keeps the rows")
        hashed = tuple(text["keys"])
        if not all(type(index) is int and 0 <= index < len(schema) for index in hashed):
            raise ValueError("a key is none of the columns")
        rows, marks = text.get("rows", ""), tuple(text.get("marks", ()))
        if not all(type(one) is str for one in (rows, *marks)) or len(marks) not in (0, len(schema)):
            raise ValueError("it is not said what the columns are")
        if "spec" not in text:
            places = tuple(text.get("columns", ()))
            if places and (not all(type(place) is int for place in places) or sorted(places) != [*range(len(schema))]):
                raise ValueError("a column is kept nowhere, or two at one place")
            return ViewRecord(schema, text["trace"], text["kind"], columns=places, keys=hashed, rows=rows, marks=marks)
        spec = text["spec"]
        results = tuple(
            Result(function, tuple(inputs), type, overflow, words)
            for (function, inputs, overflow, words), type in zip(spec["results"], _unpack(spec["types"]).types, strict=True)
        )
        if not all(result.function in FUNCTIONS for result in results):
            raise ValueError("a function is none of those that there are")
        keys, inputs = tuple(_unpack(spec["keys"]).types), tuple(_unpack(spec["inputs"]).types)
        if not all(type(index) is int and 0 <= index < len(keys) + len(results) for index in text["columns"]):
            raise ValueError("a column is none of the key's and none of the results'")
        accumulation = Accumulation(keys, inputs, results, spec["whole"])
        return ViewRecord(schema, text["trace"], text["kind"], accumulation, tuple(text["columns"]), rows=rows, marks=marks)


def _unnamed(types: tuple[pa.DataType, ...]) -> pa.Schema:
    return pa.schema([(str(i), type) for i, type in enumerate(types)])


def _pack(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def _unpack(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
