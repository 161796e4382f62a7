"""Names of any characters stay inside the home and the remote, and no two of them meet."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from nosync.journal.names import LAYER, folder_name, layer_path, source_folder
from nosync.model.errors import Invalid
from nosync.model.hash_range import ALL_HASHES
from nosync.model.quoting import check_name
from nosync.model.store import is_name
from nosync.store.disk import LocalDisk
from nosync.store.objects import open_remote

AWFUL = (
    "..", ".", "...", ".hidden", "../..", "/", "//", "a/../b", "\\", "..\\x", "\0", "a\0b", "\n", "a\nb", "\r\n", " ", "a ", "a.", "%",
    "%2e%2e", "%2E%2E", "..%2f", "~", "~x", "a~b", "CON", "con", "nul.txt", "Spend", "spend", "SPEND", "é", "e\u0301", "\u202e",
    "💥" * 40, "x" * 300, "x" * 301, "X" * 300, "😀", "\x1b[2J", "'; drop table x; --", "`", "``", '"', "$(rm -rf x)",
    "*", "?", "|", ":", "a:b", "C:", "-", "--help", "layers", "input", "journal",
)  # fmt: skip
NAMES = some.text(min_size=1, max_size=400)


def apart(one: str, other: str) -> None:
    """Two names have folders that differ, also where case makes no difference."""
    assert (folder_name(one).lower() == folder_name(other).lower()) == (one == other)


def is_harmless(folder: str) -> bool:
    """One part of a path, in characters that every file system and object store has, neither hidden nor too long."""
    return is_name(folder) and "/" not in folder and "\\" not in folder and folder.isascii() and folder.isprintable() and (
        len(folder) <= 200 and not folder.startswith(".") and not folder.endswith((".", " ")) and not set(folder) & set('<>:"|?*')
    )  # fmt: skip


def test_awful_names_have_harmless_folders_of_their_own() -> None:
    assert [name for name in AWFUL if not is_harmless(folder_name(name))] == []
    assert len({folder_name(name).lower() for name in AWFUL}) == len(AWFUL)
    assert folder_name("spend/aggregate") == "spend%2faggregate"


@settings(max_examples=200, deadline=None)
@given(NAMES, NAMES)
def test_no_two_names_share_a_folder(one: str, other: str) -> None:
    assert is_harmless(folder_name(one))
    for twin in (other, one.lower(), one.upper(), folder_name(one), one + " ", one[:-1] + "." if one else ""):
        apart(one, twin or "x")


@pytest.mark.parametrize("name", [*AWFUL, "x/aggregate"])
def test_files_under_any_name_can_be_written_read_and_listed_on_the_disk_and_a_remote(name: str, tmp_path: Path) -> None:
    path = layer_path(name, ALL_HASHES, 1, 2, "1.ab")  # type: ignore[arg-type]
    assert LAYER.fullmatch(path)
    for store in (LocalDisk(tmp_path / "home"), open_remote((tmp_path / "remote").as_uri()), open_remote(f"memory://{tmp_path}")):
        for file in (path, f"{source_folder(name)}/0.arrow"):
            store.replace(file, b"rows")
            assert store.read(file) == b"rows"
            assert list(store.sizes(file.partition("/")[0])) == [file]
            store.delete(file)
    assert {file.parent for file in tmp_path.iterdir()} == {tmp_path}
    assert {file.name for file in tmp_path.iterdir()} == {"home", "remote"}


@pytest.mark.parametrize("name", ["", "a/b", None, 7, "\ud800"])
def test_what_cannot_be_a_name_is_refused(name: object) -> None:
    with pytest.raises(Invalid, match="is no name for a view"):
        check_name(name, "a view")
