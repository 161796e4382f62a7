"""docs/architecture.md: its tables say what is so."""

import re
import tomllib
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text()
PATH = re.compile(r"`([\w/]+\.py)`")
AT_MOST = {"a source": 1, "a sink": 1, "an operator": 4, "an aggregate": 2, "a policy": 2, "a retention rule": 1}


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_table_of_rooms_has_every_room_and_what_it_imports() -> None:
    graph = grimp.build_graph("nosync", cache_dir=None)
    rooms = {name for name in graph.find_children("nosync") if graph.find_children(name)}
    written = {room.strip("`"): set(filter(None, imports.split(", "))) for room, _, imports in rows("Rooms")}
    assert written.keys() == {room.split(".")[1] for room in rooms}
    for room in sorted(rooms):
        targets = {target for module in (room, *graph.find_descendants(room)) for target in graph.find_modules_directly_imported_by(module)}
        imported = {target.split(".")[1] for target in targets if target.startswith("nosync.") and not target.startswith(f"{room}.")}
        assert imported <= written[room.split(".")[1]] | {room.split(".")[1]}, room


def test_every_room_but_the_bridge_is_held_to_leaving_the_jvm_alone() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    held = {contract["name"]: set(contract.get("source_modules", ())) for contract in contracts}["Only the bridge speaks to the JVM"]
    assert held == {f"nosync.{room.strip('`')}" for room, _, _ in rows("Rooms")} - {"nosync.bridge"}


@pytest.mark.parametrize("row", rows("Where to put what is new"), ids=lambda row: row[0])
def test_what_is_new_goes_into_few_files_that_there_are(row: list[str]) -> None:
    what, touch, like = row
    files = PATH.findall(touch)
    assert files and len(files) <= AT_MOST.get(what, 2), what
    for path in [*files, *PATH.findall(like)]:
        there = ROOT / "src" / "nosync" / path
        assert (there.parent if there.stem == "NAME" else there).exists(), path


def test_all_that_must_be_easy_to_add_is_in_the_table() -> None:
    assert {row[0] for row in rows("Where to put what is new")} >= AT_MOST.keys()


@pytest.mark.parametrize("path", sorted({path for path in PATH.findall(PAGE) if "NAME" not in path}))
def test_files_that_the_page_names_are_there(path: str) -> None:
    assert (ROOT / "src" / "nosync" / path).exists() or (ROOT / path).exists()
