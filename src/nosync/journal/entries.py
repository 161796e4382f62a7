"""The entries of a flow's journal. Pure values; the state of a flow is a fold over them (see `image`).

Each is one JSON object with its kind under "entry".
"""

import json
from dataclasses import dataclass, field, fields
from typing import Any, get_args

from nosync.journal.typed import checks_of
from nosync.model.errors import LONGEST, MALFORMED, Internal
from nosync.model.hash_range import HashRange
from nosync.model.identifiers import NO_EPOCH, Epoch, TraceName
from nosync.model.layers import LayerInfo
from nosync.model.policies.log_structured import LOG_STRUCTURED
from nosync.model.shards import POSSIBLE_SHARDS
from nosync.model.source import Slice
from nosync.model.store import is_own_name


@dataclass(frozen=True, slots=True)
class Declared:
    """What the home belongs to: written once, and again when a run starts with another program (see `TakenOver`). Traces that it does
    not name are dropped; their names, and those of the operators that kept them, are `retired`, and never used again. `shards` are those
    of then; others come with `Rescaled`.

    `fingerprints` say of each operator and view that keeps state what it computes; `feeders` of each trace which ones it is computed from,
    `stepwise` which traces must be recomputed epoch by epoch, `unrepeatable` which cannot be at all, `records` where what those emitted is
    kept: so what a recovery would do is known without the program. `picture` is what `explain` prints of the graph, `settings` what answers
    depend on besides the input, `tables` the versions of static tables, `folders` where sources find their files,
    `policy` how the state is protected. `first_name` is what the flow was called with its first start, by which targets of sinks know it;
    empty for what it is called now. `origin`: the checkpoint whose state the flow has begun with, `imported` the operators that have it.
    """

    flow: str
    shards: int
    settings: dict[str, str]
    fingerprints: dict[str, str]
    views: dict[str, dict[str, Any]]
    sinks: dict[str, dict[str, Any]] = field(default_factory=dict)
    feeders: dict[TraceName, list[TraceName]] = field(default_factory=dict)
    picture: list[dict[str, Any]] = field(default_factory=list)
    stepwise: list[TraceName] = field(default_factory=list)
    unrepeatable: list[TraceName] = field(default_factory=list)
    records: list[TraceName] = field(default_factory=list)
    retired: list[str] = field(default_factory=list)
    tables: dict[str, str] = field(default_factory=dict)
    folders: dict[str, str] = field(default_factory=dict)
    policy: str = LOG_STRUCTURED.name
    first_name: str = ""
    origin: str = ""
    imported: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Started:
    """A run began. `boot` names the time since the host last restarted: while it is the same, unsynced files are whole. `remote` is the
    address of the copy, without credentials; empty for none.
    """

    run: str
    process: int
    host: str
    boot: str
    at: float
    remote: str = ""


@dataclass(frozen=True, slots=True)
class Opened:
    """An epoch has its input. From here on it is reproducible. `files` of the home, with their fingerprints, hold input that cannot be
    had again. With an `origin` its input is state that was imported from there: by operator, the files that hold it (see `spark.imports`).
    Its slices are not read: they say what was taken before; `seen` are the event times of
    that, by source.
    """

    epoch: Epoch
    at: float
    slices: dict[str, Slice]
    files: dict[str, str] = field(default_factory=dict)
    origin: str = ""
    imported: dict[str, list[str]] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Computed:
    """An epoch is whole: all its layers exist. `seen` is the newest event time so far, by source: the next epoch's watermark."""

    epoch: Epoch
    layers: tuple[LayerInfo, ...]
    rows: dict[str, int]
    rejected: dict[str, int]
    seen: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Merged:
    """A layer that stands for several, whose inputs stay until they are given up: merged, or folded (with versions)."""

    layer: LayerInfo


@dataclass(frozen=True, slots=True)
class Restored:
    """After a loss: `lost` layers are to be had nowhere; `layers` were recomputed in their place."""

    lost: tuple[str, ...]
    layers: tuple[LayerInfo, ...]


@dataclass(frozen=True, slots=True)
class TakenOver:
    """A changed program took over behind an epoch. `layers` are what was rebuilt for it from all input. Traces that are `begun` have no
    history before the epoch given; `empty` ones were not rebuilt. `released` says up to where new sinks are done, `seen` the event times
    that rebuilding came across, with the epochs, as far back as anybody asks.
    """

    epoch: Epoch
    layers: tuple[LayerInfo, ...]
    begun: dict[TraceName, Epoch]
    empty: bool
    released: dict[str, Epoch]
    seen: list[tuple[Epoch, dict[str, int]]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RolledBack:
    """Epochs after this one are as if never opened: a failure took input that no tier had yet."""

    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Reached:
    """All epochs up to this one are on a tier, for those who look without the run."""

    tier: str
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Releasing:
    """The intent to deliver epochs to a sink, up to this one: each by itself, or all together as one change."""

    sink: str
    epoch: Epoch
    together: bool = False


@dataclass(frozen=True, slots=True)
class Released:
    """The sink has all epochs up to this one."""

    sink: str
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Trimmed:
    """Input up to an epoch may be deleted at the source from here on; up to epoch `done` it was."""

    source: str
    epoch: Epoch
    done: Epoch = NO_EPOCH


@dataclass(frozen=True, slots=True)
class Swept:
    """Files of these generations and epochs that no entry names may be deleted from here on."""

    generation: int
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Skipped:
    """Somebody has set input aside: what the source knows by these names is never read again, whenever an epoch is computed. By name, the
    epoch that had taken it; 0 for none.
    """

    source: str
    names: dict[str, Epoch]
    at: float


@dataclass(frozen=True, slots=True)
class Rescaled:
    """From an epoch on, the hash space is cut into so many shards. Layers keep the ranges that they were written with."""

    epoch: Epoch
    shards: int
    at: float


@dataclass(frozen=True, slots=True)
class Thinned:
    """From here on, the state can be read as of epochs from `since` on (see `retention.Kept`), and of those before as of what could be read
    so far, but for `gone`. `among` are those of them that were behind the `since` before.
    """

    since: Epoch
    among: tuple[Epoch, ...] = ()
    gone: tuple[Epoch, ...] = ()


@dataclass(frozen=True, slots=True)
class Keeping:
    """Which epochs shall stay readable from here on: the text of a ladder (see `model.ladder`)."""

    keep: str


@dataclass(frozen=True, slots=True)
class Pinned:
    """An epoch stays readable until its pin is dropped."""

    name: str
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Unpinned:
    """The pin holds nothing any more."""

    name: str


@dataclass(frozen=True, slots=True)
class GivenUp:
    """Layers that nobody will ask for again: others stand for them on every tier. They may be deleted from here on. `parts`: of layers
    that stay, by path, the ranges of hashes for which they are given up as well, as text.
    """

    paths: tuple[str, ...]
    parts: dict[str, list[str]] = field(default_factory=dict)


Entry = (
    Declared | Started | Opened | Computed | Merged | Restored | TakenOver | RolledBack | Reached | Releasing | Released | Trimmed | Swept
    | Skipped | Thinned | Keeping | Pinned | Unpinned | GivenUp | Rescaled
)  # fmt: skip
KINDS: dict[str, type[Entry]] = {kind.__name__.lower(): kind for kind in get_args(Entry)}

CHECKS = {kind: checks_of(kind) for kind in KINDS.values()}
FIELDS = {kind: tuple(field.name for field in fields(kind)) for kind in KINDS.values()}


def to_json(entry: Entry) -> dict[str, Any]:
    text: dict[str, Any] = {"entry": type(entry).__name__.lower()}
    for name in FIELDS[type(entry)]:
        text[name] = getattr(entry, name)
    if isinstance(entry, Computed | Restored | TakenOver):
        text["layers"] = [layer.to_json() for layer in entry.layers]
    if isinstance(entry, Merged):
        text["layer"] = entry.layer.to_json()
    return text


def from_json(text: dict[str, Any]) -> Entry:
    """The entry that the text says; `ValueError`, `KeyError` or `TypeError` where it says none."""
    values = {name: value for name, value in text.items() if name != "entry"}
    match text["entry"]:
        case "computed" | "takenover":
            values["layers"] = tuple(LayerInfo.from_json(layer) for layer in values["layers"])
        case "merged":
            values["layer"] = LayerInfo.from_json(values["layer"])
        case "restored":
            values["layers"] = tuple(LayerInfo.from_json(layer) for layer in values["layers"])
            values["lost"] = tuple(values["lost"])
        case "thinned":
            values |= {name: tuple(values[name]) for name in ("among", "gone")}
        case "givenup":
            values["paths"] = tuple(values["paths"])
            for held in (held for parts in values.get("parts", {}).values() for held in parts):
                HashRange.parse(held)
        case "rescaled" if values["shards"] not in POSSIBLE_SHARDS:
            raise ValueError(f"{values['shards']} shards are not possible")
    kind = KINDS[text["entry"]]
    for name, value in values.items():
        if not CHECKS[kind][name](value):
            raise ValueError(f'"{name}" of "{text["entry"]}" has another type than it should')
    if not all(map(is_own_name, values.get("files", ()))):
        raise ValueError("an opening names a file outside of the home")
    return kind(**values)


def check_readable(entry: Entry) -> None:
    """`Internal` for an entry that would not be taken back: nothing may be appended that makes the home unreadable."""
    if all(fits(getattr(entry, name)) for name, fits in CHECKS[type(entry)].items()):
        return
    try:
        from_json(json.loads(json.dumps(to_json(entry), default=str)))
    except MALFORMED as error:
        hint = "Nothing was recorded. Look for a method of a source or sink that returns another type than it should."
        raise Internal(f"this could not be read back: {error}: {entry!r}"[:LONGEST], hint) from error
