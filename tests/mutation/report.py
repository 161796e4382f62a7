"""What a run has found, for people: the survivors, and a table of the rooms."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .mutants import Mutant
from .running import Finding


@dataclass(slots=True)
class Count:
    generated: int = 0
    killed: int = 0
    hung: int = 0
    equivalent: int = 0
    survived: int = 0

    def __add__(self, other: "Count") -> "Count":
        return Count(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


def count(mutants: Iterable[Mutant], findings: Mapping[str, Finding], judged: Mapping[str, str]) -> Count:
    """What was found out about these mutants, as their functions are now."""
    found = Count()
    for mutant in mutants:
        finding = findings.get(mutant.name)
        found.generated += 1
        if finding is None or finding.within != mutant.within:
            continue
        if finding.by:
            found.killed += 1
            found.hung += finding.hung
        elif mutant.name in judged:
            found.equivalent += 1
        else:
            found.survived += 1
    return found


def table(rooms: Mapping[str, Count]) -> str:
    lines = ["| | generated | shown | killed | of these by hanging | equivalent | survived |", "|---|---|---|---|---|---|---|"]
    for room, found in [*rooms.items(), ("together", sum(rooms.values(), Count()))]:
        shown = found.killed + found.equivalent + found.survived
        lines.append(f"| {room} | {found.generated} | {shown} | {found.killed} | {found.hung} | {found.equivalent} | {found.survived} |")
    return "\n".join(lines)


def described(mutant: Mutant) -> str:
    text = " ".join(mutant.text.split())
    return f'{mutant.file}:{mutant.lines[0]} "{mutant.key}"\n    {text if len(text) < 160 else text[:157] + "..."}'
