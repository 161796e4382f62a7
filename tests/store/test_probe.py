"""A remote on which two can create one name is refused before anything of a flow is written there."""

import time
from uuid import uuid4

import pytest

from nosync.model.errors import Conflict, Invalid, Unavailable
from nosync.store.objects import Objects, open_remote
from nosync.store.probe import check_creation


class Hostile:
    """A store that breaks its promise in one way."""

    address = "s3://hostile"

    def __init__(self, way: str) -> None:
        self.way = way
        self.files: dict[str, bytes] = {}

    def create(self, name: str, content: bytes) -> None:
        there = name in self.files
        if self.way == "looks, then writes":
            time.sleep(0.01)
        if there and self.way != "ignores the condition":
            raise Conflict("exists")
        if self.way == "away":
            raise Unavailable("nobody answers")
        if self.way != "refuses everybody but forgets":
            self.files[name] = content

    def read(self, name: str) -> bytes | None:
        return self.files.get(name)

    def delete(self, name: str) -> None:
        self.files.pop(name, None)


def test_every_store_of_ours_passes_and_nothing_is_left_behind(remote: Objects) -> None:
    check_creation(remote)
    assert remote.sizes("") == {}


@pytest.mark.parametrize("way", ["ignores the condition", "looks, then writes", "refuses everybody but forgets"])
def test_a_store_that_creates_a_name_twice_is_refused(way: str) -> None:
    hostile = Hostile(way)
    with pytest.raises(Invalid, match="cannot keep runs on two hosts apart"):
        check_creation(hostile)  # type: ignore[arg-type]
    assert hostile.files == {}


def test_a_store_that_is_away_is_not_judged() -> None:
    with pytest.raises(Unavailable):
        check_creation(Hostile("away"))  # type: ignore[arg-type]


def test_names_of_others_are_left_alone() -> None:
    remote = open_remote(f"memory://{uuid4().hex}")
    remote.create("probe/mine", b"x")
    check_creation(remote)
    assert remote.sizes("") == {"probe/mine": 1}
