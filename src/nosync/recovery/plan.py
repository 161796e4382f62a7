"""What to do after a failure. Pure: the journal's image and a survey in, a plan out.

Promise: carrying out the plan makes every trace's state as of `epoch` readable from the home, and every output that a sink has yet to get.
Nothing is recomputed that some tier still has. An epoch is given up only when a failure took its input before any tier had it, or
state that nobody can compute again before it was safe; then the one before is next.

After rescalings a trace is looked at piece by piece (see `state.cover`), and a layer stands, with the range of the piece, in each that it
has a part in. What was lost is recomputed for all hashes that it had, whichever shards these are in today.

To recompute epochs [first, last] of a shard, the state of the trace and of all upstream of it must be readable as of first - 1.
Where the log has only a layer that spans that boundary, the job starts where that layer starts; at the latest with epoch 1, from nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nosync.journal.image import Image
from nosync.model.hash_range import HashRange
from nosync.model.identifiers import NO_EPOCH, Epoch, TraceName, epochs
from nosync.model.layers import LayerInfo, TraceRange
from nosync.model.policies.log_structured import LOG_STRUCTURED
from nosync.model.policy import Policy
from nosync.recovery.earlier_shards import as_written, lost_leaves, remembered, widened
from nosync.recovery.recompute import Recompute
from nosync.recovery.survey import Survey
from nosync.state.cover import cover, is_covered, known_updates, pieces
from nosync.state.leaves import leaf_layers, within


@dataclass(frozen=True, slots=True)
class Shape:
    """What the plan must know of a program: who feeds whom (all the way up, itself included), and the traces of sinks.

    `stepwise` traces come out right only epoch by epoch. `unrepeatable` ones cannot be computed again at all; some of them are `records` of
    what was emitted in each epoch, and whoever stands on them reads it there. `policy` is how the state was protected.
    """

    feeders: Mapping[TraceName, frozenset[TraceName]]
    sinks: Mapping[TraceName, str] = field(default_factory=dict)
    stepwise: frozenset[TraceName] = frozenset()
    unrepeatable: frozenset[TraceName] = frozenset()
    records: frozenset[TraceName] = frozenset()
    policy: Policy = LOG_STRUCTURED


@dataclass(frozen=True, slots=True)
class Plan:
    """Resume at `epoch`: `fetch` files from the remote, run the `jobs` in order, forget the `lost` layers, read `found` ones instead.
    `missing` are the updates that no tier has. `gone` layers stay on record without a file, for larger ones that stand for them: were
    those lost too, nobody would know else that there had been anything, nor which of the epochs within can still be read.
    `torn` files of the home go: who reads an old epoch would come upon them.

    Epochs after `opened` have lost their input: they are rolled back, as if never opened. Those between are to be computed anew.
    """

    epoch: Epoch
    opened: Epoch
    fetch: tuple[str, ...] = ()
    jobs: tuple[Recompute, ...] = ()
    lost: tuple[str, ...] = ()
    found: tuple[LayerInfo, ...] = ()
    missing: tuple[LayerInfo, ...] = ()
    gone: tuple[str, ...] = ()
    torn: tuple[str, ...] = ()


def plan(image: Image, survey: Survey, shape: Shape) -> Plan | None:
    """The plan for the newest epoch that can be reached; None when layers are gone for good. There is no way back behind a change of the
    program, nor behind what a sink has been given, unless its epoch stays opened: then it comes out the same, or its promise says that it
    may differ.

    Where input was set aside that a job would read, all from there on is computed without it: what is left of before had it.
    """
    found = _newest(image, survey, shape)
    while found is not None and (first := _first_skipped(image, found)):
        fewer = _without(survey, image, shape, first)
        if fewer == survey:
            break
        survey, found = fewer, _newest(image, fewer, shape)
    return found


def _first_skipped(image: Image, found: Plan) -> Epoch:
    """The first epoch of a job that had input which was set aside since; 0 for none."""
    skipped = [epoch for names in image.skipped.values() for epoch in names.values()]
    return min((epoch for epoch in skipped for job in found.jobs if job.first <= epoch <= job.last), default=NO_EPOCH)


def _without(survey: Survey, image: Image, shape: Shape, first: Epoch) -> Survey:
    """As if all layers from an epoch on were gone that can be computed again."""
    gone = {layer.path for layer in image.layers() if layer.upper > first and layer.trace not in {*shape.unrepeatable, *shape.records}}
    return replace(survey, home=survey.home - gone, remote=survey.remote - gone)


def _newest(image: Image, survey: Survey, shape: Shape) -> Plan | None:
    begun = max((begun.epoch for begun in image.begun.values()), default=0)
    released = min(image.epoch, max((image.released.get(sink, NO_EPOCH) for sink in shape.sinks.values()), default=NO_EPOCH))
    epoch, lost = image.epoch, _lost_inputs(image, survey)
    while True:
        found = _plan_for(epoch, image, survey, shape)
        if found is not None:
            return found if found.opened >= shape.policy.floor(released) else None
        no_input = min(lost, default=epoch + 1) <= epoch
        if not (no_input or _lost_for_now(image, survey, shape, epoch)) or epoch <= begun:
            return None
        epoch -= 1


def _lost_inputs(image: Image, survey: Survey) -> list[Epoch]:
    """Epochs whose input is gone although nobody trimmed it."""
    return [
        epoch
        for epoch, entry in image.opened.items()
        if epoch > max((image.trimmed.get(source, 0) for source in entry.slices), default=0)
        and not all(survey.readable(name) for name in entry.files)
    ]


def _lost_for_now(image: Image, survey: Survey, shape: Shape, epoch: Epoch) -> bool:
    """Whether some of what cannot be computed again was lost before it was safe: then its epoch, and all after it, may come out anew."""
    layers = [layer for name in shape.unrepeatable for found in image.traces.get(name, {}).values() for layer in found]
    return any(layer.upper <= epoch + 1 and layer.path in survey.doubted and not survey.readable(layer.path) for layer in layers)


def _plan_for(epoch: Epoch, image: Image, survey: Survey, shape: Shape) -> Plan | None:
    """The plan for an epoch. What shards of earlier times have written, and others stand for since, is made again if that can be done."""
    lost = lost_leaves(image, survey.readable)
    orphaned = [leaf for leaf in lost if leaf.trace not in shape.unrepeatable and leaf.trace not in shape.sinks]
    found = _plan_with(orphaned, lost, epoch, image, survey, shape) if orphaned else None
    return found or _plan_with([], lost, epoch, image, survey, shape)


def _plan_with(
    orphaned: Sequence[LayerInfo], old: Sequence[LayerInfo], epoch: Epoch, image: Image, survey: Survey, shape: Shape
) -> Plan | None:
    """`orphaned` ones of the lost `old` leaves are to be made again."""
    whole = {layer.path: layer for layer in image.layers()}
    traces = {part: _up_to(epoch, layers) for part, layers in _traces(image)}
    readable = {part: [layer for layer in layers if survey.readable(layer.path)] for part, layers in traces.items()}
    covers = {part: cover(layers, epoch) for part, layers in readable.items()}
    released = {part: _released(image, shape, part[0]) for part in traces}
    missing: list[LayerInfo] = []
    for part, layers in traces.items():
        missing += _missing(layers, covers[part], released[part])
    on_loss = {leaf.trace: shape.policy.on_loss(leaf.trace not in shape.unrepeatable) for leaf in (*missing, *orphaned)}
    if "refuse" in on_loss.values():
        return None
    missing = list(dict.fromkeys(as_written(leaf, whole) for leaf in missing))
    wanted = dict.fromkeys([*missing, *(leaf for leaf in orphaned if leaf.upper <= epoch + 1)])
    jobs = _jobs([leaf for leaf in wanted if on_loss[leaf.trace] == "recompute"], traces, readable, shape, _first_imported(image))
    jobs = tuple(widened(job, whole.values()) for job in jobs)
    if not all(_has_input(job, image, survey) and _has_records(job, traces, readable, shape) for job in jobs):
        return None
    needed = {layer.path for part, layers in covers.items() if part[0] not in shape.sinks for layer in layers}
    needed |= {layer.path for part in traces if part[0] in shape.sinks for layer in _outputs(readable[part], released[part])}
    for job in jobs:
        needed |= _below(job, readable, shape)
    needed |= _inputs(image, jobs, epoch)
    gone = {leaf.path for part, layers in traces.items() for leaf in _stood_for(layers, readable[part], covers[part])}
    gone |= remembered(old, jobs)
    away = {layer.path for layers in traces.values() for layer in layers if layer.path and not survey.readable(layer.path)}
    lost = tuple(sorted(away - gone))
    found = tuple({layer.path: whole[layer.path] for layers in covers.values() if lost for layer in layers}.values())
    fetch = tuple(sorted(name for name in needed if name not in survey.home and name in survey.remote))
    opened, torn = _still_open(image, survey, epoch), tuple(sorted(survey.torn))
    return Plan(epoch, opened, fetch, jobs, lost, found, tuple(missing), tuple(sorted(gone)), torn)


def _up_to(epoch: Epoch, layers: list[LayerInfo]) -> list[LayerInfo]:
    """Layers of epochs up to this one. Where only a layer that goes on beyond it stands for some of them, their part of it has no file: it
    can be read nowhere.
    """
    across = [leaf for leaf in leaf_layers(layers) if leaf.lower <= epoch < leaf.upper - 1]
    return [layer for layer in layers if layer.upper <= epoch + 1] + [replace(leaf, upper=epoch + 1, path="") for leaf in across]


def _still_open(image: Image, survey: Survey, epoch: Epoch) -> Epoch:
    """The last epoch whose input is there. An epoch without input takes all after it along."""
    last = epoch
    while (entry := image.opened.get(last + 1)) is not None and all(survey.readable(name) for name in entry.files):
        last += 1
    return last


def _traces(image: Image) -> Iterable[tuple[TraceRange, list[LayerInfo]]]:
    for trace, written in image.traces.items():
        for piece, layers in pieces(written).items():
            yield (trace, piece), [layer if layer.range == piece else replace(layer, range=piece) for layer in layers]


def _released(image: Image, shape: Shape, trace: TraceName) -> Epoch:
    """For the trace of a sink: up to which epoch the sink has had it; nobody will ask for that again."""
    return image.released.get(shape.sinks[trace], NO_EPOCH) if trace in shape.sinks else NO_EPOCH


def _outputs(layers: Iterable[LayerInfo], released: Epoch) -> list[LayerInfo]:
    return [layer for layer in layers if layer.upper > released + 1]


def _missing(layers: list[LayerInfo], chosen: Iterable[LayerInfo], released: Epoch) -> list[LayerInfo]:
    """The leaf layers whose updates are in no chosen one. A sink needs only what it has not had."""
    there = list(chosen)
    return [leaf for leaf in _outputs(known_updates(layers), released) if not is_covered(leaf, there)]


def _stood_for(layers: list[LayerInfo], readable: list[LayerInfo], chosen: Iterable[LayerInfo]) -> list[LayerInfo]:
    """The leaf layers that can be read nowhere and are part of a chosen one."""
    there, larger = {(layer.lower, layer.upper) for layer in readable}, list(chosen)
    nowhere = [leaf for leaf in leaf_layers(layers) if leaf.path and (leaf.lower, leaf.upper) not in there]
    return [leaf for leaf in nowhere if any(within(leaf, layer) for layer in larger)]


Layers = Mapping[TraceRange, list[LayerInfo]]


def _first_imported(image: Image) -> Epoch:
    """The epoch that brought imported state, 0 for none. What it changes above such state is in the state that was imported there."""
    first = image.opened.get(Epoch(1))
    return first.epoch if first is not None and first.origin else NO_EPOCH


def _jobs(missing: list[LayerInfo], traces: Layers, readable: Layers, shape: Shape, imported: Epoch) -> tuple[Recompute, ...]:
    jobs: list[Recompute] = []
    at_once = [leaf for leaf in missing if leaf.trace in shape.sinks and leaf.upper > leaf.lower + 1]
    for leaf in sorted((leaf for leaf in missing if leaf not in at_once), key=lambda leaf: (leaf.lower, leaf.upper)):
        job = Recompute(leaf.lower, leaf.upper - 1, {leaf.trace: frozenset([leaf.range])})
        while jobs and job.first <= jobs[-1].last + 1:
            job = _joined(jobs.pop(), job)
        job = _earlier(job, traces, readable, shape)
        while jobs and job.first <= jobs[-1].last:
            job = _earlier(_joined(jobs.pop(), job), traces, readable, shape)
        jobs.append(job)
    return (*_at_once(at_once), *(one for job in jobs for one in _alone(job, traces, shape, imported)))


def _at_once(leaves: list[LayerInfo]) -> tuple[Recompute, ...]:
    """A sink that came with a changed program got all before it at once, from nothing: nothing else is written on the way."""
    found: dict[tuple[Epoch, Epoch, TraceName], frozenset[HashRange]] = {}
    for leaf in leaves:
        part = (leaf.lower, leaf.upper, leaf.trace)
        found[part] = found.get(part, frozenset()) | {leaf.range}
    return tuple(Recompute(lower, upper - 1, {trace: ranges}) for (lower, upper, trace), ranges in found.items())


def _joined(one: Recompute, other: Recompute) -> Recompute:
    none: frozenset[HashRange] = frozenset()
    targets = {trace: one.targets.get(trace, none) | other.targets.get(trace, none) for trace in (*one.targets, *other.targets)}
    return Recompute(min(one.first, other.first), max(one.last, other.last), targets)


def _closure(job: Recompute, shape: Shape) -> frozenset[TraceName]:
    return frozenset().union(*(shape.feeders.get(trace, frozenset([trace])) for trace in job.targets))


def _earlier(job: Recompute, traces: Layers, readable: Layers, shape: Shape) -> Recompute:
    """The job, begun where the state before it can be read."""
    closure = _closure(job, shape)
    first = job.first
    while True:
        start = first
        for part, layers in traces.items():
            if part[0] not in closure or part[0] in shape.sinks or part[0] in shape.records:
                continue
            before = cover(readable[part], first - 1)
            gaps = [leaf for leaf in known_updates(layers) if leaf.lower < first and not is_covered(leaf, before)]
            start = min([start, *(leaf.lower for leaf in gaps)])
        if start == first:
            return Recompute(first, job.last, job.targets)
        first = start


def _alone(job: Recompute, traces: Layers, shape: Shape, imported: Epoch) -> list[Recompute]:
    """Epoch by epoch where a sink has yet to get them one by one, where something upstream depends on it, or where state was `imported`.

    Then every shard upstream is written by epoch too: what the log has of them may span epochs, and each epoch needs them as of the one
    before.
    """
    closure = _closure(job, shape)
    by_epoch = any(trace in shape.sinks for trace in job.targets) or closure & shape.stepwise or job.first <= imported
    if job.first == job.last or not by_epoch:
        return [job]
    targets = {trace: frozenset(held for name, held in traces if name == trace) for trace in closure - shape.unrepeatable}
    return [Recompute(epoch, epoch, targets) for epoch in epochs(job.first, job.last)]


def _below(job: Recompute, readable: Layers, shape: Shape) -> set[str]:
    """Layers that the job reads."""
    closure = _closure(job, shape)
    parts = [part for part in readable if part[0] in closure and part[0] not in {*shape.sinks, *shape.records}]
    found = {layer.path for part in parts for layer in cover(readable[part], job.first - 1)}
    return found | {layer.path for layer in recorded(readable, job, closure & shape.records)}


def recorded(layers: Layers, job: Recompute, records: Iterable[TraceName]) -> list[LayerInfo]:
    """What records hold of the epochs of a job."""
    of_them = [layer for part, found in layers.items() if part[0] in records for layer in leaf_layers(found)]
    return [layer for layer in of_them if job.first <= layer.lower and layer.upper <= job.last + 1]


def _has_records(job: Recompute, traces: Layers, readable: Layers, shape: Shape) -> bool:
    """Whether all that was emitted in these epochs can be read, epoch by epoch where it is needed so."""
    wanted = _closure(job, shape) & shape.records
    there = {layer.path for layer in recorded(readable, job, wanted)}
    known = [leaf for part, layers in traces.items() if part[0] in wanted for leaf in leaf_layers(layers)]
    return all(leaf.path in there for leaf in known if leaf.lower <= job.last and leaf.upper > job.first)


def _has_input(job: Recompute, image: Image, survey: Survey) -> bool:
    for epoch in epochs(job.first, job.last):
        entry = image.opened.get(epoch)
        if entry is None or not all(survey.readable(name) for name in entry.files):
            return False
        if any(image.trimmed.get(source, 0) >= epoch for source in entry.slices):
            return False
    return True


def _inputs(image: Image, jobs: Iterable[Recompute], epoch: Epoch) -> set[str]:
    """Input that must be at hand: of the epochs to recompute, and of those that were opened and not computed."""
    needed = {one for job in jobs for one in epochs(job.first, job.last)} | {one for one in image.opened if one > epoch}
    return {name for one in needed for name in image.opened[one].files}
