"""What of a checkpoint a flow can go on with, and what it cannot: decided before anything is written."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from nosync.graph.nodes import SourceNode
from nosync.graph.operators import Operator
from nosync.graph.walk import reads_past, up_to, upstream
from nosync.importing.checkpoint import Checkpoint
from nosync.importing.layouts import Layout, layout_of
from nosync.importing.stored_state import DEDUPLICATION, WITHIN_WATERMARK, StoredState
from nosync.model.errors import Invalid
from nosync.model.source import Position, Slice
from nosync.runtime.program import Program

EMPTY = "begins empty: no state of the checkpoint is its own"
FOR_EVER = "is kept for ever here: what comes again after the watermark is dropped too"
LEFT = "what the watermark had passed is not in the state: if it comes again, it counts as new"


@dataclass(frozen=True)
class Carried:
    """State that an operator of the flow goes on with."""

    layout: Layout
    stored: StoredState

    @property
    def operator(self) -> str:
        return self.layout.node.name


@dataclass
class Matched:
    """`slices` say where sources go on, `seen` the event times they have come to. `remarks` are differences that the user should know of,
    `losses` what the answers will lack.
    """

    carried: list[Carried] = field(default_factory=list)
    slices: dict[str, Slice] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    losses: list[str] = field(default_factory=list)


def matched(program: Program, checkpoint: Checkpoint, stored: Sequence[StoredState]) -> Matched:
    found = Matched()
    _states(found, program, stored)
    _sources(found, program, checkpoint)
    _event_time(found, program, checkpoint)
    _begins_empty(found, program)
    if checkpoint.planned:
        found.remarks.append(f"batch {checkpoint.batch + 1} had begun: its input is read again, also what its sink may have had of it")
    return found


def _states(found: Matched, program: Program, stored: Sequence[StoredState]) -> None:
    layouts = [layout for node in program.graph.operators if (layout := layout_of(node)) is not None]
    for one in stored:
        fitting = [layout for layout in layouts if layout.fits(one)]
        rivals = [other for other in stored if fitting and fitting[0].fits(other)]
        if len(fitting) == len(rivals) == 1:
            found.carried.append(Carried(fitting[0], one))
            found.remarks += _remarks(fitting[0], one)
        elif fitting:
            found.losses.append(f"{one.said}: {len(fitting)} operators of the flow and {len(rivals)} of the checkpoint look alike")
        else:
            found.losses.append(f"{one.said}: no operator of the flow can go on with it")


def _remarks(layout: Layout, stored: StoredState) -> list[str]:
    said = [f'"{layout.node.name}": {remark}' for remark in layout.remarks]
    if layout.others:
        said.append(f'"{layout.node.name}": {", ".join(layout.others)} of rows from before is not in the state, and null here')
    if stored.operator == WITHIN_WATERMARK:
        said.append(f'"{layout.node.name}": what was met {FOR_EVER}')
    return said


def _sources(found: Matched, program: Program, checkpoint: Checkpoint) -> None:
    done: list[Position] = []
    for number, position in enumerate(checkpoint.sources):
        if position is None or position in done:  # a query may read one input twice
            continue
        done.append(position)
        why = "the flow has fewer sources"
        for name in (name for name in program.sources if name not in found.slices):
            continue_from = program.sources[name].continue_from
            if continue_from is None:
                why = f'source "{name}" cannot go on where another reader has stopped'
                continue
            try:
                found.slices[name] = continue_from(position)
                break
            except Invalid as error:
                why = error.message
        else:
            found.losses.append(f"source {number} of the checkpoint, at {position.offset[:60]}: {why}")
    for name in program.sources.keys() - found.slices.keys():
        found.remarks.append(f'source "{name}" begins as on a new home: the checkpoint has read nothing of it')


def _event_time(found: Matched, program: Program, checkpoint: Checkpoint) -> None:
    """Spark has one watermark for a query, the flow one for each source: all are brought to where it is."""
    timed = [node for node in program.graph.sources.values() if node.delay is not None]
    if not checkpoint.watermark:
        return
    found.seen = {node.name: checkpoint.watermark + (node.delay or 0) for node in timed}
    if not timed:
        found.remarks.append("the query has a watermark, and no source of the flow has one: nothing closes")
    if any(carried.layout.node.expiries for carried in found.carried):
        found.remarks.append("windows that the watermark had passed are not in the state: views begin without them")
    if any(carried.stored.operator in (DEDUPLICATION, WITHIN_WATERMARK) for carried in found.carried):
        found.remarks.append(LEFT)


def _begins_empty(found: Matched, program: Program) -> None:
    """Views whose rows came from input that no carried state stands for, and what would have kept it."""
    held, graph = {carried.operator for carried in found.carried}, program.graph
    for node in upstream(graph.queries, up_to(held)):
        if isinstance(node, Operator) and node.name not in held and reads_past(node, held):
            found.losses.append(f'"{node.name}" {EMPTY}')
    for view in graph.views.values():
        behind = list(upstream([view], up_to(held)))
        if view.name.endswith(".rejected") or any(isinstance(node, Operator) and node.name not in held for node in behind):
            continue  # that is said already, or nothing to speak of
        if any(isinstance(node, SourceNode) and node.static is None for node in behind):
            found.losses.append(f'view "{view.name}" begins without the rows from before: the stream has not kept them')
