"""The entries of a flow's journal. Pure values; the state of a flow is a fold over them (see `image`).

Each is one JSON object with its kind under "entry".
"""

from dataclasses import asdict, dataclass
from typing import Any

from nosync.model.layers import LayerInfo

Slice = dict[str, Any]  # what a source needs to read the same rows again; only the source looks inside


@dataclass(frozen=True, slots=True)
class Declared:
    """What the home belongs to: written once, and again when a run starts with another program text of the same meaning."""

    flow: str
    shards: int
    settings: dict[str, str]
    operators: dict[str, str]
    views: dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Started:
    """A run began."""

    run: str
    process: int
    host: str
    at: float


@dataclass(frozen=True, slots=True)
class Opened:
    """An epoch has its input. From here on it is reproducible."""

    epoch: int
    at: float
    slices: dict[str, Slice]


@dataclass(frozen=True, slots=True)
class Computed:
    """An epoch is whole: all its layers exist."""

    epoch: int
    layers: tuple[LayerInfo, ...]
    rows: dict[str, int]
    rejected: dict[str, int]


@dataclass(frozen=True, slots=True)
class Merged:
    """A layer that collapses a range of epochs; its inputs stay."""

    layer: LayerInfo


Entry = Declared | Started | Opened | Computed | Merged
KINDS: dict[str, type[Entry]] = {kind.__name__.lower(): kind for kind in (Declared, Started, Opened, Computed, Merged)}


def to_json(entry: Entry) -> dict[str, Any]:
    return {"entry": type(entry).__name__.lower(), **asdict(entry)}


def from_json(text: dict[str, Any]) -> Entry:
    fields = {name: value for name, value in text.items() if name != "entry"}
    if text["entry"] == "computed":
        fields["layers"] = tuple(LayerInfo.from_json(layer) for layer in fields["layers"])
    if text["entry"] == "merged":
        fields["layer"] = LayerInfo.from_json(fields["layer"])
    return KINDS[text["entry"]](**fields)
