"""The archive of classes: found by the Java and the PySpark that it was made for, and by no other."""

from pathlib import Path

import pytest

from nosync.model.errors import Unavailable
from nosync.spark import class_archive


def java(folder: Path, modules: bytes) -> Path:
    for name in ("bin", "lib"):
        (folder / name).mkdir(parents=True)
    (folder / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    (folder / "bin" / "java").chmod(0o700)
    (folder / "lib" / "modules").write_bytes(modules)
    return folder


def test_it_belongs_to_one_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, found = tmp_path / "ke pt", set()
    for name, modules in (("a", b"1"), ("b", b"22")):
        monkeypatch.setenv("JAVA_HOME", str(java(tmp_path / name, modules)))
        found.add(class_archive.archive_in(kept))
        assert class_archive.options(kept) == []
    assert len(found) == 2
    kept.mkdir()
    Path(str(class_archive.archive_in(kept))).touch()
    assert class_archive.options(kept)[0] == f'"-XX:SharedArchiveFile={class_archive.archive_in(kept)}"'
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert class_archive.kept_in() == tmp_path / "nosync" / "java"


def test_a_java_that_cannot_make_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(Unavailable, match="there is no Java here"):
        class_archive.make(tmp_path / "kept")
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path / "broken", b"")))
    with pytest.raises(Unavailable, match="no archive of classes could be made"):
        class_archive.make(tmp_path / "kept")
    assert list((tmp_path / "kept").iterdir()) == []
