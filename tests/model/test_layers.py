"""What names and facts may be, wherever they come from."""

from typing import Any

import pytest

from nosync.model.errors import Corrupt, Failed, Fenced, Internal, Unavailable, reading, unexpected, user_code
from nosync.model.hash_range import ALL_HASHES
from nosync.model.layers import MOST, LayerInfo
from nosync.model.store import checked, fingerprint, is_name, is_own_name

LAYER = LayerInfo("v", ALL_HASHES, 3, 5, "diffs", "layers/v/0-f/3-5.arrow", 7, 99, "abc")


def test_the_facts_of_a_layer_come_back() -> None:
    assert LayerInfo.from_json(LAYER.to_json()) == LAYER
    assert LayerInfo.from_json(LAYER.to_json() | {"lower": 0, "rows": 0, "bytes": MOST - 1, "kind": "upserts"}).bytes == MOST - 1


@pytest.mark.parametrize(
    "change",
    [
        {"lower": 5}, {"lower": 6}, {"lower": -1}, {"upper": MOST}, {"rows": -1}, {"rows": True}, {"bytes": "9"}, {"bytes": 1.0},
        {"kind": "other"}, {"path": "../x"}, {"path": "/x"}, {"path": "\u00fc"}, {"path": 7}, {"trace": 7}, {"checksum": None},
        {"range": 7}, {"range": "x"},
    ],
)  # fmt: skip
def test_facts_that_no_layer_has_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError, AttributeError)):
        LayerInfo.from_json(LAYER.to_json() | change)


@pytest.mark.parametrize("name", ["a", "a/b.c", "input/s/\u00fc", "...", ".hidden/x"])
def test_a_name_leads_to_a_file_of_the_store(name: str) -> None:
    assert is_name(name) and checked(name) == name and is_own_name(name) == name.isascii()


@pytest.mark.parametrize("name", ["", "/a", "a/", "a//b", ".", "a/./b", "..", "a/../b", "a\0b"])
def test_what_leads_elsewhere_is_no_name(name: str) -> None:
    assert not is_name(name) and not is_own_name(name)
    with pytest.raises(Corrupt, match="is no name of a file"):
        checked(name)


def test_what_is_no_text_is_no_name() -> None:
    assert not is_name(7) and not is_name(None) and not is_own_name(b"a")


def test_a_fingerprint_tells_contents_apart() -> None:
    assert fingerprint(b"a") == fingerprint(b"a") != fingerprint(b"b")


@pytest.mark.parametrize("error", [ValueError("odd\nmore"), KeyError("x"), TypeError("y"), ZeroDivisionError("z")])
def test_what_is_tripped_over_while_reading_is_corrupt_and_says_of_what(error: Exception) -> None:
    with pytest.raises(Corrupt) as raised, reading("the roll-up", "Use another copy."):
        raise error
    assert raised.value.message.startswith(f"the roll-up is not readable: {type(error).__name__}: ") and "\n" not in raised.value.message


def test_errors_that_say_what_they_mean_pass_while_reading() -> None:
    for error in (Unavailable("not now"), KeyboardInterrupt(), OSError("cut")):
        with pytest.raises(type(error)) as raised, reading("the roll-up", "Use another copy."):
            raise error
        assert raised.value is error


def test_what_somebodys_code_raises_is_theirs_unless_it_means_the_same_from_anybody() -> None:
    with pytest.raises(Failed, match=r"sink\.deliver: ValueError: odd") as raised, user_code("sink.deliver", "Correct it."):
        raise ValueError("odd\nmore")
    assert raised.value.hint == "Correct it."
    with pytest.raises(Unavailable), user_code("sink.deliver", "Correct it."):
        raise Unavailable("not now")
    with pytest.raises(Failed, match=r"sink\.deliver: fenced") as raised, user_code("sink.deliver", "Correct it.", (Unavailable,)):
        raise Fenced("fenced", hint="Stop.")
    assert raised.value.hint == "Stop."
    with pytest.raises(Failed) as raised, user_code("sink.deliver", "Correct it.", (Unavailable,)):
        raise Fenced("fenced")
    assert raised.value.hint == "Correct it."
    with pytest.raises(KeyboardInterrupt), user_code("sink.deliver", "Correct it."):
        raise KeyboardInterrupt


def test_what_nobody_foresaw_is_a_bug_or_the_programs_own_wish() -> None:
    bug, wish = ValueError("odd"), SystemExit(3)
    assert isinstance(found := unexpected("tidy", bug), Internal) and found.__cause__ is bug and "tidy: ValueError: odd" in found.message
    assert isinstance(found := unexpected("tidy", wish), Failed) and found.__cause__ is wish and "SystemExit: 3" in found.message
