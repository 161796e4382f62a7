"""What became of a program since the state in a home was made. Pure: two declarations in, a difference out.

State belongs to who would make it again: an operator is known by its fingerprint, and takes over the name under which the home has its
state, wherever the program now says it. Names of what is gone are never used again, so that no reader of an old epoch can take one for
another.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from nosync.journal.entries import Declared
from nosync.model.errors import Invalid

OnChange = Literal["refuse", "rebuild", "discard"]
CHOICES = ("refuse", "rebuild", "discard")
OtherSettings = Literal["refuse", "accept"]
AGAIN = re.compile(r"@\d+$")


@dataclass(frozen=True, slots=True)
class Difference:
    """What keeps state, by what became of it. `changed` and `new` ones have no state yet, that of `gone` ones has no use any
    more. `tables` are static tables with other rows than before.
    """

    kept: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()

    @property
    def fresh(self) -> tuple[str, ...]:
        """Those without state."""
        return self.changed + self.new

    def __bool__(self) -> bool:
        return bool(self.changed or self.new or self.gone)

    def __str__(self) -> str:
        kinds = (("changed", self.changed), ("new", self.new), ("gone", self.gone))
        words = [f'"{base(name)}" is {kind}' for kind, names in kinds for name in names]
        return ", ".join(words + [f'static table "{name}" has other rows' for name in self.tables])


def base(name: str) -> str:
    """The name that the program gives an operator, without what distinguishes it from an earlier one."""
    return AGAIN.sub("", name)


def names_for(wanted: Sequence[tuple[str, str]], old: Mapping[str, str], retired: Iterable[str] = ()) -> list[str]:
    """A name for each (name, fingerprint) that a program asks for: that of the same state in the home, else one that was never used."""
    chosen: list[str | None] = [None] * len(wanted)
    free = dict(old)
    for fits in (_same_name, _same_base, lambda one, other: True):
        for index, (name, fingerprint) in enumerate(wanted):
            if chosen[index] is None:
                found = next((other for other, mark in free.items() if mark == fingerprint and fits(name, other)), None)
                if found is not None:
                    chosen[index] = found
                    del free[found]
    used = {*old, *retired, *(name for name in chosen if name)}
    final = []
    for index, (name, _) in enumerate(wanted):
        found = chosen[index] or _unused(base(name), used)
        used.add(found)
        final.append(found)
    return final


def _same_name(one: str, other: str) -> bool:
    return one == other


def _same_base(one: str, other: str) -> bool:
    return base(one) == base(other)


def _unused(name: str, used: set[str]) -> str:
    number, found = 1, name
    while found in used:
        number += 1
        found = f"{name}@{number}"
    return found


def difference(old: Declared, new: Declared) -> Difference:
    """What is to be done to go on with the new program. Its operators have their names from `names_for`."""
    fresh = [name for name in new.fingerprints if name not in old.fingerprints]
    left = [name for name in old.fingerprints if name not in new.fingerprints]
    before, after = {base(name) for name in left}, {base(name) for name in fresh}
    return Difference(
        kept=tuple(name for name in new.fingerprints if name in old.fingerprints),
        changed=tuple(name for name in fresh if base(name) in before),
        new=tuple(name for name in fresh if base(name) not in before),
        gone=tuple(name for name in left if base(name) not in after),
        tables=tuple(name for name, version in new.tables.items() if old.tables.get(name, version) != version),
    )


def check_same_flow(old: Declared, new: Declared, formerly: str | None) -> None:
    """Refuses a home of another flow, unless that is what this one was called."""
    if old.flow not in (new.flow, formerly):
        raise Invalid(
            f'this home belongs to flow "{old.flow}", not to "{new.flow}"',
            hint="Give each flow a home of its own. If this is the same flow, which has another name now, say so: "
            f'ns.Flow("{new.flow}", formerly="{old.flow}").',
        )


def check_settings(old: Mapping[str, str], new: Mapping[str, str], accepted: OtherSettings) -> None:
    """Refuses to go on where the same query may answer otherwise, unless the caller knows."""
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    if accepted == "accept" or not names:
        return
    differences = ", ".join(f"{name} is {new.get(name, 'not set')}, it was {old.get(name, 'not set')}" for name in names)
    raise Invalid(
        f"answers may come out differently than those this home has: {differences}",
        hint='Set what has changed as it was before the flow is declared, or pass on_other_settings="accept": the state stays as it is, '
        "and whatever is computed from here on, or again, is computed so.",
    )
