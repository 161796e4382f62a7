"""Numbers of bytes as people say them."""

UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


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
