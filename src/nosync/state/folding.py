"""How the past of a trace is kept in few files, and which layers nobody needs any more. Pure.

Beside the layers that make up the newest state, a range of a trace has a *chain*: layers without a gap between them, from which the state
as of every kept epoch can be read. It consists of

* a *base*: a merged layer that begins with the trace. No epoch before its last is kept, so nothing before it is needed;
* versioned layers, one behind the other;
* leaf layers, those that are too new or too few to be folded into a versioned one.

*Steps* are merged layers that begin with the trace and end where a versioned layer does: reading a later epoch starts there instead of at
the base. One is kept where so much lies between it and the one before that reading that would cost as much as reading it. Merging goes on
as for the newest state (see `spine`), but not across a step; and a versioned layer is written anew when half of its versions are not
kept any more. (Knobs may say otherwise, and when leaf layers are folded: see `model.compaction`.) The base moves by itself: once the kept
epochs have moved on, a step takes its place.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass

from nosync.model.compaction import DEFAULT, NO_AGES, Ages, Compaction
from nosync.model.hash_range import HashRange
from nosync.model.identifiers import Epoch
from nosync.model.layers import LayerInfo
from nosync.model.retention import FIRST, Kept
from nosync.state.cover import at_bottom, cover, has_updates, known_updates, start_of, versioned_chain
from nosync.state.leaves import leaf_layers, within
from nosync.state.spine import plan_merge

LEAVES = 8  # leaf layers that are folded together, unless the knobs say when
MOST_LEAVES = 64
FEW_VERSIONS = 4  # are not worth writing anew
SHARE = 4  # a step has at least that part of all rows of the chain between it and the one before


@dataclass(frozen=True, slots=True)
class Fold:
    """Layers to write as one versioned layer for epochs [lower, upper), newest first."""

    layers: tuple[LayerInfo, ...]
    lower: Epoch
    upper: Epoch
    blind: tuple[tuple[Epoch, Epoch], ...]
    bottom: bool


@dataclass(frozen=True, slots=True)
class Chain:
    """The chain of a range of a trace, oldest first. `folded` is behind the last epoch that needs no folding."""

    base: LayerInfo | None
    versioned: tuple[LayerInfo, ...]
    leaves: tuple[LayerInfo, ...]
    steps: tuple[LayerInfo, ...]
    folded: Epoch

    @property
    def layers(self) -> tuple[LayerInfo, ...]:
        return (*([self.base] if self.base else []), *self.versioned, *self.leaves, *self.steps)


ChainIn = Callable[[HashRange], Chain]


def chain_of(layers: Iterable[LayerInfo], kept: Kept, last: Epoch, first: Epoch = FIRST, start: Epoch | None = None) -> Chain:
    """The chain in these layers, which may have more than that. Epochs before `first` cannot be asked for, since the trace began later;
    those behind `last` may yet be taken back. `start` is where the layers of the trace begin, where that cannot be seen from these.
    """
    known = [layer for layer in layers if layer.upper <= last + 1]
    start = start_of(known) if start is None else start
    versioned = versioned_chain(known, start)
    folded, edges = versioned[-1].upper if versioned else start, {layer.lower for layer in versioned}
    begun = at_bottom((layer for layer in known if not layer.versions), start)
    bottoms = [layer for layer in begun if layer.upper in edges or layer.upper >= folded]
    base = max((layer for layer in bottoms if not kept.count(first, Epoch(layer.upper - 2))), key=_ends, default=None)
    begin = base.upper if base else start
    folded = max(folded, begin)
    rest = [layer for layer in versioned if layer.upper > begin]
    leaves = leaf_layers(layer for layer in known if layer.lower >= folded and not layer.versions)
    return Chain(base, tuple(rest), tuple(leaves), tuple(_steps([*rest, *leaves], bottoms, begin)), folded)


def _ends(layer: LayerInfo) -> tuple[Epoch, str]:
    return layer.upper, layer.path


def _steps(chain: Sequence[LayerInfo], bottoms: Iterable[LayerInfo], begin: Epoch) -> Iterator[LayerInfo]:
    total = sum(layer.rows for layer in chain)
    for bottom in sorted(bottoms, key=_ends):
        between = sum(layer.rows for layer in chain if begin < layer.upper <= bottom.upper)
        if bottom.upper > begin and between >= max(bottom.rows, total / SHARE):
            yield bottom
            begin = bottom.upper


def plan_fold(chain: Chain, kept: Kept, knobs: Compaction = DEFAULT, ages: Ages = NO_AGES) -> Fold | None:
    """What to write next for the chain; None while it is short enough."""
    if _is_closed(chain.leaves, kept, knobs, ages):
        upper = _fitting(chain, chain.leaves[-1].upper)
        chosen = [leaf for leaf in chain.leaves if leaf.upper <= upper][:MOST_LEAVES]
        if chosen[-1].upper <= chain.folded + 1:  # a file of one epoch that no record names yet is swept, as one of an attempt that failed
            chosen = list(chain.leaves[:MOST_LEAVES])
        return _fold_up_to(chain, chosen[-1].upper, kept)
    for part in _between_steps(chain):
        layers = plan_merge(part[::-1])
        if layers:
            return _fold(layers[::-1], layers[-1].lower, layers[0].upper, kept)
    dirty = next((layer for layer in chain.versioned if _is_dirty(layer, kept, knobs.dirty)), None)
    return _fold([dirty], dirty.lower, dirty.upper, kept) if dirty else None


def _is_closed(leaves: Sequence[LayerInfo], kept: Kept, knobs: Compaction, ages: Ages) -> bool:
    """Whether the leaf layers are folded. Many are folded whatever the knobs say; of few, those that have several epochs to be read. Where
    only the last can be, the merges of the newest state will do: a versioned layer would keep the base from moving on.
    """
    alone = not leaves or kept.stands_alone(leaves[0].lower, leaves[-1].upper)
    if not knobs.by_segment or alone or len(leaves) >= MOST_LEAVES:
        return len(leaves) >= LEAVES
    return knobs.closes(sum(leaf.bytes for leaf in leaves), ages.of(leaves[0].lower))


def plan_folds(
    held: HashRange, ranges: Iterable[HashRange], chain_in: ChainIn, kept: Kept, knobs: Compaction = DEFAULT, ages: Ages = NO_AGES
) -> list[tuple[HashRange, Fold]]:
    """What to write next for the chain of a range; and for those of the trace's other ranges that end in the same layer: after a rescaling
    there are several where one shard writes. They are folded up to the same epoch, whichever lies behind first: from there on one layer
    does for all of them.
    """
    fold = plan_fold(chain_in(held), kept, knobs, ages)
    if fold is None:
        return []
    beside = [one for one in sorted(ranges) if one.within(fold.layers[0].range)]
    if fold.layers[0].versions:
        return _side_by_side([(one, fold) for one in beside if plan_fold(chain_in(one), kept, knobs, ages) == fold])
    chains = {one: chain_in(one) for one in beside}
    upper = min(_fitting(chain, fold.upper) for chain in chains.values())
    if any(chain.folded < upper <= chain.folded + 1 for chain in chains.values()):
        upper = fold.upper
    found = [(one, other) for one, chain in chains.items() if (other := _fold_up_to(chain, upper, kept)) is not None]
    return sorted(_side_by_side(found or [(held, fold)]), key=lambda one: one[1].lower)


def _side_by_side(folds: Sequence[tuple[HashRange, Fold]]) -> list[tuple[HashRange, Fold]]:
    """Neighbours for which the same is written, as one."""
    found: list[tuple[HashRange, Fold]] = []
    for held, fold in folds:
        if found and found[-1][1] == fold and found[-1][0].upper == held.lower:
            held = HashRange(found.pop()[0].lower, held.upper)
        found.append((held, fold))
    return found


def _fitting(chain: Chain, upper: Epoch) -> Epoch:
    """Up to where leaf layers are folded of which no step ends in between."""
    ends = [step.upper for step in chain.steps if chain.leaves and step.upper > chain.leaves[0].lower]
    return min([*ends, upper])


def _fold_up_to(chain: Chain, upper: Epoch, kept: Kept) -> Fold | None:
    """All leaf layers up to an epoch; None where they would make a layer of one epoch, or none."""
    chosen = [leaf for leaf in chain.leaves if leaf.upper <= upper]
    if not chosen or upper <= chain.folded + 1:
        return None
    return _fold(chosen, chain.folded, upper, kept, not chain.versioned and chain.base is None)


def _fold(layers: Sequence[LayerInfo], lower: Epoch, upper: Epoch, kept: Kept, bottom: bool = False) -> Fold:
    """Of layers, oldest first. What was computed at once cannot be told apart."""
    at_once = [(layer.lower, Epoch(layer.upper - 1)) for layer in layers if not layer.versions and layer.upper > layer.lower + 1]
    blind = [*at_once, *(pair for layer in layers for pair in layer.blind)]
    known = tuple(sorted(pair for pair in blind if kept.count(pair[0], Epoch(pair[1] - 1))))
    return Fold(tuple(layers[::-1]), lower, upper, known, bottom or layers[0].bottom)


def _between_steps(chain: Chain) -> list[list[LayerInfo]]:
    ends = {step.upper for step in chain.steps}
    parts: list[list[LayerInfo]] = [[]]
    for layer in chain.versioned:
        if parts[-1] and parts[-1][-1].range != layer.range:
            parts.append([])  # what was written before a rescaling stays apart, or one layer would not do for all of a shard again
        parts[-1].append(layer)
        if layer.upper in ends:
            parts.append([])
    return parts


def _is_dirty(layer: LayerInfo, kept: Kept, ratio: float) -> bool:
    left = kept.count(layer.lower, Epoch(layer.upper - 2)) + 1
    return layer.versions >= FEW_VERSIONS and left <= (1 - ratio) * layer.versions


def needed(known: Sequence[LayerInfo], kept: Kept, last: Epoch, first: Epoch = FIRST, there: Sequence[LayerInfo] | None = None) -> set[str]:
    """The paths of those layers without which the newest state, or that of a kept epoch, could not be read where only some of all `known`
    layers are `there`. What is behind epoch `last` is needed in any case.

    Until a versioned layer is there, and all of the chain before it, all that it was made of stays on record: it does not say which epochs
    changed nothing.
    """
    layers = known if there is None else there
    old = [layer for layer in layers if layer.upper <= last + 1]
    chain = chain_of(old, kept, last, first, start_of(known))
    found = [*cover(old, last), *chain.layers]
    found += [layer for layer in layers if layer.upper > last + 1]
    if there is not None:
        absent = [layer for layer in chain_of(known, kept, last, first).versioned if layer not in chain.versioned]
        found += [leaf for leaf in leaf_layers(layer for layer in known if not layer.versions) if any(within(leaf, one) for one in absent)]
        found += _otherwise_lost(old, found, known, kept)
    return {layer.path for layer in found}


def forgettable(known: Sequence[LayerInfo], kept: Kept, last: Epoch, first: Epoch, nowhere: Container[str]) -> set[str]:
    """The paths of those leaf layers, and of a base, that nobody has any more, and for which others are read: what travelled as one layer
    is all that is left where a home came back from its remote. As long as they are on record, nothing from them on can be folded.
    """
    chain = chain_of(known, kept, last, first)
    leaves = [leaf for leaf in chain.leaves if leaf.path in nowhere]
    based = [chain.base] if chain.base is not None and chain.base.path in nowhere else []
    for lost in ([*based, *leaves], leaves) if based else (leaves,):
        left = chain_of([layer for layer in known if layer not in lost], kept, last, first, start_of(known)) if lost else chain
        there = [leaf for leaf in left.leaves if leaf.path not in nowhere]
        found = {layer.path for layer in lost if any(within(layer, other) for other in there)}
        base = None if chain.base is not None and chain.base.path in found else chain.base
        if (left.base, left.versioned) == (base, chain.versioned):
            return found
    return set()


def _otherwise_lost(old: Sequence[LayerInfo], stay: Sequence[LayerInfo], known: Sequence[LayerInfo], kept: Kept) -> list[LayerInfo]:
    """What several epochs that came there as one layer are read with, where no chain goes so far."""
    found: list[LayerInfo] = []
    paths, updates = {layer.path for layer in stay}, known_updates(known)
    for at in sorted({Epoch(layer.upper - 1) for layer in old if not layer.versions}):
        before = cover(old, at, kept) if at in kept else ()
        if all(layer.path in paths for layer in before) or not has_updates(before, updates, at):
            continue
        if not has_updates(cover([layer for layer in old if layer.path in paths], at, kept), updates, at):
            found += before
            paths |= {layer.path for layer in before}
    return found
