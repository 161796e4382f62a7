"""What is mutated: the durability core, room by room. And which tests may notice."""

from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "src" / "nosync"

ROOMS = {
    "journal": ["journal/*.py"],
    "store": ["store/*.py"],
    "tiers": ["tiers/*.py"],
    "recovery": ["recovery/*.py"],
    "duties": ["duties/*.py"],
    "state": [f"state/{name}.py" for name in ("cover", "folding", "layer", "leaves", "private", "spine")],
    "model": [f"model/{name}.py" for name in ("bound", "errors", "layers", "policies/log_structured", "retention", "safety", "store")],
    "peers": ["peers/arrivals.py", "peers/tidying.py"],
    "runtime": ["runtime/mending.py"],
}

# Without Spark. What takes long is left out by the tracer.
TESTED = ("journal", "store", "tiers", "recovery", "duties", "model", "history", "runtime", "security")
OF_STATE, OF_PEERS = ("blank", "cover", "folding", "layer", "spine", "two_tiers"), ("arrivals", "tidying")
TESTS = [f"tests/{room}" for room in TESTED]
TESTS += [f"tests/state/test_{name}.py" for name in OF_STATE] + [f"tests/peers/test_{name}.py" for name in OF_PEERS]


def files_of(room: str) -> list[str]:
    return sorted(str(path.relative_to(PACKAGE)) for pattern in ROOMS[room] for path in PACKAGE.glob(pattern))


def chosen(only: str) -> dict[str, list[str]]:
    """The rooms with their files; of those, the ones whose name begins as asked: `journal`, or `journal/chain.py,store`."""
    found = {room: [file for file in files_of(room) if file.startswith(tuple(only.split(",")))] for room in ROOMS}
    return {room: files for room, files in found.items() if files}
