"""A home is a folder of its own."""

from pathlib import Path

import pytest

from nosync.journal.names import run_name
from nosync.model.errors import Invalid
from nosync.store.disk import LocalDisk
from nosync.store.homes import refuse_foreign_folder, refuse_remote_at_home


@pytest.mark.parametrize("name", ["notes.txt", ".env", "data/a.parquet"])
def test_a_folder_of_something_else_is_no_home(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    with pytest.raises(Invalid, match=f"""is not the home of a flow, and not empty: it holds "{name.partition("/")[0]}"""):
        refuse_foreign_folder(tmp_path)


def test_a_home_may_be_new_empty_begun_or_in_use(tmp_path: Path) -> None:
    refuse_foreign_folder(tmp_path / "new")
    refuse_foreign_folder(tmp_path)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/.0123456789abcdef0123456789abcdef").write_bytes(b"")
    (tmp_path / ".0123456789abcdef0123456789abcdef").write_bytes(b"")
    for name in ("lost+found", "journal", "input", "layers"):
        (tmp_path / name).mkdir()
    refuse_foreign_folder(tmp_path)
    LocalDisk(tmp_path).create(run_name(1), b"{}")
    (tmp_path / "notes.txt").write_text("mine")
    refuse_foreign_folder(tmp_path)


def test_runs_of_something_else_make_no_home(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/experiment-1").write_text("mine")
    (tmp_path / "train.py").write_text("mine")
    with pytest.raises(Invalid, match=r'it holds "train\.py"'):
        refuse_foreign_folder(tmp_path)


def test_a_remote_in_the_folder_of_the_home_is_refused(tmp_path: Path) -> None:
    home = tmp_path / "a home"
    home.mkdir()
    (tmp_path / "link").symlink_to(home)
    for inside in (home, home / "remote", tmp_path / "link" / "copy", tmp_path / "x" / ".." / "a home"):
        with pytest.raises(Invalid, match="lies in the home"):
            refuse_remote_at_home(home, inside.as_uri())
    for beside in (tmp_path / "remote", tmp_path / "a home 2"):
        refuse_remote_at_home(home, beside.as_uri())
    refuse_remote_at_home(home, "s3://bucket/prefix")
    assert not (home / "remote").exists()
