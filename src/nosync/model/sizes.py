"""Numbers of bytes as people say them."""

import re

from nosync.model.errors import Invalid

UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
FACTORS = {unit.lower(): 1024**power for power, unit in enumerate(UNITS)} | {"kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}


def bytes_of(said: object, what: str = "a size") -> int:
    """How many; `what` names what was asked for in the error."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", str(said).lower())
    factor = FACTORS.get(match[2] or "b") if match else None
    if match is None or factor is None:
        raise Invalid(f'"{said}" is not {what}', hint='Write a number and a unit, for example "64 MiB" or "1 GiB".')
    return int(float(match[1]) * factor)


def size(count: int) -> str:
    """A number of bytes as people say it."""
    amount, unit = _scaled(count)
    return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"


def size_of(done: int, total: int) -> str:
    """A part of some bytes, in the unit of the whole."""
    amount, unit = _scaled(total)
    return f"{done} of {total} B" if unit == "B" else f"{done / (total / amount):.1f} of {amount:.1f} {unit}"


def _scaled(count: int) -> tuple[float, str]:
    amount, unit = float(count), UNITS[0]
    for unit in UNITS:
        if amount < 1024 or unit == UNITS[-1]:
            break
        amount /= 1024
    return amount, unit
