"""How a history ends: no more trouble, the flow comes home, and everything adds up. What may be done has been done by then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nosync.journal.entries import Opened
from nosync.journal.names import RECORDS, numbers_in
from nosync.model.errors import Corrupt, Fenced

from .forgetting import check_past
from .keeping import SECONDS, check_few, check_kept
from .program import HALVES, SELDOM, events_of, expected
from .world import Broken

if TYPE_CHECKING:
    from .history import History
    from .life import Life

ROUNDS = 300
STEPS = 12  # of a thread in a round, at most: one that has something to do goes on


def come_to_rest(history: History) -> None:
    for life in [life for life in history.lives if life is not history.life]:
        history.drop(life)
    if history.life is not None and history.world.random.random() < 0.5:
        history.drop(history.life)
    for host in history.hosts:
        host.heal()
    history.world.seconds += 2 * SECONDS  # nobody reads any more
    _work_alone(history)
    down = history.world.random.choice((None, None, *history.sinks))
    for name, sink in history.sinks.items():
        sink.down = name == down
    life = _at_rest(history)
    if down is not None:
        history.world.events["sink down at the end"] += 1
        _check_others(life, history, down)
        history.sinks[down].down = False
        life = _at_rest(history)
    _check_all(history, life)


def _check_all(history: History, life: Life) -> None:
    """Damage that nobody has met before is met by the checks: the next start repairs it."""
    for _ in range(ROUNDS):
        try:
            return history.check_end(life)
        except Corrupt as error:
            if not history.rotten:
                raise
            history.met_damage(life, error)
            life = _at_rest(history)
    raise Broken("damage is never repaired")


def _work_alone(history: History) -> None:
    """A run that cannot reach its remote any more does all that it can do without."""
    life = history.life
    if history.remote is None or life is None or not life.ready or not life.current or history.world.random.random() < 0.5:
        return
    life.host.cut = True
    for _ in range(ROUNDS):
        if not _works(history, life):
            break
    if life in history.lives and life.journal is not None:
        history.world.events["alone at the end"] += 1
        _check_alone(history, life)
    life.host.cut = False


def _check_alone(history: History, life: Life) -> None:
    assert life.journal is not None
    image = life.journal.image
    taken = max((entry.slices["lasting"]["last"] for entry in history.promises.openings(life) if "lasting" in entry.slices), default=0)
    given = len(history.lasting.events)
    if image.last_opened != image.epoch or taken != given:
        raise Broken(f"cut off, the flow stands at epoch {image.epoch} of {image.last_opened}, {taken} of {given} events")
    if life.upkeep.safe()["host"] != image.epoch:
        raise Broken(f"cut off, the disk has {life.upkeep.safe()['host']} of {image.epoch} epochs")


def _at_rest(history: History) -> Life:
    """A process that has nothing left to do, whatever came in between."""
    for _ in range(ROUNDS):
        if history.life is None:
            history.start()
        life = history.life
        assert life is not None
        if _works(history, life):
            continue
        if life in history.lives and life.ready and not _looks(history, life):
            return life
    raise Broken("the flow does not come to rest")


def _works(history: History, life: Life) -> bool:
    """Every thread goes on for as long as it has something to do, within reason; says whether anything was to do."""
    worked, delivered = not life.ready, sum(sink.last for sink in life.sinks().values())
    history.world.seconds += 1.0
    for name in [name for name in list(life.threads) if name != "sweep" or name in life.tasks]:
        for _ in range(STEPS):
            did = False
            if life in history.lives and life._can_go_on(name):
                did = bool(history.guarded(life, lambda name=name: life.go_on(name)))
                worked = worked or did
            if name not in life.tasks and (not did or name == "stream"):  # which says so while it waits for a merge
                break
    coming = life.ready and life.arrivals is not None and life.arrivals.standing().behind > 0  # what is lost is known only after a while
    return worked or coming or bool(life.tasks) or sum(sink.last for sink in life.sinks().values()) > delivered


def _looks(history: History, life: Life) -> bool:
    """One that has nothing to append would never learn that another has taken over, nor record what sinks have got. Says whether there is
    news.
    """
    assert life.journal is not None
    try:
        history.world.land(history.world.operations + 10_000)
        noted = bool(life.journal.pending)
        life.journal.look()
        life.journal.flush()
    except Fenced:
        history.drop(life)
        return True
    return noted


def _check_others(life: Life, history: History, down: str) -> None:
    """Nobody starves because one sink stands still."""
    assert life.journal is not None
    for name, epoch in life.upkeep.releaser.delivered.items():
        if name != down and epoch != life.journal.image.epoch:
            raise Broken(f"{name} starves at epoch {epoch} of {life.journal.image.epoch} while {down} is down")


def check_end(history: History, life: Life) -> None:
    assert life.journal is not None
    image, known = life.journal.image, history.promises.openings(life)
    _check_input(history, life, known)
    if [entry.epoch for entry in known] != list(range(1, image.epoch + 1)):
        raise Broken(f"epochs {[entry.epoch for entry in known]} in the history, {image.epoch} computed")
    for name, epoch in life.upkeep.releaser.delivered.items():
        if epoch != image.epoch:
            raise Broken(f"{name} has {epoch} of {image.epoch} epochs")
    if set(life.upkeep.safe().values()) != {image.epoch}:
        raise Broken(f"safe points stand still: {life.upkeep.safe()} of {image.epoch}")
    _check_trimmed(history, life, known)
    _check_rolled(history, life)
    check_past(history, life, known)
    check_now(history, life, known)
    check_kept(history, life, known)
    check_few(life)
    check_answers(history, known)


def _check_input(history: History, life: Life, known: list[Opened]) -> None:
    """Every row belongs to exactly one epoch."""
    assert life.journal is not None
    position = 0
    for entry in known:
        if "lasting" in entry.slices:
            slice = entry.slices["lasting"]
            if slice["first"] != position:
                raise Broken(f"epoch {entry.epoch} takes events from {slice['first']} on, not from {position}")
            position = slice["last"]
    if position != len(history.lasting.events):
        raise Broken(f"{len(history.lasting.events) - position} events were never taken")
    mine = [row for entry in known for name in entry.files if f"/{life.journal.run}-" in name for row in history.written[name]]
    if mine != life.fleeting.offered:
        raise Broken(f"rows {mine} were taken of {life.fleeting.offered} that were given")


def _check_trimmed(history: History, life: Life, known: list[Opened]) -> None:
    """What nobody can ask for again is gone, but for the last epochs."""
    if not history.trims:
        return
    assert life.journal is not None
    due = [entry for entry in known if entry.epoch <= life.journal.image.epoch - 2]
    taken = max((entry.slices["lasting"]["last"] for entry in due if "lasting" in entry.slices), default=0)
    if history.lasting.trimmed < taken:
        raise Broken(f"the source was trimmed up to {history.lasting.trimmed}; {taken} would do")
    there = [*life.disk.files, *(history.remote.files if history.remote else ())]
    left = [name for entry in due for name in entry.files if name in there]
    if left:
        raise Broken(f"input {left} was never deleted")


def _check_rolled(history: History, life: Life) -> None:
    """Records do not pile up. What a roll-up left that was interrupted goes with the next one."""
    assert life.journal is not None
    first = 0 if life.journal.base > life.journal.chain.base else life.journal.base
    for files in (life.disk.files, history.remote.files if history.remote else {}):
        records = sum(name.startswith(RECORDS) and numbers_in(name)[0] > first for name in files)
        if records > 2 * history.roll + 40:
            raise Broken(f"{records} records lie about, the last is {life.journal.number}, rolled up to {life.journal.base}")


def check_answers(history: History, known: list[Opened]) -> None:
    """What sinks have got is what the input makes of it."""
    before: dict[int, int] = {}
    delivered = history.sinks["sink"].each()
    for epoch, state in enumerate(expected([events_of(history, entry) for entry in known]), start=1):
        after = state["parities"]
        change = {str(key): after.get(key, 0) for key in before.keys() | after.keys() if before.get(key, 0) != after.get(key, 0)}
        got = {key: values[1] for key, values in delivered.get(epoch, {}).items()}
        if got != change:
            raise Broken(f"the sink got {got} for epoch {epoch}, not {change}")
        before = after
    if not history.dice:
        _check_seldom(history, known)


def _check_seldom(history: History, known: list[Opened]) -> None:
    """The second sink got each change of its key, in order."""
    totals = [state["totals"].get(SELDOM, 0) for state in expected([events_of(history, entry) for entry in known])]
    changes = [total for before, total in zip([0, *totals], totals) if total != before]
    got = [total for _, content in sorted(history.sinks["other"].each().items()) for total in content.values() if total]
    if got != changes:
        raise Broken(f"the other sink got {got}, not {changes}")


def check_now(history: History, life: Life, known: list[Opened]) -> None:
    """The newest state is what the input makes of it."""
    assert life.journal is not None
    image = life.journal.image
    states = expected([events_of(history, entry) for entry in known if entry.epoch <= image.epoch])
    for trace, wanted in (states[-1] if states else {}).items():
        found = life.engine.holds(trace, image.covers(trace, image.epoch))
        if found != wanted:
            raise Broken(f"{trace} is {found}, not {wanted}")
    if history.dice:
        luck = life.engine.state("luck", lambda name: image.covers(name, image.epoch)).get(0, 0)
        rolled = sum(sum(life.engine.read(layer).values()) for layer in image.covers("rolls", image.epoch).get(HALVES[0], ()))
        if luck != rolled:
            raise Broken(f"{rolled} was rolled, not {luck}")
