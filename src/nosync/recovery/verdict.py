"""What findings mean: what can be read, what the next start would do, what is lost for good. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from nosync.journal.entries import Declared
from nosync.journal.image import Image
from nosync.journal.record import NOT_OURS
from nosync.model.errors import reading
from nosync.model.identifiers import Epoch, TraceName
from nosync.model.layers import LayerInfo
from nosync.model.policies.table import policy_named
from nosync.recovery.check import Findings
from nosync.recovery.plan import Plan, Shape, plan
from nosync.recovery.survey import Survey
from nosync.state.cover import is_covered, pieces, versioned_chain
from nosync.state.leaves import leaf_layers, within

WHOLE, REPAIRABLE, LOST = 0, 1, 2
Epochs = tuple[tuple[Epoch, Epoch], ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """`code`: the newest state is whole (0), a start repairs it (1), something is lost for good (2). `next` is what a start would do,
    `without_disk` what it would do if the home were lost too; None for what cannot be done. `unreadable` are ranges of epochs, by view.
    """

    code: int
    next: Plan | None
    without_disk: Plan | None
    unreadable: dict[str, Epochs]


def judge(findings: Findings) -> Verdict:
    """The verdict on a home, and on its remote where there is one. `Corrupt` where the journal declares what no program does."""
    with reading("the declaration in the journal", NOT_OURS):
        return _judged(findings)


def _judged(findings: Findings) -> Verdict:
    image, shape = findings.image, shape_of(findings.image.declared)
    chosen = plan(image, findings.survey, shape)
    without_disk = None
    if "remote" in findings.holdings:
        without_disk = plan(image, Survey(frozenset(), findings.survey.remote), shape)
    home = findings.holdings["home"].whole
    declared = image.declared.views if image.declared else {}
    unreadable = {name: unreadable_epochs(image, TraceName(view["trace"]), home) for name, view in declared.items()}
    return Verdict(_code(findings, chosen, shape), chosen, without_disk, unreadable)


def shape_of(declared: Declared | None) -> Shape:
    """What a recovery must know of a program, as the journal has it."""
    if declared is None:
        return Shape({})
    feeders = {name: frozenset(needed) for name, needed in declared.feeders.items()}
    sinks, policy = {sink["trace"]: name for name, sink in declared.sinks.items() if "trace" in sink}, policy_named(declared.policy)
    return Shape(feeders, sinks, frozenset(declared.stepwise), frozenset(declared.unrepeatable), frozenset(declared.records), policy)


def _code(findings: Findings, chosen: Plan | None, shape: Shape) -> int:
    """What sinks have got is not part of the newest state: a home that took over has it never."""
    if chosen is None or chosen.opened < findings.image.last_opened:
        return LOST
    newest = {layer.path for layer in findings.image.newest_layers() if layer.trace not in shape.sinks}
    idle = not chosen.fetch and not chosen.jobs and not findings.lacking and newest <= findings.holdings["home"].whole
    return WHOLE if idle else REPAIRABLE


def unreadable_epochs(image: Image, trace: TraceName, there: frozenset[str]) -> Epochs:
    """Epochs as of which a view's rows cannot be read from the home as it is."""
    found: list[tuple[Epoch, Epoch]] = []
    for layers in pieces(image.traces.get(trace, {})).values():
        chain = versioned_chain(layers)
        at_once = [leaf for leaf in leaf_layers(layers) if not is_covered(leaf, chain)]
        found += [(layer.lower, layer.upper - 2) for layer in at_once]  # after a failure
        found += [(first, last - 1) for layer in chain for first, last in layer.blind]
        found += [_read_for(layer, layers, image.epoch) for layer in layers if layer.path not in there]
    return joined((first, last) for first, last in found if first <= last)


def _read_for(layer: LayerInfo, layers: Iterable[LayerInfo], newest: Epoch) -> tuple[Epoch, Epoch]:
    """The epochs whose covers have this layer in them: from its own last one on, until a larger layer takes its place."""
    if layer.versions:
        return layer.lower, min(newest, layer.upper - 1)
    larger = [other.upper for other in layers if within(layer, other) and _key(other) < _key(layer)]
    return layer.upper - 1, min([newest, *(upper - 2 for upper in larger)])


def _key(layer: LayerInfo) -> tuple[int, str]:
    """Of two layers that hold an epoch, covers prefer the larger, then the first by name."""
    return layer.lower - layer.upper, layer.path


def joined(ranges: Iterable[tuple[Epoch, Epoch]]) -> Epochs:
    """Ranges that touch or overlap, as one."""
    found: list[tuple[Epoch, Epoch]] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return tuple(found)
