"""What every store does, whatever it is made of."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from nosync.model.errors import Conflict
from nosync.model.store import Store

RECORD = "journal/records/0000000000000001"
LAYER = "layers/spend%2Faggregate/0-f/1-2-1.0a-0b.arrow"


@pytest.mark.parametrize("name", [RECORD, LAYER, "input/käufe und mehr/1.arrow", "top"])
@pytest.mark.parametrize("content", [b"", b"content", os.urandom(100_000)], ids=["empty", "small", "binary"])
def test_what_was_created_is_read(store: Store, name: str, content: bytes) -> None:
    store.create(name, content)
    assert store.read(name) == content
    assert store.exists(name)
    assert list(store.sizes("")) == [name]


@pytest.mark.parametrize("name", [RECORD, LAYER])
def test_a_name_that_is_taken_is_a_conflict_and_stays(store: Store, name: str) -> None:
    store.create(name, b"first")
    with pytest.raises(Conflict, match="exists"):
        store.create(name, b"second")
    assert store.read(name) == b"first"


def test_of_rivals_one_creates_the_name(store: Store) -> None:
    def attempt(number: int) -> bytes | None:
        content = b"%d" % number * 1000
        try:
            store.create(RECORD, content)
        except Conflict:
            return None
        return content

    with ThreadPoolExecutor(8) as rivals:
        winners = [content for content in rivals.map(attempt, range(32)) if content is not None]
    assert winners == [store.read(RECORD)]


@pytest.mark.parametrize("name", [RECORD, LAYER])
def test_replacing_takes_the_place_of_whatever_was_there(store: Store, name: str) -> None:
    store.replace(name, b"first")
    store.replace(name, b"second, longer")
    assert store.read(name) == b"second, longer"
    store.replace(name, b"third")
    assert store.read(name) == b"third"


def test_readers_never_see_half_of_a_replacement(store: Store) -> None:
    contents = [bytes([number]) * 300_000 for number in range(6)]
    store.replace("record", contents[0])

    def replace_again_and_again() -> None:
        for content in contents:
            store.replace("record", content)

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(replace_again_and_again)
        while not writing.done():
            assert store.read("record") in contents
        writing.result()


def test_a_name_that_was_never_written_is_not_there(store: Store) -> None:
    store.create("journal/records/2", b"x")
    for name in (RECORD, LAYER, "elsewhere/1"):
        assert not store.exists(name)
        assert store.read(name) is None
    assert not store.exists("journal/records")


@pytest.mark.parametrize("name", [RECORD, LAYER])
def test_deleting_is_for_good_and_can_be_repeated(store: Store, name: str) -> None:
    store.delete(name)
    store.create(name, b"x")
    store.delete(name)
    store.delete(name)
    assert store.read(name) is None
    assert not store.exists(name)
    store.create(name, b"y")
    assert store.read(name) == b"y"


def test_sizes_are_of_names_below_the_folder_and_of_no_others(store: Store) -> None:
    for name in ("a/1", "a/b/2", "a/b/c/3", "ab/4", "5"):
        store.create(name, b"x" * int(name[-1]))
    assert store.sizes("a") == {"a/1": 1, "a/b/2": 2, "a/b/c/3": 3}
    assert store.sizes("a/b") == store.sizes("a/b/") == {"a/b/2": 2, "a/b/c/3": 3}
    assert store.sizes("") == {"a/1": 1, "a/b/2": 2, "a/b/c/3": 3, "ab/4": 4, "5": 5}
    assert store.sizes("nowhere") == {}


def test_more_names_than_fit_into_one_answer_are_all_listed(store: Store) -> None:
    names = {f"records/{number:08d}" for number in range(1100)}
    for name in names:
        store.create(name, b"x")
    assert set(store.sizes("records")) == names


def test_names_behind_a_name_are_listed_folder_by_folder(store: Store) -> None:
    for name in ("a/1", "a/2.arrow", "a/3", "b/1", "b/2", "c/1"):
        store.create(name, b"x")
    assert set(store.sizes_of({"a": "2", "b": ""})) == {"a/2.arrow", "a/3", "b/1", "b/2"}
    assert store.sizes_of({"b": "2", "nowhere": ""}) == {}
    assert store.sizes_of({}) == {}
