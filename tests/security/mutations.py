"""Bytes and JSON as a hostile hand would change them. All by one random generator: a seed gives the same again."""

import json
from random import Random
from typing import Any

import xxhash

ODD_NUMBERS = (-1, 0, 1, 2**31, 2**62, 2**63, 2**64, 10**30, -(2**63), 1.5, float("nan"), float("inf"), True)
ODD_TEXTS = (
    "", ".", "..", "../../etc/passwd", "/etc/passwd", "a\0b", "\n", "\x1b]0;owned\x07", "é" * 300, "layers/../../x",
    "layers/\ud800", "\ud800", "0",
)  # fmt: skip
ODD_VALUES = (None, [], {}, [[]], [None], {"": None}, *ODD_NUMBERS, *ODD_TEXTS)


def mutated(content: bytes, random: Random) -> bytes:
    """The bytes with one to three changes: flipped bits, other bytes, a piece cut out, doubled, swapped with another, or the end gone."""
    changed = bytearray(content)
    for _ in range(random.randint(1, 3)):
        _change(changed, random)
    return bytes(changed)


def _change(changed: bytearray, random: Random) -> None:
    if not changed:
        changed += random.randbytes(random.randint(1, 40))
        return
    at = random.randrange(len(changed))
    end = min(len(changed), at + random.choice((1, 2, 4, 8, 16, 64)))
    match random.randrange(7):
        case 0:
            changed[at] ^= 1 << random.randrange(8)
        case 1:
            changed[at:end] = random.randbytes(end - at)
        case 2:
            changed[at:end] = random.choice((b"\x00", b"\xff", b"\x7f")) * (end - at)
        case 3:
            del changed[at:end]
        case 4:
            changed[at:at] = changed[at:end]
        case 5:
            other = random.randrange(len(changed))
            changed[at:end] = changed[other : other + end - at]
        case 6:
            del changed[at:]


def flipped(content: bytes, random: Random) -> bytes:
    """As `mutated`, with the length as it was."""
    changed = mutated(content, random)[: len(content)]
    return changed + content[len(changed) :]


def reworded(value: Any, random: Random) -> Any:
    """A JSON value with one piece of it, anywhere inside, replaced by an odd one, left out or doubled."""
    places = list(_places(value))
    holder, key = random.choice(places) if places else (None, None)
    if holder is None or random.random() < 0.02:
        return random.choice(ODD_VALUES)
    choice = random.randrange(6)
    if choice == 0:
        del holder[key]
    elif choice == 1 and isinstance(holder, dict):
        holder[random.choice(ODD_TEXTS)] = holder.pop(key)
    elif choice == 2:
        holder[key] = {"a": holder[key]} if random.random() < 0.5 else [holder[key]]
    else:
        holder[key] = random.choice(ODD_VALUES)
    return value


def _places(value: Any) -> Any:
    """Every place inside, as what holds it and the key or number."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


def as_json(value: Any, random: Random) -> bytes:
    """One line of JSON; now and then one that nests too deep or has a number too long to read."""
    if random.random() < 0.02:
        return random.choice((b"[" * 100_000, b"9" * 10_000, b'"\xff"', b"NaN", b'{"a":1,"a":2}', b""))
    return json.dumps(value, separators=(",", ":")).encode()


def signed(lines: list[bytes], number: int = 1, previous: str = "-") -> bytes:
    """A record of these lines, with a checksum that is right."""
    body = b"".join(line + b"\n" for line in lines)
    head = f"nosync 1 {number} 1.ab {previous} {len(lines)} ".encode()
    return head + xxhash.xxh3_64_hexdigest(head + body).encode() + b"\n" + body
