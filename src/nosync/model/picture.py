"""What a flow's graph looks like to a person: boxes, what each keeps and why, what an epoch costs it, and who reads whom.

Pure values. Made from the graph of a program, recorded in the journal with its declaration, so that a home can be explained without either.
"""

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from nosync.model.identifiers import TraceName

Sort = Literal["source", "operator", "view", "sink"]
CHANGE = "in proportion to the change"
GROUPS = "in proportion to the touched groups"


@dataclass(frozen=True, slots=True)
class Description:
    """What an operator says of itself: what it keeps, why no less, and what an epoch costs.

    `kept`: how long, where that is no matter of watermarks. `endless`: why for ever, where there is one and nothing expires by it.
    """

    keeps: str
    why: str = ""
    costs: str = CHANGE
    kept: str = ""
    endless: str = "no key of its groups is an event time"


@dataclass(frozen=True, slots=True)
class Box:
    """A source, operator, view or sink. `inputs` are ids of boxes that stand before it, `steps` what happens to their rows without state.

    `traces` are the names under which it keeps state: none for what keeps nothing. `kept` says how long an operator keeps it.
    """

    name: str
    sort: Sort
    kind: str
    what: str = ""
    keeps: str = ""
    why: str = ""
    costs: str = ""
    promises: str = ""
    steps: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    traces: tuple[TraceName, ...] = ()
    kept: str = ""

    @property
    def id(self) -> str:
        """A source and its view of rejected rows may have one name."""
        return f"{self.sort} {self.name}"


@dataclass(frozen=True, slots=True)
class Picture:
    """A flow. Inputs stand before what reads them."""

    flow: str
    boxes: tuple[Box, ...]

    def readers(self, box: Box) -> list[Box]:
        """Who is computed from the box."""
        return [other for other in self.boxes if box.id in other.inputs]

    def ends(self) -> list[Box]:
        """Views and sinks: what the user asked for."""
        return [box for box in self.boxes if box.sort in ("view", "sink")]

    def to_json(self) -> list[dict[str, Any]]:
        lists = ("steps", "inputs", "traces")
        return [{name: list(value) if name in lists else value for name, value in asdict(box).items()} for box in self.boxes]

    @staticmethod
    def from_json(flow: str, boxes: list[dict[str, Any]]) -> "Picture":
        """`ValueError` or `TypeError` where the boxes make no picture."""
        known: list[dict[str, Any]] = [
            {name: tuple(value) if isinstance(value, list) else value for name, value in box.items()} for box in boxes
        ]
        found = Picture(flow, tuple(Box(**box) for box in known))
        met: set[str] = set()
        for box in found.boxes:
            if box.sort not in get_args(Sort) or box.id in met or not met.issuperset(box.inputs):
                raise ValueError(f"box {box.id!r} does not stand behind what it reads")
            if not all(isinstance(text, str) for value in asdict(box).values() for text in (value if type(value) is tuple else (value,))):
                raise TypeError(f"box {box.id!r} says something that is no text")
            met.add(box.id)
        return found


@dataclass(frozen=True, slots=True)
class Figures:
    """What a box's state takes now. `rows` as they lie in the layers: a row that changed may lie in several. `millis`: of its slowest task
    in a usual epoch, where a run has reported one.
    """

    rows: int
    layers: int
    bytes: int
    millis: float | None = None
